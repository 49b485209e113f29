//! Plans on the first page: what waits for somebody.

use ::plans::{PlanQuery, State as PlanWord};
use api::{CheckState, Plan, PlanState};
use maud::{Markup, html};

use super::plan_state::{badge, extent, path, title, workers};
use super::plan_text::counted;
use crate::app::App;
use crate::plans::wire;

/// How many plans are looked at.
const READ_PLANS: u32 = 100;
/// How many are named.
const NAMED_PLANS: usize = 8;

/// What waits, and how many there are.
pub(super) async fn show(app: &App) -> Markup {
    let query = PlanQuery {
        states: vec![PlanWord::Open, PlanWord::Sealed],
        limit: READ_PLANS,
        ..PlanQuery::default()
    };
    // The first page has much to tell. If the log cannot be read, another card says so.
    let list = wire::list(&app.plans, query).await.map(|list| list.plans);
    card(&list.unwrap_or_default())
}

/// Why somebody should look at a plan.
fn need(plan: &Plan) -> Option<&'static str> {
    let has = |state| plan.checks.iter().any(|check| check.state == state);
    if plan.refused.is_some() {
        Some("others have changed the same places")
    } else if has(CheckState::Failed) {
        Some("a check has failed")
    } else if plan.state != PlanState::Sealed {
        None
    } else if has(CheckState::Missing) || has(CheckState::Outdated) {
        Some("waits for its checks to be run")
    } else if has(CheckState::Running) {
        None
    } else {
        Some("waits to be applied")
    }
}

fn card(plans: &[Plan]) -> Markup {
    let waiting: Vec<(&Plan, &str)> = plans
        .iter()
        .filter_map(|plan| Some((plan, need(plan)?)))
        .collect();
    let busy = plans.iter().filter(|plan| workers(plan).is_some()).count();
    html! {
        section class="card" aria-labelledby="plans" {
            div class="card-heading" {
                h2 id="plans" { "Plans" }
                a href="/plans" data-key="plans" { "See all" }
            }
            @if plans.is_empty() {
                p { "None is open. " code { "tidelock exec -- claude" } " lets an agent work in a sandbox of its own." }
            } @else {
                p {
                    (counted(plans.len() as u64, "is open or sealed", "are open or sealed")) ", "
                    (busy) " being worked in."
                    @if waiting.is_empty() { " Nothing waits for you." }
                }
            }
            @if !waiting.is_empty() {
                dl class="facts" {
                    @for (plan, need) in waiting.iter().take(NAMED_PLANS) {
                        dt { (badge(plan)) }
                        dd {
                            a href=(path(&plan.id)) data-key={ "plan " (plan.id) } { (title(plan)) }
                            small { (need) " · " (extent(plan)) }
                        }
                    }
                }
                @if waiting.len() > NAMED_PLANS { p class="more" { "and " (waiting.len() - NAMED_PLANS) " more" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::super::plan_state::tests::{check, command, plan, refused};
    use super::*;

    #[test]
    fn what_needs_somebody_is_named_with_the_reason() {
        use CheckState::{Failed, Missing, Outdated, Passed, Running};
        use PlanState::{Open, Sealed};
        for (state, checks, is_refused, expected) in [
            (Open, &[][..], false, None),
            (Open, &[Missing], false, None),
            (Open, &[Failed], false, Some("a check has failed")),
            (Open, &[], true, Some("others have changed the same places")),
            (Sealed, &[], false, Some("waits to be applied")),
            (Sealed, &[Passed], false, Some("waits to be applied")),
            (
                Sealed,
                &[Passed, Missing],
                false,
                Some("waits for its checks to be run"),
            ),
            (Sealed, &[Outdated], false, Some("waits for its checks to be run")),
            (Sealed, &[Running], false, None),
            (
                Sealed,
                &[Failed],
                true,
                Some("others have changed the same places"),
            ),
        ] {
            let plan = Plan {
                checks: checks.iter().map(|state| check(*state)).collect(),
                refused: is_refused.then(|| refused("apply")),
                ..plan(state)
            };
            assert_eq!(need(&plan), expected, "{state:?} {checks:?}");
        }
    }

    #[test]
    fn they_are_counted_and_those_that_wait_are_named() {
        let busy = Plan {
            running: vec![command("claude")],
            ..plan(PlanState::Open)
        };
        let shown = card(&[busy.clone(), plan(PlanState::Sealed)]).into_string();
        for part in [
            "2 are open or sealed, 1 being worked in.",
            ">Fix the parser</a><small>waits to be applied · 2 files",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(card(&[busy]).into_string().contains("Nothing waits for you."));
        assert!(card(&[]).into_string().contains("None is open."));
        let many = card(&vec![plan(PlanState::Sealed); NAMED_PLANS + 3]).into_string();
        assert!(many.contains("and 3 more"), "{many}");
    }

    #[test]
    fn what_plans_say_is_shown_as_text() {
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            ..plan(PlanState::Sealed)
        };
        assert_harmless(&card(&[hostile]).into_string());
    }
}
