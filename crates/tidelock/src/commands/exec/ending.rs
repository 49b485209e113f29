//! The command has ended: what the daemon did about it is shown.

use protocol::{
    ChangePlan, CheckPlan, CommitPlans, FinishOutcome, Job, JobState, OutcomeKind, Plan, PlanFinish,
    PlanOutcome, PlanUnrecorded,
};
use serde_json::{Value, json};

use super::words;
use crate::cli::Afterwards;
use crate::client::{Client, Ended, Interrupted, Interrupts};
use crate::commands::job::{INTERRUPTED, ended_text, exit_of, follow};
use crate::commands::plan::sandboxed::Submitted;
use crate::commands::plan::{
    Aside, Attempt, apply, columns, get, is_passed, outcome_text, path, post, read_diff, run_checks, stat,
};
use crate::error::{Exit, Failure};
use crate::output::{Format, Palette};
use crate::printable::printable;
use crate::start::Repeat;

/// How many files the summary shows.
pub(in crate::commands) const SUMMARY_FILES: usize = 30;

/// All that there is to say at the end.
#[derive(Debug)]
pub(in crate::commands) struct End {
    pub(in crate::commands) plan: Value,
    /// The job that the command was, if it was one.
    pub(in crate::commands) job: Value,
    /// What became of the plan, for programs.
    pub(in crate::commands) outcome: Value,
    /// The same for people.
    pub(in crate::commands) text: String,
    pub(in crate::commands) exit: Exit,
}

impl End {
    /// Nobody stays.
    pub(super) fn detached(
        answer: Value,
        (plan, afterwards): (&Plan, Afterwards),
        submitted: &Submitted,
    ) -> End {
        End {
            text: words::detached(plan, afterwards, &submitted.id),
            ..End::left(answer, plan, submitted, Exit::Success)
        }
    }

    /// Somebody has left.
    pub(super) fn left(answer: Value, plan: &Plan, submitted: &Submitted, exit: Exit) -> End {
        End {
            plan: answer,
            job: submitted.job.clone(),
            outcome: json!({ "outcome": "detached" }),
            text: words::left(plan, &submitted.id),
            exit,
        }
    }
}

/// What follows when the job is over: the daemon deals with it, and what became of it is told.
pub(super) fn ended(
    (before, submitted): (&Plan, &Submitted),
    (job, interrupted): (&Job, Interrupted),
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
        // It was not the command that decided, so it has not said why.
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
    let Some(finish) = finish else {
        end.outcome = json!({ "outcome": "detached" });
        end.text.push_str(&words::left(&plan, &submitted.id));
        end.exit = Exit::Command(INTERRUPTED);
        return Ok(end);
    };
    end.outcome = json!(finish);
    if let Some(failed) = &plan.unrecorded {
        return Ok(not_recorded(end, &plan, failed));
    }
    if finish.outcome != FinishOutcome::Done {
        // What an apply left behind is among its notes.
        end.text.push_str(&words::not_carried(&plan));
    }
    if finish.outcome == FinishOutcome::Open && plan.summary.files == 0 && !plan.not_carried.is_empty() {
        end.text.push_str(words::NOTHING_ELSE);
        end.text.push_str(&words::next(&plan));
        // Whoever asked for an apply does not get what the command did.
        if finish.why.is_some() && end.exit == Exit::Success {
            end.exit = Exit::Failed;
        }
        return Ok(end);
    }
    if finish.outcome == FinishOutcome::Unchanged {
        end.text.push_str(&words::unchanged(&plan, &finish));
        return Ok(end);
    }
    if finish.outcome == FinishOutcome::Over {
        end.text.push_str(&words::over(&plan));
        return Ok(end);
    }
    // What cannot be shown is still there: the numbers of the plan are enough to go on.
    let summary = match read_diff(&before.id, "", client) {
        Ok((_, diff)) => stat(Palette::for_stderr(), &diff, SUMMARY_FILES, columns()),
        Err(failure) => format!(
            "{} (the diff cannot be shown: {})\n",
            words::numbers(&plan),
            failure.message
        ),
    };
    end.text.push_str(&summary);
    end.text
        .push_str(&words::finished(Palette::for_stderr(), &plan, &finish));
    let is_cancelled = job.state == JobState::Cancelled;
    if is_cancelled {
        end.text.push_str(&words::kept(&plan));
    }
    if finish.outcome != FinishOutcome::Done && finish.outcome != FinishOutcome::Conflicted {
        end.text.push_str(&words::next(&plan));
    }
    let was_wanted =
        finish.why.is_some() || finish.outcome == FinishOutcome::Conflicted || finish.commit_failed.is_some();
    if was_wanted && end.exit == Exit::Success {
        end.exit = Exit::Failed;
    }
    Ok(end)
}

/// What the daemon did about the end of the command, once it is known; nothing if nobody waits for it any more. What the
/// checks of the plan say meanwhile is shown.
fn finished(
    follower: &str,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Option<PlanFinish>, Failure> {
    let mut listener = Aside::new(client.format());
    match follow(client, (follower, 0, None), interrupts, &mut listener)? {
        Ended::Over { end: job, .. } => Ok(Some(match printable::<Job>(&json!(job))?.finished {
            Some(finish) => finish,
            // It failed, or was cancelled before it began.
            None => PlanFinish {
                outcome: FinishOutcome::NotApplied,
                why: Some("interrupted".to_owned()),
                text: Some(ended_text(&job)),
                files: None,
                paths: Vec::new(),
                commit: None,
                commit_failed: None,
                notes: Vec::new(),
            },
        })),
        Ended::LeftAlone | Ended::NobodyReads => Ok(None),
    }
}

/// What the command changed could not be recorded. It is in the sandbox.
fn not_recorded(mut end: End, plan: &Plan, failed: &PlanUnrecorded) -> End {
    end.text.push_str(&words::not_recorded(plan, failed));
    if end.exit == Exit::Success {
        end.exit = Exit::Failed;
    }
    end
}

/// A plan that cannot be sealed stays open, and that is said.
pub(in crate::commands) fn seal(end: &mut End, id: &str, client: &Client) {
    let request = ChangePlan::default();
    match post(&path(id, "/seal"), &request, Repeat::Harmless, client) {
        Ok(sealed) => {
            end.plan = sealed;
            end.outcome = json!({ "outcome": "sealed" });
        }
        Err(failure) => end
            .text
            .push_str(&format!("It stays open: {}\n", failure.message)),
    }
}

/// Runs the checks, and applies the plan if they pass.
pub(in crate::commands) fn applied(
    commit: Option<CommitPlans>,
    mut end: End,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<End, Failure> {
    let mut plan: Plan = printable(&end.plan)?;
    let palette = Palette::for_stderr();
    if !plan.checks.iter().all(is_passed) {
        // What was found out so far is said before the checks begin to write.
        if client.format() == Format::Human {
            let said = std::mem::take(&mut end.text);
            drop(crate::output::write(std::io::stderr(), &said));
        }
        let checked = run_checks(&plan.id, &CheckPlan::default(), interrupts, client)?;
        end.plan = checked.answer;
        plan = printable(&end.plan)?;
        if checked.interrupted == Interrupted::Yes {
            return Ok(not_applied(end, &plan, "interrupted", Exit::Command(INTERRUPTED)));
        }
        if !plan.checks.iter().all(is_passed) {
            end.text.push_str(&words::checks(palette, &plan));
            return Ok(not_applied(end, &plan, "checks", Exit::Failed));
        }
    }
    let answer = match apply(&plan.id, commit, client) {
        Ok(answer) => answer,
        Err(failure) => {
            end.text.push_str(&format!("error: {}\n", failure.message));
            let mut end = not_applied(end, &plan, "refused", Exit::Failed);
            end.outcome["error"] = json!(failure);
            return Ok(end);
        }
    };
    let outcome: PlanOutcome = printable(&answer)?;
    end.text
        .push_str(&outcome_text(palette, &outcome, Attempt::Apply));
    for note in &outcome.notes {
        end.text.push_str(&format!("note: {note}\n"));
    }
    if outcome.outcome == OutcomeKind::Conflicted || outcome.commit_failed.is_some() {
        end.exit = Exit::Failed;
    }
    if let Some(now) = answer["plans"].get(0) {
        end.plan = now.clone();
    }
    end.outcome = answer;
    Ok(end)
}

fn not_applied(mut end: End, plan: &Plan, why: &str, exit: Exit) -> End {
    let because = match why {
        "checks" => "not all checks have passed",
        "interrupted" => "its checks were interrupted",
        _ => "the daemon refused it",
    };
    end.text
        .push_str(&format!("It was not applied, because {because}.\n"));
    end.text.push_str(&words::next(plan));
    end.outcome = json!({ "outcome": "not_applied", "why": why });
    end.exit = exit;
    end
}
