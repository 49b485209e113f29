//! The wording for plans.

use protocol::{CheckState, DiffSummary, Plan, PlanCheck, PlanState};

use crate::output::{Cell, Tone};
use crate::units::format_count;

/// How many of an id's last characters are shown where the user may type it again. Six are usually enough to tell a
/// million plans apart, and an ambiguous id is reported.
const SHORT: usize = 6;

/// The end of an id, which is all the user has to type.
pub(in crate::commands) fn short(id: &str) -> &str {
    let start = id.len().saturating_sub(SHORT);
    id.get(start..).unwrap_or(id)
}

pub(super) fn state(state: PlanState) -> Cell {
    let tone = match state {
        PlanState::Open => Tone::Warning,
        PlanState::Sealed => Tone::Plain,
        PlanState::Applied => Tone::Good,
        PlanState::Undone | PlanState::Discarded => Tone::Quiet,
    };
    Cell::toned(state.as_str(), tone)
}

pub(in crate::commands) fn is_passed(check: &PlanCheck) -> bool {
    check.state == CheckState::Passed
}

pub(super) fn check_state(state: CheckState) -> Cell {
    match state {
        CheckState::Missing => Cell::toned("not run", Tone::Warning),
        CheckState::Running => Cell::toned("running", Tone::Warning),
        CheckState::Passed => Cell::toned("passed", Tone::Good),
        CheckState::Failed => Cell::toned("failed", Tone::Bad),
        CheckState::Outdated => Cell::toned("outdated", Tone::Warning),
    }
}

pub(super) fn checks(plan: &Plan) -> Cell {
    let count = |state: CheckState| plan.checks.iter().filter(|check| check.state == state).count();
    let total = plan.checks.len();
    let (passed, failed, running) = (
        count(CheckState::Passed),
        count(CheckState::Failed),
        count(CheckState::Running),
    );
    match (total, passed, failed, running) {
        (0, ..) => Cell::toned("-", Tone::Quiet),
        (_, _, failed, _) if failed > 0 => Cell::toned(format!("{failed} of {total} failed"), Tone::Bad),
        (_, _, _, running) if running > 0 => {
            Cell::toned(format!("{running} of {total} running"), Tone::Warning)
        }
        (total, passed, ..) if total == passed => Cell::toned(format!("{passed} passed"), Tone::Good),
        (total, passed, ..) => Cell::toned(format!("{passed} of {total} passed"), Tone::Warning),
    }
}

/// How many other plans it overlaps with, and in how many files they conflict.
pub(super) fn overlaps(plan: &Plan) -> Cell {
    let conflicts = plan
        .overlaps
        .iter()
        .filter(|overlap| overlap.paths.iter().any(|path| path.conflicts))
        .count();
    match (plan.overlaps.len(), conflicts) {
        (0, _) => Cell::toned("-", Tone::Quiet),
        (count, 0) => Cell::toned(count.to_string(), Tone::Warning),
        (count, 1) => Cell::toned(format!("{count} (1 conflict)"), Tone::Bad),
        (count, conflicts) => Cell::toned(format!("{count} ({conflicts} conflicts)"), Tone::Bad),
    }
}

pub(in crate::commands) fn summary(summary: &DiffSummary) -> String {
    let files = format_count(summary.files, "file");
    match (summary.added_lines, summary.removed_lines) {
        (Some(added), Some(removed)) => format!("{files}, +{added} -{removed}"),
        _ => files,
    }
}

/// The next possible commands for a plan, as the user would type them.
pub(in crate::commands) fn next(plan: &Plan) -> Vec<String> {
    let id = short(&plan.id);
    let line = |text: &str| format!("tidelock plan {text}");
    let mut lines = Vec::new();
    let has_work = plan.summary.files > 0;
    match plan.state {
        PlanState::Open | PlanState::Sealed => {
            if !plan.running.is_empty() {
                lines.push(line(&format!("log {id} --follow")));
            }
            if has_work {
                lines.push(line(&format!("diff {id}")));
            }
            if plan.state == PlanState::Open {
                lines.push(line(&format!("exec {id} -- COMMAND")));
                lines.push(line(&format!("seal {id}")));
            }
            if !plan.checks.iter().all(is_passed) {
                lines.push(line(&format!("check {id}")));
            }
            if has_work {
                lines.push(line(&format!("apply {id}")));
            }
            let force = if has_work { " --force" } else { "" };
            lines.push(line(&format!("discard {id}{force}")));
        }
        PlanState::Applied => lines.push(line(&format!("undo {id}"))),
        PlanState::Undone => lines.push(line(&format!("apply {id}"))),
        PlanState::Discarded => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::samples::{check, overlap, plan};
    use super::*;
    use crate::output::{Palette, table};

    fn text(cell: Cell) -> String {
        table(Palette::Plain, &[vec![cell]]).trim_end().to_owned()
    }

    #[test]
    fn checks_are_told_by_the_worst_of_them() {
        use CheckState::{Failed, Missing, Outdated, Passed, Running};
        for (states, expected) in [
            (&[][..], "-"),
            (&[Passed, Passed], "2 passed"),
            (&[Passed, Missing], "1 of 2 passed"),
            (&[Outdated], "0 of 1 passed"),
            (&[Running, Passed], "1 of 2 running"),
            (&[Running, Failed, Passed], "1 of 3 failed"),
        ] {
            let checks_of = states.iter().map(|state| check("true", *state)).collect();
            let plan = Plan {
                checks: checks_of,
                ..plan(PlanState::Open)
            };
            assert_eq!(text(checks(&plan)), expected, "{states:?}");
        }
    }

    #[test]
    fn overlaps_say_how_many_conflict() {
        for (conflicts, expected) in [
            (&[][..], "-"),
            (&[false], "1"),
            (&[false, true], "2 (1 conflict)"),
            (&[true, true], "2 (2 conflicts)"),
        ] {
            let overlaps_of = conflicts.iter().map(|conflicts| overlap(*conflicts)).collect();
            let plan = Plan {
                overlaps: overlaps_of,
                ..plan(PlanState::Open)
            };
            assert_eq!(text(overlaps(&plan)), expected, "{conflicts:?}");
        }
    }

    #[test]
    fn what_to_type_next_depends_on_what_it_is() {
        let untouched = Plan {
            summary: DiffSummary::default(),
            checks: Vec::new(),
            ..plan(PlanState::Open)
        };
        assert_eq!(
            next(&untouched),
            [
                "tidelock plan exec 9G5FAV -- COMMAND",
                "tidelock plan seal 9G5FAV",
                "tidelock plan discard 9G5FAV",
            ]
        );
        let all: Vec<String> = [
            PlanState::Open,
            PlanState::Sealed,
            PlanState::Applied,
            PlanState::Undone,
            PlanState::Discarded,
        ]
        .into_iter()
        .map(|state| format!("{}:\n  {}", state.as_str(), next(&plan(state)).join("\n  ")))
        .collect();
        insta::assert_snapshot!(all.join("\n"));
    }
}
