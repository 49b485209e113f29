//! The state of a plan, in the words and colours that every page uses.

use maud::{Markup, html};
use protocol::{CheckState, Plan, PlanCheck, PlanOverlap, PlanState, SandboxStrategy};

use crate::page::parts::ansi::one_line;
use crate::page::parts::text::{self, counted, percent_encode, titled};

/// How many other plans are named where space is tight.
const NAMED_OVERLAPS: usize = 3;

pub(crate) fn path(id: &str) -> String {
    format!("/plans/{}", percent_encode(id))
}

pub(crate) fn title(plan: &Plan) -> String {
    titled(&plan.title, &plan.id)
}

pub(crate) fn badge(plan: &Plan) -> Markup {
    text::badge(look(plan))
}

pub(crate) fn label(plan: &Plan) -> &'static str {
    look(plan).1
}

fn look(plan: &Plan) -> (&'static str, &'static str) {
    match plan.state {
        PlanState::Open | PlanState::Sealed if plan.refused.is_some() => ("badge bad", "Conflicted"),
        PlanState::Open if !plan.running.is_empty() => ("badge active busy", "Open"),
        PlanState::Open => ("badge active", "Open"),
        PlanState::Sealed => ("badge warn", "Sealed"),
        PlanState::Applied => ("badge good", "Applied"),
        PlanState::Undone => ("badge", "Undone"),
        PlanState::Discarded => ("badge", "Discarded"),
    }
}

pub(crate) fn meaning(plan: &Plan) -> &'static str {
    match plan.state {
        PlanState::Open | PlanState::Sealed if plan.refused.is_some() => "Conflicts with other changes",
        PlanState::Open if plan.running.is_empty() => "Open for changes",
        PlanState::Open => "Someone is working in it",
        PlanState::Sealed => "Ready for review",
        PlanState::Applied if plan.parent.is_some() => "Merged into its parent",
        PlanState::Applied => "Its changes are in the workspace",
        PlanState::Undone => "Its changes were applied and then undone",
        PlanState::Discarded => "Closed without applying",
    }
}

pub(crate) fn extent(plan: &Plan) -> Markup {
    let files = counted(plan.summary.files, "file", "files");
    html! {
        (files)
        @if let (Some(added), Some(removed)) = (plan.summary.added_lines, plan.summary.removed_lines) {
            " " (lines(added, removed))
        }
    }
}

/// Added and removed lines, by sign and by colour; empty if there are none.
pub(crate) fn lines(added: u64, removed: u64) -> Markup {
    html! {
        @if added + removed > 0 {
            span class="lines" {
                span class="added" { "+" (added) } " " span class="removed" { "−" (removed) }
            }
        }
    }
}

pub(crate) fn workers(plan: &Plan) -> Option<String> {
    let mut actors: Vec<String> = plan.running.iter().map(|run| one_line(&run.actor)).collect();
    actors.dedup();
    match actors.len() {
        0 => None,
        1..=3 => Some(actors.join(", ")),
        more => Some(format!("{} and {} others", actors[..2].join(", "), more - 2)),
    }
}

pub(crate) fn check_badge(check: &PlanCheck) -> Markup {
    text::badge(match check.state {
        CheckState::Missing => ("badge", "Not run"),
        CheckState::Running => ("badge active busy", "Running"),
        CheckState::Passed => ("badge good", "Passed"),
        CheckState::Failed => ("badge bad", "Failed"),
        CheckState::Outdated => ("badge warn", "Outdated"),
    })
}

pub(crate) fn checks_summary(plan: &Plan) -> Markup {
    let count = |state| plan.checks.iter().filter(|check| check.state == state).count();
    let (total, passed) = (plan.checks.len(), count(CheckState::Passed));
    html! {
        @if total == 0 {
            "–"
        } @else if passed == total {
            "all " (total) " passed"
        } @else {
            (passed) " of " (total) " passed"
            @for (state, word) in [(CheckState::Failed, "failed"), (CheckState::Running, "running")] {
                @let number = count(state);
                @if number > 0 { small class=[(state == CheckState::Failed).then_some("error")] { (number) " " (word) } }
            }
        }
    }
}

pub(crate) fn checks_passed(plan: &Plan) -> bool {
    plan.checks.iter().all(|check| check.state == CheckState::Passed)
}

pub(crate) fn overlap_warnings(plan: &Plan) -> Markup {
    html! {
        @for overlap in plan.overlaps.iter().take(NAMED_OVERLAPS) {
            small class="overlap" {
                (overlap_words(overlap)) " with "
                a href=(path(&overlap.plan)) data-key={ "overlap " (plan.id) " " (overlap.plan) } {
                    (titled(&overlap.title, &overlap.plan))
                }
            }
        }
        @if plan.overlaps.len() > NAMED_OVERLAPS {
            small class="overlap" { "and with " (plan.overlaps.len() - NAMED_OVERLAPS) " more plans" }
        }
    }
}

pub(crate) fn overlap_words(overlap: &PlanOverlap) -> String {
    let conflicts = overlap.paths.iter().filter(|path| path.conflicts).count() as u64;
    let files = counted(overlap.paths.len() as u64, "file", "files");
    match conflicts {
        0 => format!("{files} in common"),
        1 => format!("{files} in common, 1 conflicts"),
        more => format!("{files} in common, {more} conflict"),
    }
}

pub(crate) fn strategy_words(strategy: SandboxStrategy) -> &'static str {
    match strategy {
        SandboxStrategy::Overlay => "overlay: a separate layer at the workspace's own path",
        SandboxStrategy::GitWorktree => "git worktree: on its own branch",
        SandboxStrategy::Copy => "copy of the workspace",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use protocol::{DiffSummary, PlanCommand, PlanOverlapPath, PlanRefused};

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless};

    pub(crate) const PLAN_ID: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";

    pub(crate) fn plan(state: PlanState) -> Plan {
        Plan {
            machine: None,
            id: PLAN_ID.to_owned(),
            state,
            version: 7,
            title: "Fix the parser".to_owned(),
            workspace: "workspace_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
            root: "/home/me/project".to_owned(),
            parent: None,
            children: Vec::new(),
            opened_by: "claude".to_owned(),
            opened_at: "2026-01-31T09:30:00.000Z".to_owned(),
            changed_at: "2026-01-31T09:30:30.000Z".to_owned(),
            strategy: SandboxStrategy::Overlay,
            sandbox_root: "/home/me/project".to_owned(),
            base: "ba5e".to_owned(),
            fingerprint: "f1a6".to_owned(),
            entries: 3,
            changesets: 1,
            summary: DiffSummary {
                files: 2,
                added_lines: Some(5),
                removed_lines: Some(1),
            },
            running: Vec::new(),
            checks: Vec::new(),
            refused: None,
            overlaps: Vec::new(),
            rescued: Vec::new(),
            left_out: Vec::new(),
            branches: Vec::new(),
            not_carried: Vec::new(),
            remarks: Vec::new(),
            unrecorded: None,
            notice: None,
        }
    }

    pub(crate) fn check(state: CheckState) -> PlanCheck {
        PlanCheck {
            command: "make test".to_owned(),
            state,
            job: None,
            text: None,
            at: None,
        }
    }

    pub(crate) fn command(actor: &str) -> PlanCommand {
        PlanCommand {
            job: "job_1".to_owned(),
            actor: actor.to_owned(),
            since: "2026-01-31T09:30:10.000Z".to_owned(),
        }
    }

    pub(crate) fn refused(what: &str) -> PlanRefused {
        PlanRefused {
            what: what.to_owned(),
            by: "unix".to_owned(),
            at: "2026-01-31T09:30:40.000Z".to_owned(),
            conflicts: Vec::new(),
        }
    }

    /// Another plan with `files` files in common; `conflicts` of them conflict.
    pub(crate) fn overlap(files: usize, conflicts: usize) -> PlanOverlap {
        let path = |number: usize| PlanOverlapPath {
            path: format!("src/{number}.rs"),
            conflicts: number < conflicts,
            lines: if number < conflicts {
                vec![3, 40]
            } else {
                Vec::new()
            },
        };
        PlanOverlap {
            plan: "plan_2".to_owned(),
            title: "Other work".to_owned(),
            paths: (0..files).map(path).collect(),
        }
    }

    #[test]
    fn each_state_has_its_badge() {
        let busy = Plan {
            running: vec![command("claude")],
            ..plan(PlanState::Open)
        };
        let conflicted = Plan {
            refused: Some(refused("apply")),
            ..plan(PlanState::Sealed)
        };
        // The undo failed, so it is still applied.
        let not_undone = Plan {
            refused: Some(refused("undo")),
            ..plan(PlanState::Applied)
        };
        for (plan, expected) in [
            (plan(PlanState::Open), "<span class=\"badge active\">Open</span>"),
            (busy, "<span class=\"badge active busy\">Open</span>"),
            (
                plan(PlanState::Sealed),
                "<span class=\"badge warn\">Sealed</span>",
            ),
            (conflicted, "<span class=\"badge bad\">Conflicted</span>"),
            (
                plan(PlanState::Applied),
                "<span class=\"badge good\">Applied</span>",
            ),
            (not_undone, "<span class=\"badge good\">Applied</span>"),
            (plan(PlanState::Undone), "<span class=\"badge\">Undone</span>"),
            (
                plan(PlanState::Discarded),
                "<span class=\"badge\">Discarded</span>",
            ),
        ] {
            assert_eq!(badge(&plan).into_string(), expected);
        }
    }

    #[test]
    fn checks_are_summed_up() {
        use CheckState::{Failed, Missing, Outdated, Passed, Running};
        for (states, expected, passed) in [
            (&[][..], "–", true),
            (&[Passed, Passed], "all 2 passed", true),
            (&[Passed, Missing], "1 of 2 passed", false),
            (&[Outdated], "0 of 1 passed", false),
            (
                &[Passed, Failed, Running],
                "1 of 3 passed<small class=\"error\">1 failed</small><small>1 running</small>",
                false,
            ),
        ] {
            let plan = Plan {
                checks: states.iter().map(|state| check(*state)).collect(),
                ..plan(PlanState::Sealed)
            };
            assert_eq!(checks_summary(&plan).into_string(), expected);
            assert_eq!(checks_passed(&plan), passed);
        }
    }

    #[test]
    fn overlaps_are_counted() {
        for (files, conflicts, expected) in [
            (1, 0, "1 file in common"),
            (2, 1, "2 files in common, 1 conflicts"),
            (4, 3, "4 files in common, 3 conflict"),
        ] {
            assert_eq!(overlap_words(&overlap(files, conflicts)), expected);
        }
        let five = Plan {
            overlaps: vec![overlap(1, 0); 5],
            ..plan(PlanState::Open)
        };
        let shown = overlap_warnings(&five).into_string();
        assert_eq!(
            shown
                .matches("1 file in common with <a href=\"/plans/plan_2\"")
                .count(),
            3
        );
        assert!(shown.contains("and with 2 more plans"), "{shown}");
    }

    #[test]
    fn who_works_in_it_is_named() {
        for (actors, expected) in [
            (&[][..], None),
            (&["claude"], Some("claude")),
            (&["claude", "claude"], Some("claude")),
            (&["a", "b", "c"], Some("a, b, c")),
            (&["a", "b", "c", "d"], Some("a, b and 2 others")),
        ] {
            let plan = Plan {
                running: actors.iter().map(|actor| command(actor)).collect(),
                ..plan(PlanState::Open)
            };
            assert_eq!(workers(&plan).as_deref(), expected);
        }
    }

    #[test]
    fn what_plans_say_is_shown_as_text() {
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            overlaps: vec![PlanOverlap {
                title: HOSTILE.to_owned(),
                ..overlap(1, 1)
            }],
            ..plan(PlanState::Open)
        };
        assert_harmless(&html! { (title(&hostile)) }.into_string());
        assert_harmless(&overlap_warnings(&hostile).into_string());
    }
}
