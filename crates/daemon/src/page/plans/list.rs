//! The plans page: what is being worked on in each workspace, and what waits for a decision.

use std::sync::Arc;

use ::plans::PlanQuery;
use maud::{Markup, html};
use protocol::{Plan, PlanList, PlanState};

use super::detail::unreadable;
use super::lanes;
use super::state::{badge, checks_summary, extent, overlap_warnings, path, title, workers};
use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Count, Text};
use crate::page::parts::list::{
    Choice, Filter, SHOWN, count, elsewhere, empty, heading, no_match, table_card,
};
use crate::page::parts::text::{exact, exact_words};
use crate::page::parts::times::time_ago;
use crate::plans::wire;
use crate::times::now_ms;

/// The filters of the list.
const STATES: [Choice<&[PlanState]>; 2] = [
    Choice::new(
        " current",
        "Open and sealed",
        &[PlanState::Open, PlanState::Sealed],
    ),
    Choice::new(
        "finished over",
        "Finished",
        &[PlanState::Applied, PlanState::Undone, PlanState::Discarded],
    ),
];

pub(crate) fn of_workspace(id: &str) -> String {
    let filter = Filter {
        workspace: Some(id.to_owned()),
        ..Filter::all("plans")
    };
    filter.path()
}

pub(crate) async fn read(app: Arc<App>, _: Visitor, filter: Filter) -> Result<Live, PageError> {
    let wanted = PlanQuery {
        workspace: filter.id(filter.workspace.as_deref())?,
        states: filter.chosen(filter.state.as_deref(), &STATES)?.to_vec(),
        before: filter.id(filter.before.as_deref())?,
        limit: SHOWN,
        ..PlanQuery::default()
    };
    match wire::list(&app.plans, &app.durable.machines, wanted).await {
        Ok(list) => Ok(Live::new(
            "Plans",
            Refresh::Still,
            content(&list, &filter, now_ms()),
        )),
        Err(error) => Err(unreadable(error)),
    }
}

fn content(list: &PlanList, filter: &Filter, now_ms: u64) -> Markup {
    let workspaces = html! { a href="/workspaces" data-key="workspaces" { "Workspaces" } };
    html! {
        (heading("Plans", "A plan is a piece of work in its own sandbox. You apply its changes all at once or not at all, and you can undo them."))
        (filter.state_links("Which plans", &STATES, &workspaces))
        div data-part="plans" {
            @if list.plans.is_empty() && filter.is_everything() {
                (empty(
                    "No open plans",
                    "Run an agent, or any command, in a sandbox. You review its changes before you apply them.",
                    "tidelock exec -- claude",
                ))
            } @else if list.plans.is_empty() {
                (no_match(filter, "Open and sealed plans"))
            }
            @for (root, plans) in by_root(&list.plans) {
                @if filter.workspace.is_some() {
                    section class="card" aria-label="Timeline" {
                        h2 { "Timeline" }
                        (lanes::of_workspace(&plans, now_ms))
                    }
                }
                (workspace(root, &plans, now_ms))
            }
            (filter.pages(list.next_before.as_ref()))
        }
    }
}

/// The plans of each workspace, in the order in which the workspaces first appear.
fn by_root(plans: &[Plan]) -> Vec<(&str, Vec<&Plan>)> {
    let mut groups: Vec<(&str, Vec<&Plan>)> = Vec::new();
    for plan in plans {
        match groups.iter_mut().find(|(root, _)| *root == plan.root) {
            Some((_, group)) => group.push(plan),
            None => groups.push((&plan.root, vec![plan])),
        }
    }
    groups
}

fn workspace(root: &str, plans: &[&Plan], now_ms: u64) -> Markup {
    html! {
        section class="workspace" aria-label=(exact_words(root)) {
            h2 {
                code { (exact(root)) }
                @if let Some(plan) = plans.first() {
                    " " a class="h2-link" href=(of_workspace(&plan.workspace)) data-key={ "time line " (plan.workspace) } { "Timeline" }
                }
            }
            (table_card(
                &[Text("Plan"), Text("State"), Count("Changes"), Count("Checks"), Count("Opened")],
                plans.iter().map(|plan| row(plan, now_ms)),
            ))
        }
    }
}

fn row(plan: &Plan, now_ms: u64) -> Markup {
    html! {
        tr data-plan=(plan.id) {
            th scope="row" {
                a class="job-title" href=(path(&plan.id)) data-key={ "show " (plan.id) } { (title(plan)) }
                small { (plan.id) }
                (elsewhere(plan.machine.as_ref()))
                @if let Some(parent) = &plan.parent {
                    small { "child of " a href=(path(parent)) data-key={ "parent " (plan.id) } { (parent) } }
                }
                (overlap_warnings(plan))
            }
            td class="state" {
                (badge(plan))
                @if let Some(workers) = workers(plan) { small { "in use by " (workers) } }
                @if let Some(notice) = &plan.notice { small class="error" { (one_line(notice)) } }
            }
            (count("Changes", extent(plan)))
            (count("Checks", checks_summary(plan)))
            (count("Opened", time_ago(&plan.opened_at, now_ms)))
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::CheckState;

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_absent, assert_harmless, assert_parts};
    use crate::page::plans::state::tests::{check, command, overlap, plan};
    use crate::times::parse;

    /// With several plans, the list also has older ones.
    fn rendered(plans: &[Plan], filter: &Filter) -> String {
        let list = PlanList {
            plans: plans.to_vec(),
            next_before: (plans.len() > 1).then(|| "plan_49".to_owned()),
        };
        content(&list, filter, parse(NOW).unwrap()).into_string()
    }

    fn all() -> Filter {
        Filter::all("plans")
    }

    #[test]
    fn a_row_has_what_people_look_for() {
        let busy = Plan {
            parent: Some("plan_0".to_owned()),
            running: vec![command("claude")],
            checks: vec![check(CheckState::Missing)],
            overlaps: vec![overlap(2, 1)],
            ..plan(PlanState::Open)
        };
        let page = rendered(&[busy], &all());
        assert_parts(
            &page,
            &[
                "<h2><code>/home/me/project</code> <a class=\"h2-link\" href=\"/plans?workspace=workspace_",
                "<tr data-plan=\"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">",
                "data-key=\"show plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">Fix the parser</a>",
                "child of <a href=\"/plans/plan_0\"",
                "2 files in common, 1 conflicts with <a href=\"/plans/plan_2\"",
                "<small>in use by claude</small>",
                "data-label=\"Changes\">2 files ",
                "data-label=\"Checks\">0 of 1 passed</td>",
                "<time datetime=\"2026-01-31T09:30:00.000Z\">1 min 0 s ago</time>",
                "aria-current=\"true\">Open and sealed</a><a href=\"/plans?state=finished\" data-key=\"filter Finished\">Finished</a>",
            ],
        );
        assert!(!page.contains("plans-older"), "{page}");
    }

    #[test]
    fn plans_stand_with_their_workspace() {
        let of = |id: &str, root: &str| Plan {
            id: id.to_owned(),
            root: root.to_owned(),
            ..plan(PlanState::Open)
        };
        let plans = [of("plan_3", "/b"), of("plan_2", "/a"), of("plan_1", "/b")];
        let found: Vec<(&str, Vec<&str>)> = by_root(&plans)
            .into_iter()
            .map(|(root, plans)| (root, plans.into_iter().map(|plan| plan.id.as_str()).collect()))
            .collect();
        assert_eq!(found, [("/b", vec!["plan_3", "plan_1"]), ("/a", vec!["plan_2"])]);
    }

    #[test]
    fn older_plans_are_behind_a_link_that_keeps_the_rest() {
        let filter = Filter {
            state: Some("finished".to_owned()),
            before: Some("plan_x".to_owned()),
            ..all()
        };
        let page = rendered(&[plan(PlanState::Applied), plan(PlanState::Undone)], &filter);
        assert_parts(
            &page,
            &[
                "<a href=\"/plans?state=finished\" data-key=\"newest\">Newest</a>",
                "<a id=\"plans-older\" href=\"/plans?state=finished&amp;before=plan_49\" data-key=\"older\">Older</a>",
            ],
        );
    }

    #[test]
    fn without_plans_the_page_says_what_to_type() {
        let page = rendered(&[], &all());
        assert!(page.contains("<code>tidelock exec -- claude</code>"), "{page}");
        let over = Filter {
            state: Some("finished".to_owned()),
            ..all()
        };
        let page = rendered(&[], &over);
        assert_parts(&page, &["No matching plans"]);
        assert_absent(&page, &["tidelock exec"]);
    }

    #[test]
    fn what_plans_say_is_shown_as_text() {
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            running: vec![command(HOSTILE)],
            notice: Some(HOSTILE.to_owned()),
            ..plan(PlanState::Open)
        };
        assert_harmless(&rendered(&[hostile], &all()));
        let root = Plan {
            root: "/<b>\"\u{202e}".to_owned(),
            ..plan(PlanState::Open)
        };
        let page = rendered(&[root], &all());
        assert!(!page.contains("<b>") && !page.contains('\u{202e}'), "{page}");
    }
}
