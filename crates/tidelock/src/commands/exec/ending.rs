//! Shows what the daemon did after the command ended.

use protocol::{FinishOutcome, Job, JobState, Plan, PlanFinish};
use serde_json::{Value, json};

use super::messages;
use crate::cli::Afterwards;
use crate::client::{Client, Ended, Interrupted, Interrupts};
use crate::commands::job::{INTERRUPTED, ended_text, exit_of, follow};
use crate::commands::plan::sandboxed::Submitted;
use crate::commands::plan::{Aside, columns, get, read_diff, stat};
use crate::error::{Exit, Failure};
use crate::output::Palette;
use crate::printable::printable;

const SUMMARY_FILES: usize = 30;

#[derive(Debug)]
pub(in crate::commands) struct End {
    pub(in crate::commands) plan: Value,
    /// The job that ran the command, if there was one.
    pub(in crate::commands) job: Value,
    pub(in crate::commands) outcome: Value,
    pub(in crate::commands) text: String,
    pub(in crate::commands) exit: Exit,
}

impl End {
    /// The user detached.
    pub(super) fn detached(answer: Value, plan: &Plan, afterwards: Afterwards, submitted: &Submitted) -> End {
        End {
            text: messages::detached(plan, afterwards, &submitted.id),
            ..End::left(answer, plan, submitted, Exit::Success)
        }
    }

    pub(super) fn left(answer: Value, plan: &Plan, submitted: &Submitted, exit: Exit) -> End {
        End {
            plan: answer,
            job: submitted.job.clone(),
            outcome: json!({ "outcome": "detached" }),
            text: messages::left(plan, &submitted.id),
            exit,
        }
    }
}

/// Waits for the daemon to finish the plan once the job is over, and reports the result.
pub(super) fn ended(
    before: &Plan,
    submitted: &Submitted,
    job: &Job,
    interrupted: Interrupted,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<End, Failure> {
    let exit = exit_of(job, interrupted);
    let mut end = End {
        plan: Value::Null,
        job: json!(job),
        outcome: Value::Null,
        text: String::new(),
        exit,
    };
    if exit == Exit::Failed || job.output_lost.is_some() {
        // The job did not end because of its command, so the command has not said why.
        let shown: Job = printable(&json!(job))?;
        end.text
            .push_str(&format!("{} {}\n", shown.id, ended_text(&shown)));
    }
    let finish = match &submitted.follower {
        Some(follower) => finished(follower, interrupts, client)?,
        None => None,
    };
    end.plan = get(&before.id, "", client)?;
    let plan: Plan = printable(&end.plan)?;
    let Some((finish, _)) = finish else {
        end.outcome = json!({ "outcome": "detached" });
        end.text.push_str(&messages::left(&plan, &submitted.id));
        end.exit = Exit::Command(INTERRUPTED);
        return Ok(end);
    };
    end.outcome = json!(finish);
    show_finish(&mut end, &plan, &finish, client);
    Ok(end)
}

/// Shows what the daemon did with a plan at the end of a command or a turn.
pub(in crate::commands) fn show_finish(end: &mut End, plan: &Plan, finish: &PlanFinish, client: &Client) {
    let mut has_failed =
        finish.why.is_some() || finish.outcome == FinishOutcome::Conflicted || finish.commit_failed.is_some();
    if finish.outcome != FinishOutcome::Done && plan.unrecorded.is_none() {
        // What an apply left behind is among its notes.
        end.text.push_str(&messages::not_carried(plan));
    }
    let is_only_uncarried =
        finish.outcome == FinishOutcome::Open && plan.summary.files == 0 && !plan.not_carried.is_empty();
    if let Some(failed) = &plan.unrecorded {
        end.text.push_str(&messages::not_recorded(plan, failed));
        has_failed = true;
    } else if is_only_uncarried {
        end.text.push_str(messages::NOTHING_ELSE);
        end.text.push_str(&messages::next(plan));
    } else if finish.outcome == FinishOutcome::Unchanged {
        end.text.push_str(&messages::unchanged(plan, finish));
    } else if finish.outcome == FinishOutcome::Over {
        end.text.push_str(&messages::over(plan));
    } else {
        end.text.push_str(&diff_summary(plan, client));
        end.text
            .push_str(&messages::finished(Palette::for_stderr(), plan, finish));
        if end.job["state"] == json!(JobState::Cancelled) {
            end.text.push_str(&messages::kept(plan));
        }
        if finish.outcome != FinishOutcome::Done && finish.outcome != FinishOutcome::Conflicted {
            end.text.push_str(&messages::next(plan));
        }
    }
    if has_failed && end.exit == Exit::Success {
        end.exit = Exit::Failed;
    }
}

/// The files that a plan changes. If the diff cannot be shown, the plan's totals will do.
pub(in crate::commands) fn diff_summary(plan: &Plan, client: &Client) -> String {
    match read_diff(&plan.id, "", client) {
        Ok((_, diff)) => stat(Palette::for_stderr(), &diff, SUMMARY_FILES, columns()),
        Err(failure) => format!(
            "{} (the diff cannot be shown: {})\n",
            messages::numbers(plan),
            failure.message
        ),
    }
}

/// Follows the job that finishes a plan, and shows the output of its checks. `None` if the user detached.
pub(in crate::commands) fn finished(
    job: &str,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Option<(PlanFinish, Interrupted)>, Failure> {
    let mut listener = Aside::new(client.format());
    let (job, interrupted) = match follow(client, job, interrupts, &mut listener)? {
        Ended::Over { end, interrupted } => (end, interrupted),
        Ended::LeftAlone | Ended::NobodyReads => return Ok(None),
    };
    let finish = printable::<Job>(&json!(job))?.finished;
    // Without one, it failed or was cancelled before it began.
    let finish = finish.unwrap_or_else(|| PlanFinish {
        outcome: FinishOutcome::NotApplied,
        why: Some("interrupted".to_owned()),
        text: Some(ended_text(&job)),
        files: None,
        paths: Vec::new(),
        commit: None,
        commit_failed: None,
        notes: Vec::new(),
    });
    Ok(Some((finish, interrupted)))
}
