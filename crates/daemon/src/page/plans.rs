//! The page of plans: what is being worked on in each workspace, and what waits for a decision.

use std::sync::Arc;
use std::time::Duration;

use ::plans::PlanQuery;
use axum::extract::State;
use maud::{Markup, html};
use protocol::{Plan, PlanId, PlanList, PlanState, WorkspaceId};
use serde::Deserialize;

use super::error::PageError;
use super::job_time::ago;
use super::layout::{Place, live_part, page_below};
use super::list_parts::{Asked, Choice, ListFilter, SHOWN, choices, elsewhere, id, pages, query};
use super::plan_detail::unreadable;
use super::plan_lanes;
use super::plan_state::{badge, checks_summary, extent, overlap_warnings, path, title, workers};
use super::plan_text::exact;
use super::sign_in::Visitor;
use crate::app::App;
use crate::plans::wire;
use crate::times::now_ms;

/// A stream says when something has changed; this is for ages.
const REFRESH: Duration = Duration::from_secs(5);

/// Which plans are shown. It stands in the address, so that it can be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Which {
    /// Those about which something is to be decided.
    #[default]
    Current,
    /// Those that were applied, taken back or given up.
    Over,
}

impl Which {
    fn states(self) -> Vec<PlanState> {
        match self {
            Self::Current => vec![PlanState::Open, PlanState::Sealed],
            Self::Over => vec![PlanState::Applied, PlanState::Undone, PlanState::Discarded],
        }
    }
}

/// A part of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Filter {
    #[serde(default)]
    show: Which,
    /// Only those of this workspace, with a time line of all of them.
    workspace: Option<String>,
    /// Only those that are older than this one.
    before: Option<String>,
}

impl ListFilter for Filter {
    const LISTED: &'static str = "plans";
}

impl Filter {
    fn path(&self) -> String {
        let show = match self.show {
            Which::Current => None,
            Which::Over => Some("over"),
        };
        let parts = [
            ("show", show),
            ("workspace", self.workspace.as_deref()),
            ("before", self.before.as_deref()),
        ];
        format!("/plans{}", query(&parts))
    }
}

/// Where the plans of a workspace are.
pub(super) fn of_workspace(id: &str) -> String {
    let filter = Filter {
        workspace: Some(id.to_owned()),
        ..Filter::default()
    };
    filter.path()
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    let live_path = format!("/live{}", filter.path());
    let live = live(&app, &visitor, &filter).await?;
    Ok(page_below(
        &app,
        &visitor,
        Place::Plans,
        ("Plans", &live_path),
        &live,
    ))
}

pub(super) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Asked(filter): Asked<Filter>,
) -> Result<Markup, PageError> {
    live(&app, &visitor, &filter).await
}

async fn live(app: &App, visitor: &Visitor, filter: &Filter) -> Result<Markup, PageError> {
    let before: Option<PlanId> = id::<Filter, _>(filter.before.as_deref())?;
    let workspace: Option<WorkspaceId> = id::<Filter, _>(filter.workspace.as_deref())?;
    let wanted = PlanQuery {
        workspace,
        states: filter.show.states(),
        before,
        limit: SHOWN,
        ..PlanQuery::default()
    };
    match wire::list(&app.plans, &app.durable.machines, wanted).await {
        Ok(list) => Ok(live_part(
            app,
            visitor,
            REFRESH,
            &content(&list, filter, now_ms()),
        )),
        Err(error) => Err(unreadable(error)),
    }
}

fn content(list: &PlanList, filter: &Filter, now_ms: u64) -> Markup {
    let shown = [(Which::Current, "Open and sealed"), (Which::Over, "Finished")].map(|(show, word)| Choice {
        word,
        href: Filter {
            show,
            before: None,
            ..filter.clone()
        }
        .path(),
        is_chosen: filter.show == show,
    });
    let at = |before: Option<String>| {
        Filter {
            before,
            ..filter.clone()
        }
        .path()
    };
    let newest = filter.before.is_some().then(|| at(None));
    let older = list.next_before.clone().map(|older| at(Some(older)));
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Plans" }
                p {
                    "A plan is a piece of work in its own sandbox. You apply its changes all at once or not at all, and you can "
                    "undo them."
                }
            }
        }
        (choices("Which plans", &shown, &html! { a href="/workspaces" data-key="workspaces" { "Workspaces" } }))
        div data-part="plans" {
            @if list.plans.is_empty() { (empty(filter)) }
            @for (root, plans) in by_root(&list.plans) {
                @if filter.workspace.is_some() {
                    section class="card" aria-label="Timeline" {
                        h2 { "Timeline" }
                        (plan_lanes::of_workspace(&plans, now_ms))
                    }
                }
                (workspace(root, &plans, now_ms))
            }
            (pages("plans", newest, older))
        }
    }
}

/// The plans of each workspace, in the order in which the workspaces come first.
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

fn empty(filter: &Filter) -> Markup {
    html! {
        div class="card empty" {
            @if *filter == Filter::default() {
                h2 { "No open plans" }
                p { "Run an agent, or any command, in a sandbox. You review its changes before you apply them." }
                p { code { "tidelock exec -- claude" } }
            } @else {
                h2 { "No matching plans" }
                p { a href="/plans" data-key="all" { "Open and sealed plans" } }
            }
        }
    }
}

fn workspace(root: &str, plans: &[&Plan], now_ms: u64) -> Markup {
    html! {
        section class="workspace" aria-label=(super::plan_text::exact_words(root)) {
            h2 {
                code { (exact(root)) }
                @if let Some(plan) = plans.first() {
                    " " a class="h2-link" href=(of_workspace(&plan.workspace)) data-key={ "time line " (plan.workspace) } { "Timeline" }
                }
            }
            div class="card table" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Plan" }
                            th scope="col" { "State" }
                            th scope="col" class="count" { "Changes" }
                            th scope="col" class="count" { "Checks" }
                            th scope="col" class="count" { "Opened" }
                        }
                    }
                    tbody { @for plan in plans { (row(plan, now_ms)) } }
                }
            }
        }
    }
}

fn row(plan: &Plan, now_ms: u64) -> Markup {
    let opened = ago(&plan.opened_at, now_ms).map_or_else(|| "–".to_owned(), |ago| format!("{ago} ago"));
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
                @if let Some(notice) = &plan.notice { small class="error" { (super::ansi::one_line(notice)) } }
            }
            td class="count" data-label="Changes" { (extent(plan)) }
            td class="count" data-label="Checks" { (checks_summary(plan)) }
            td class="count" data-label="Opened" { time datetime=(plan.opened_at) { (opened) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::CheckState;

    use super::super::job_state::tests::{HOSTILE, NOW, assert_harmless};
    use super::super::plan_state::tests::{check, command, overlap, plan};
    use super::*;
    use crate::times::parse;

    /// If there are several, there are older ones.
    fn rendered(plans: &[Plan], filter: &Filter) -> String {
        let list = PlanList {
            plans: plans.to_vec(),
            next_before: (plans.len() > 1).then(|| "plan_49".to_owned()),
        };
        content(&list, filter, parse(NOW).unwrap()).into_string()
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
        let page = rendered(&[busy], &Filter::default());
        for part in [
            "<h2><code>/home/me/project</code> <a class=\"h2-link\" href=\"/plans?workspace=workspace_",
            "<tr data-plan=\"plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">",
            "data-key=\"show plan_01ARZ3NDEKTSV4RRFFQ69G5FAV\">Fix the parser</a>",
            "child of <a href=\"/plans/plan_0\"",
            "2 files in common, 1 conflicts with <a href=\"/plans/plan_2\"",
            "<small>in use by claude</small>",
            "data-label=\"Changes\">2 files ",
            "data-label=\"Checks\">0 of 1 passed</td>",
            "<time datetime=\"2026-01-31T09:30:00.000Z\">1 min 0 s ago</time>",
            "aria-current=\"true\">Open and sealed</a><a href=\"/plans?show=over\" data-key=\"filter Finished\">Finished</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
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
            show: Which::Over,
            workspace: None,
            before: Some("plan_x".to_owned()),
        };
        let page = rendered(&[plan(PlanState::Applied), plan(PlanState::Undone)], &filter);
        for part in [
            "<a href=\"/plans?show=over\" data-key=\"newest\">Newest</a>",
            "<a id=\"plans-older\" href=\"/plans?show=over&amp;before=plan_49\" data-key=\"older\">Older</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn without_plans_the_page_says_what_to_type() {
        let page = rendered(&[], &Filter::default());
        assert!(page.contains("<code>tidelock exec -- claude</code>"), "{page}");
        let over = Filter {
            show: Which::Over,
            ..Filter::default()
        };
        let page = rendered(&[], &over);
        assert!(
            page.contains("No matching plans") && !page.contains("tidelock exec"),
            "{page}"
        );
    }

    #[test]
    fn what_plans_say_is_shown_as_text() {
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            running: vec![command(HOSTILE)],
            notice: Some(HOSTILE.to_owned()),
            ..plan(PlanState::Open)
        };
        assert_harmless(&rendered(&[hostile], &Filter::default()));
        let root = Plan {
            root: "/<b>\"\u{202e}".to_owned(),
            ..plan(PlanState::Open)
        };
        let page = rendered(&[root], &Filter::default());
        assert!(!page.contains("<b>") && !page.contains('\u{202e}'), "{page}");
    }
}
