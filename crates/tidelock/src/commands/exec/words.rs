//! What `tidelock exec` says to people.

use api::Plan;

use crate::commands::plan::{checks_text, next_lines, short, strategy_name, summary};
use crate::output::Palette;

/// That the command is about to run.
pub(super) fn begun(plan: &Plan) -> String {
    format!(
        "this runs in the sandbox of {} ({}); nothing reaches {} before it is applied",
        short(&plan.id),
        strategy_name(plan.strategy),
        plan.root
    )
}

/// How much changed, when nothing more is known.
pub(in crate::commands) fn numbers(plan: &Plan) -> String {
    format!("changed: {}", summary(&plan.summary))
}

/// That what a cancelled command had done is not lost.
pub(super) fn kept(plan: &Plan) -> String {
    format!(
        "The command was cancelled. What it had changed is kept in {}, which is open.\n",
        plan.id
    )
}

/// What to type next.
pub(in crate::commands) fn next(plan: &Plan) -> String {
    let lines = next_lines(plan);
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{} is {}. Next:\n{lines}", plan.id, state(plan))
}

fn state(plan: &Plan) -> &'static str {
    crate::commands::plan::state_name(plan.state)
}

/// The checks, with those that have not passed.
pub(super) fn checks(palette: Palette, plan: &Plan) -> String {
    checks_text(palette, &plan.checks)
}

/// Nobody stays with the command.
pub(super) fn detached(plan: &Plan, job: &str) -> String {
    let (plan_end, job_end) = (short(&plan.id), short(job));
    format!(
        "{} has begun, as {job}. Next:\n  tidelock job logs -f {job_end}\n  tidelock plan show {plan_end}\n  tidelock plan seal {plan_end}\n",
        plan.id
    )
}

/// Somebody has left the command to itself.
pub(super) fn left(plan: &Plan, job: &str) -> String {
    let (plan_end, job_end) = (short(&plan.id), short(job));
    format!(
        "It is left to itself. Next:\n  tidelock job logs -f {job_end}\n  tidelock plan show {plan_end}\n"
    )
}

#[cfg(test)]
mod tests {
    use api::{CheckState, PlanState};

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
            checks(Palette::Plain, &plan(PlanState::Sealed)),
            next(&plan(PlanState::Discarded)),
            detached(&plan(PlanState::Open), job),
            left(&plan(PlanState::Open), job),
        ];
        insta::assert_snapshot!(parts.join("\n----\n"));
    }
}
