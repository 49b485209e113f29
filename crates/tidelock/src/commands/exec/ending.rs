//! The command has ended: what it changed is sealed, shown, and applied if that is wanted.

use api::{ChangePlan, CheckPlan, CommitPlans, Job, OutcomeKind, Plan, PlanOutcome};
use serde_json::{Value, json};

use super::{Origin, words};
use crate::cli::{Afterwards, ExecArguments};
use crate::client::{Client, Interrupts};
use crate::commands::job::{INTERRUPTED, Interrupted, ended_text, exit_of};
use crate::commands::lsp::printable::printable;
use crate::commands::plan::sandboxed::Submitted;
use crate::commands::plan::{
    Attempt, apply, columns, discard_untouched, is_passed, outcome_text, path, post, read_diff, run_checks,
    stat, until_left,
};
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::{Format, Palette};
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
    pub(super) fn detached(answer: Value, plan: &Plan, submitted: &Submitted) -> End {
        End {
            text: words::detached(plan, &submitted.id),
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

/// What follows when the job is over.
pub(super) fn ended(
    arguments: &ExecArguments,
    (before, origin): (&Plan, Origin),
    (job, interrupted): (&Job, Interrupted),
    interrupts: &mut Interrupts,
    (context, format, client): (&Context, Format, &Client),
) -> Result<End, Failure> {
    let palette = Palette::for_stderr();
    let id = &before.id;
    let exit = exit_of(job, interrupted);
    let answer = until_left(id, &job.id, interrupts, (context, client))?;
    let plan: Plan = printable(&answer)?;
    let mut end = End {
        plan: answer,
        job: json!(job),
        outcome: json!({ "outcome": "open" }),
        text: String::new(),
        exit,
    };
    if exit == Exit::Failed {
        // It was not the command that decided, so it has not said why.
        let shown: Job = printable(&json!(job))?;
        end.text
            .push_str(&format!("{} {}\n", shown.id, ended_text(&shown)));
    }
    if plan.entries == before.entries && plan.summary.files == before.summary.files {
        return Ok(unchanged(end, (&plan, origin), (context, client)));
    }
    let was_cancelled = exit == Exit::Command(INTERRUPTED) && interrupted == Interrupted::Yes;
    let afterwards = if was_cancelled {
        Afterwards::Keep
    } else {
        arguments.afterwards()
    };
    if afterwards != Afterwards::Keep {
        seal(&mut end, id, (context, client));
    }
    let plan: Plan = printable(&end.plan)?;
    // What cannot be shown is still there: the numbers of the plan are enough to go on.
    let summary = match read_diff(id, "", context, client) {
        Ok((_, diff)) => stat(palette, &diff, SUMMARY_FILES, columns()),
        Err(failure) => format!(
            "{} (the diff cannot be shown: {})\n",
            words::numbers(&plan),
            failure.message
        ),
    };
    end.text.push_str(&summary);
    let why_not = match (afterwards, exit) {
        (Afterwards::Apply, Exit::Success) => None,
        (Afterwards::Apply, _) => Some("the command has not succeeded"),
        _ => Some(""),
    };
    match why_not {
        None => applied(
            arguments.commit.wanted(),
            end,
            interrupts,
            (context, format, client),
        ),
        Some(why) => {
            if !why.is_empty() {
                end.outcome = json!({ "outcome": "not_applied", "why": "command_failed" });
                end.text
                    .push_str(&format!("It was not applied, because {why}.\n"));
            }
            if was_cancelled {
                end.text.push_str(&words::kept(&plan));
            }
            end.text.push_str(&words::next(&plan));
            Ok(end)
        }
    }
}

/// A plan that nothing was done in. One that was opened for this command is given up.
fn unchanged(mut end: End, (plan, origin): (&Plan, Origin), (context, client): (&Context, &Client)) -> End {
    end.outcome = json!({ "outcome": "unchanged" });
    end.text.push_str("It changed nothing");
    if origin == Origin::Ours
        && let Some(discarded) = discard_untouched(&plan.id, context, client)
    {
        end.plan = discarded;
        end.text.push_str(", so the plan was discarded");
    }
    end.text.push_str(".\n");
    end
}

/// A plan that cannot be sealed stays open, and that is said.
pub(in crate::commands) fn seal(end: &mut End, id: &str, (context, client): (&Context, &Client)) {
    let request = ChangePlan::default();
    match post(&path(id, "/seal"), &request, Repeat::Harmless, (context, client)) {
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
    (context, format, client): (&Context, Format, &Client),
) -> Result<End, Failure> {
    let mut plan: Plan = printable(&end.plan)?;
    let palette = Palette::for_stderr();
    if !plan.checks.iter().all(is_passed) {
        // What was found out so far is said before the checks begin to write.
        if format == Format::Human {
            let said = std::mem::take(&mut end.text);
            drop(crate::output::write(std::io::stderr(), &said));
        }
        let checked = run_checks(
            &plan.id,
            &CheckPlan::default(),
            interrupts,
            (context, format, client),
        )?;
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
    let answer = match apply(&plan.id, commit, context, client) {
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
    if outcome.outcome == OutcomeKind::Conflicted {
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
