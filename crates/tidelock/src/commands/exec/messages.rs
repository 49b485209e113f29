//! The messages of `tidelock exec`.

use protocol::{FinishOutcome, OutcomeKind, Plan, PlanFinish, PlanOutcome, PlanState, PlanUnrecorded};

use crate::cli::Afterwards;
use crate::commands::plan::{Attempt, checks_text, next_lines, outcome_text_of, short, summary};
use crate::output::Palette;

pub(super) fn begun(plan: &Plan) -> String {
    format!(
        "running in the sandbox of {} ({}); {} doesn't change until the plan is applied",
        short(&plan.id),
        plan.strategy,
        plan.root
    )
}

/// The totals, when nothing more is known.
pub(in crate::commands) fn numbers(plan: &Plan) -> String {
    format!("changed: {}", summary(&plan.summary))
}

/// Says that the changes of a cancelled command are not lost.
pub(super) fn kept(plan: &Plan) -> String {
    format!(
        "The command was cancelled. Its changes are kept in {}.\n",
        plan.id
    )
}

/// The plan is empty, and kept because of what it does not carry.
pub(super) const NOTHING_ELSE: &str =
    "It changed nothing else, so there is nothing to apply. The plan stays open.\n";

/// What the command did that the plan does not carry.
pub(in crate::commands) fn not_carried(plan: &Plan) -> String {
    plan.not_carried
        .iter()
        .map(|note| format!("note: {note}\n"))
        .collect()
}

/// The command's changes could not be recorded, and what to do about it.
pub(super) fn not_recorded(plan: &Plan, failed: &PlanUnrecorded) -> String {
    let end = short(&plan.id);
    format!(
        "What the command changed could not be recorded: {}.\nIt is still in the sandbox of {}. Next:\n  tidelock plan seal {end}             to try again\n  tidelock plan discard --force {end}  to discard it\n",
        failed.why, plan.id
    )
}

pub(in crate::commands) fn next(plan: &Plan) -> String {
    let lines = next_lines(plan);
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{} is {}. Next:\n{lines}", plan.id, plan.state.as_str())
}

/// The user detached from the command.
pub(super) fn detached(plan: &Plan, afterwards: Afterwards, job: &str) -> String {
    let (plan_end, job_end) = (short(&plan.id), short(job));
    let then = match afterwards {
        Afterwards::Keep => "the plan stays open",
        Afterwards::Seal => "the plan waits for review; `tidelock needs` lists it",
        Afterwards::Apply => "the plan is applied if the command succeeds and its checks pass",
    };
    format!(
        "Started {} as {job}. When it ends, {then}. Next:\n  tidelock job logs -f {job_end}\n  tidelock plan show {plan_end}\n",
        plan.id
    )
}

pub(super) fn left(plan: &Plan, job: &str) -> String {
    let (plan_end, job_end) = (short(&plan.id), short(job));
    format!(
        "Detached; the daemon continues without you. Next:\n  tidelock job logs -f {job_end}\n  tidelock plan show {plan_end}\n"
    )
}

/// A plan without changes.
pub(super) fn unchanged(plan: &Plan, finish: &PlanFinish) -> String {
    match (&finish.text, plan.state) {
        (Some(why), _) => format!("It changed nothing. The plan was not discarded: {why}\n"),
        (None, PlanState::Discarded) => "It changed nothing, so the plan was discarded.\n".to_owned(),
        (None, _) => "It changed nothing.\n".to_owned(),
    }
}

pub(super) fn over(plan: &Plan) -> String {
    format!(
        "Meanwhile, {} was {} by someone else.\n",
        plan.id,
        plan.state.as_str()
    )
}

pub(super) fn finished(palette: Palette, plan: &Plan, finish: &PlanFinish) -> String {
    let why = finish.text.as_deref().unwrap_or_default();
    match finish.outcome {
        FinishOutcome::Done | FinishOutcome::Conflicted => applied(palette, plan, finish),
        FinishOutcome::NotApplied => {
            let because = match finish.why.as_deref() {
                Some("command_failed") => "the command didn't succeed",
                Some("turn_not_done") => "the turn didn't finish",
                Some("input_cut") => "its input was cut off",
                Some("checks") => "not all checks have passed",
                Some("interrupted") => "it was interrupted",
                _ => "the daemon refused it",
            };
            let mut text = match finish.why.as_deref() {
                Some("checks") => checks_text(palette, &plan.checks),
                _ => String::new(),
            };
            if !why.is_empty() {
                text.push_str(&format!("error: {why}\n"));
            }
            text.push_str(&format!("It was not applied, because {because}.\n"));
            text
        }
        _ if why.is_empty() => String::new(),
        _ => format!("It stays open: {why}\n"),
    }
}

fn applied(palette: Palette, plan: &Plan, finish: &PlanFinish) -> String {
    let refused = plan.refused.as_ref();
    let outcome = PlanOutcome {
        outcome: match finish.outcome {
            FinishOutcome::Conflicted => OutcomeKind::Conflicted,
            _ => OutcomeKind::Done,
        },
        plans: vec![plan.clone()],
        paths: finish.paths.clone(),
        conflicts: refused
            .map(|refused| refused.conflicts.clone())
            .unwrap_or_default(),
        commit: finish.commit.clone(),
        commit_failed: finish.commit_failed.clone(),
        notes: Vec::new(),
    };
    let files = finish.files.unwrap_or(finish.paths.len() as u64);
    let mut text = outcome_text_of(palette, &outcome, Attempt::Apply, files);
    for note in &finish.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use protocol::CheckState;

    use super::*;
    use crate::commands::plan::samples::{check, plan};

    #[test]
    fn what_is_said_around_a_command() {
        let job = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
        let passed = Plan {
            checks: vec![check("cargo test", CheckState::Passed)],
            ..plan(PlanState::Sealed)
        };
        let parts = [
            begun(&plan(PlanState::Open)),
            numbers(&plan(PlanState::Open)),
            kept(&plan(PlanState::Open)),
            next(&plan(PlanState::Open)),
            next(&passed),
            checks_text(Palette::Plain, &plan(PlanState::Sealed).checks),
            next(&plan(PlanState::Discarded)),
            detached(&plan(PlanState::Open), Afterwards::Keep, job),
            detached(&plan(PlanState::Open), Afterwards::Seal, job),
            detached(&plan(PlanState::Open), Afterwards::Apply, job),
            left(&plan(PlanState::Open), job),
        ];
        insta::assert_snapshot!(parts.join("\n----\n"));
    }
}
