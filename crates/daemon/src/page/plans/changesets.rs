//! The changesets of a plan: who changed what, with what, and why.

use maud::{Markup, html};
use protocol::{Changeset, ChangesetState, Plan, PlanState};

use super::buttons::undo_changeset;
use super::diff::View;
use crate::page::jobs::state as job_state;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::text::counted;
use crate::page::parts::times::time;

/// How many changesets are shown: the last ones.
const SHOWN_CHANGESETS: usize = 100;

/// The changesets, oldest first.
pub(crate) fn section(plan: &Plan, changesets: &[Changeset], visitor: &Visitor) -> Markup {
    let left_out = changesets.len().saturating_sub(SHOWN_CHANGESETS);
    html! {
        @if changesets.is_empty() {
            p { "No changes yet." }
        } @else {
            @if left_out > 0 { p class="more" { (left_out) " earlier changesets are not shown." } }
            ul class="changesets" {
                @for changeset in changesets.iter().skip(left_out) { (item(plan, changeset, visitor)) }
            }
        }
    }
}

fn item(plan: &Plan, changeset: &Changeset, visitor: &Visitor) -> Markup {
    let view = View {
        changeset: Some(changeset.id.clone()),
        ..View::default()
    };
    let reason = one_line(&changeset.reason);
    html! {
        li data-changeset=(changeset.id) {
            div {
                strong { (one_line(&changeset.actor)) } " with " (one_line(&changeset.tool))
                @if changeset.state == ChangesetState::Open { " " span class="badge active" { "open" } }
                @if !reason.is_empty() { p { (reason) } }
                small {
                    (time(&changeset.started_at))
                    @if let Some(job) = &changeset.job {
                        " · " a href=(job_state::path(job)) data-key={ "changeset job " (changeset.id) } { "job" }
                    }
                }
            }
            div class="actions" {
                @if changeset.entries > 0 {
                    a href={ (view.address(&plan.id)) "#changes" } data-key={ "changeset " (changeset.id) }
                        aria-label={ (counted(changeset.entries, "change", "changes")) " by " (one_line(&changeset.actor)) } {
                        (counted(changeset.entries, "change", "changes"))
                    }
                } @else {
                    span { "no changes" }
                }
                @if plan.state == PlanState::Applied && plan.changesets > 1 && changeset.entries > 0 {
                    (undo_changeset(plan, &changeset.id, visitor))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_absent, assert_harmless, assert_parts};
    use crate::page::plans::state::tests::{PLAN_ID, plan};

    fn changeset(entries: u64) -> Changeset {
        Changeset {
            id: "changeset_1".to_owned(),
            state: ChangesetState::Closed,
            plan: PLAN_ID.to_owned(),
            actor: "claude".to_owned(),
            tool: "shell".to_owned(),
            reason: "make it faster".to_owned(),
            job: Some("job_1".to_owned()),
            started_at: "2026-01-31T09:30:10Z".to_owned(),
            entries,
            changes: Vec::new(),
        }
    }

    #[test]
    fn each_leads_to_what_it_changed() {
        let visitor = Visitor::example();
        let page = section(&plan(PlanState::Open), &[changeset(3)], &visitor).into_string();
        assert_parts(
            &page,
            &[
                "<strong>claude</strong> with shell<p>make it faster</p>",
                "href=\"/jobs/job_1\"",
                "href=\"/plans/plan_01ARZ3NDEKTSV4RRFFQ69G5FAV?changeset=changeset_1#changes\"",
                ">3 changes</a>",
            ],
        );
        let idle = section(&plan(PlanState::Open), &[changeset(0)], &visitor).into_string();
        assert_parts(&idle, &["no changes"]);
        assert_absent(&idle, &["?changeset"]);
        let none = section(&plan(PlanState::Open), &[], &visitor).into_string();
        assert!(none.contains("No changes yet."), "{none}");
        let many = vec![changeset(1); SHOWN_CHANGESETS + 2];
        let many = section(&plan(PlanState::Open), &many, &visitor).into_string();
        assert!(many.contains("2 earlier changesets are not shown."), "{many}");
        assert_eq!(many.matches("<li").count(), SHOWN_CHANGESETS);
    }

    #[test]
    fn one_of_several_can_be_taken_back_once_they_are_applied() {
        let visitor = Visitor::example();
        for (state, changesets, expected) in [
            (PlanState::Open, 2, false),
            (PlanState::Applied, 1, false),
            (PlanState::Applied, 2, true),
            (PlanState::Undone, 2, false),
        ] {
            let plan = Plan {
                changesets,
                ..plan(state)
            };
            let page = section(&plan, &[changeset(1)], &visitor).into_string();
            let has_button = page.contains("name=\"changeset\" value=\"changeset_1\"");
            assert_eq!(has_button, expected, "{state:?} {changesets}");
        }
    }

    #[test]
    fn what_others_wrote_is_shown_as_text() {
        let visitor = Visitor::example();
        let hostile = Changeset {
            actor: HOSTILE.to_owned(),
            tool: HOSTILE.to_owned(),
            reason: HOSTILE.to_owned(),
            ..changeset(1)
        };
        assert_harmless(&section(&plan(PlanState::Open), &[hostile], &visitor).into_string());
    }
}
