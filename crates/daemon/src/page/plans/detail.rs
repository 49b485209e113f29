//! One plan: its state, its buttons, its conflicts, and what it changes.
//!
//! The changes are read once, when the page is loaded, and stay unchanged while somebody reads them. The rest is live.
//! If the plan changes meanwhile, the page says so and doesn't offer Apply until the reader reloads it.

use std::sync::Arc;

use ::plans::{Moment, PlanError};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use eventlog::Sequence;
use maud::{Markup, html};
use protocol::{Changeset, ChangesetId, ErrorCode, Plan, PlanDiff, PlanId, PlanMoment};
use serde::Deserialize;

use super::buttons::{Commit, Seen, actions};
use super::diff::{View, section};
use super::state::{badge, extent, meaning, path, strategy_words, title};
use super::{cards, changesets, conflicts, lanes, timeline};
use crate::app::App;
use crate::http::Problem;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::error::PageError;
use crate::page::parts::form::PathId;
use crate::page::parts::layout::{Live, NavItem, Refresh, live_path, page};
use crate::page::parts::list::elsewhere;
use crate::page::parts::text::{capitalized, exact, percent_encode};
use crate::page::parts::times::time;
use crate::plans::diff::diff;
use crate::plans::wire;
use crate::times::now_ms;

/// How many moments are read at a time, and shown at most: the last ones.
const READ_MOMENTS: u32 = 1000;
/// How many such reads. If a plan has more moments, the page doesn't show the last ones.
const READS: usize = 20;

/// How many other plans are linked.
const NAMED_CHILDREN: usize = 50;

pub(crate) struct Detail {
    pub(crate) id: PlanId,
    pub(crate) plan: Plan,
    changesets: Vec<Changeset>,
    moments: Vec<PlanMoment>,
    commit: Commit,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Before {
    #[serde(default)]
    diff: String,
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
    view: Result<Query<View>, QueryRejection>,
) -> Result<Markup, PageError> {
    let Ok(Query(view)) = view else {
        return Err(bad_address());
    };
    let detail = find(&app, &id).await?;
    let changeset: Option<ChangesetId> = match &view.changeset {
        Some(changeset) => Some(changeset.parse().map_err(|_| bad_address())?),
        None => None,
    };
    let changes = match diff(&app.plans, detail.id, changeset).await {
        Ok(changes) => changes,
        Err(error) => return Err(unreadable(error)),
    };
    let path = format!(
        "{}?diff={}",
        path(&detail.plan.id),
        percent_encode(&changes.fingerprint)
    );
    let live = live(&visitor, &detail, &changes.fingerprint, Some((&changes, &view)));
    Ok(page(&app, &visitor, NavItem::Plans, &live_path(&path), &live))
}

pub(crate) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    PathId(id): PathId,
    before: Result<Query<Before>, QueryRejection>,
) -> Result<Markup, PageError> {
    let before = before.map(|Query(before)| before).unwrap_or_default();
    let detail = find(&app, &id).await?;
    Ok(live(&visitor, &detail, &before.diff, None).render(&app, &visitor))
}

pub(crate) async fn find(app: &App, text: &str) -> Result<Detail, PageError> {
    let not_there = || {
        let why = "It may have been forgotten.";
        PageError::not_there(ErrorCode::PlanNotFound, "plan", "plans", text, why)
    };
    let id = text.parse().map_err(|_| not_there())?;
    match read(app, id).await {
        Ok(detail) => Ok(detail),
        Err(PlanError::NotFound(_)) => Err(not_there()),
        Err(error) => Err(unreadable(error)),
    }
}

async fn read(app: &App, id: PlanId) -> Result<Detail, PlanError> {
    let plan = app.plans.get(id).await?;
    let changesets = app.plans.changesets(id).await?;
    let moments = last_moments(app, id).await?;
    let mut workspaces = app.plans.workspaces().await?.into_iter();
    let workspace = workspaces.find(|workspace| workspace.id == plan.record.facts.workspace);
    Ok(Detail {
        id,
        plan: wire::show(&app.plans, &app.durable.machines, &plan).await?,
        changesets: changesets.iter().map(wire::changeset_to_wire).collect(),
        moments: moments.iter().map(wire::moment_to_wire).collect(),
        commit: match workspace.is_some_and(|workspace| workspace.is_git) {
            true => Commit::Possible,
            false => Commit::Impossible,
        },
    })
}

async fn last_moments(app: &App, id: PlanId) -> Result<Vec<Moment>, PlanError> {
    let mut last = Vec::new();
    let mut after = Sequence::START;
    for _ in 0..READS {
        let page = app.plans.timeline(id, after, READ_MOMENTS).await?;
        let is_full = page.len() == READ_MOMENTS as usize;
        after = page.last().map_or(after, |moment| moment.sequence);
        last.extend(page);
        last.drain(..last.len().saturating_sub(READ_MOMENTS as usize));
        if !is_full {
            break;
        }
    }
    Ok(last)
}

fn bad_address() -> PageError {
    let detail = html! {
        p { "The address doesn't say which part of the plan to show." }
        p { a href="/plans" { "All plans" } }
    };
    PageError::new(ErrorCode::InvalidQuery, detail)
}

pub(crate) fn unreadable(error: PlanError) -> PageError {
    PageError::of(&Problem::from(error), "plans")
}

/// `changes` is set when the page is loaded. The script keeps that part, so that it isn't rendered again and again.
fn live(visitor: &Visitor, detail: &Detail, fingerprint: &str, changes: Option<(&PlanDiff, &View)>) -> Live {
    let seen = match fingerprint == detail.plan.fingerprint {
        true => Seen::Current,
        false => Seen::Outdated,
    };
    let content = content(visitor, detail, seen, changes);
    Live::new(title(&detail.plan), Refresh::Still, content)
}

fn content(visitor: &Visitor, detail: &Detail, seen: Seen, changes: Option<(&PlanDiff, &View)>) -> Markup {
    let plan = &detail.plan;
    html! {
        div class="heading" {
            div data-part="heading" {
                h1 class="job-title" { (title(plan)) }
                p { code { (plan.id) } }
            }
            div class="actions plan-actions" data-part="actions" { (actions(plan, visitor, seen, detail.commit)) }
        }
        div data-part="notice" { (notice(plan, seen)) }
        section class="card" aria-labelledby="state" data-part="state" {
            div class="card-heading" {
                h2 id="state" { "State" }
                a href="/plans" data-key="all" { "All plans" }
            }
            (facts(plan))
        }
        div data-part="conflicts" { (conflicts::section(plan)) }
        div data-part="commands" { (cards::commands(plan, now_ms())) }
        div data-part="checks" { (cards::checks(plan)) }
        div data-part="overlaps" { (cards::overlaps(plan)) }
        section class="card changes" aria-labelledby="changes" data-part="changes" data-keep {
            @if let Some((diff, view)) = changes { (section(diff, view)) }
        }
        section class="card" aria-labelledby="changesets" data-part="changesets" {
            h2 id="changesets" { "Changesets" }
            (changesets::section(plan, &detail.changesets, visitor))
        }
        div data-part="left out" { (cards::left_out(plan)) }
        section class="card" aria-labelledby="timeline" data-part="timeline" {
            h2 id="timeline" { "Timeline" }
            (lanes::of_plan(&detail.moments, now_ms()))
            details class="manage" data-key="moments" {
                summary { "Show as a list" }
                (timeline::list(&detail.moments))
            }
        }
    }
}

fn notice(plan: &Plan, seen: Seen) -> Markup {
    html! {
        @if let Some(notice) = &plan.notice { div class="notice warn" role="status" { p { (capitalized(notice)) "." } } }
        @if seen == Seen::Outdated {
            div class="notice warn" role="status" id="outdated" {
                p {
                    "The plan has changed since you loaded the changes below. "
                    a href=(path(&plan.id)) data-key="again" { "Reload them" }
                }
            }
        }
    }
}

fn facts(plan: &Plan) -> Markup {
    html! {
        dl class="facts" {
            dt { "State" } dd class="state" id="plan-state" { (badge(plan)) small { (meaning(plan)) } }
            dt { "Workspace" } dd { code { (exact(&plan.root)) } (elsewhere(plan.machine.as_ref())) }
            @if let Some(parent) = &plan.parent { dt { "Parent" } dd { (links(std::slice::from_ref(parent))) } }
            @if !plan.children.is_empty() { dt { "Children" } dd { (links(&plan.children)) } }
            dt { "Changes" } dd { (extent(plan)) }
            dt { "Opened" } dd { (time(&plan.opened_at)) " by " (one_line(&plan.opened_by)) }
            dt { "Last changed" } dd { (time(&plan.changed_at)) }
            dt { "Sandbox" }
            dd {
                (strategy_words(plan.strategy))
                @if plan.sandbox_root != plan.root { small { code { (exact(&plan.sandbox_root)) } } }
            }
            dt { "Base" } dd { code { (short(&plan.base)) } }
        }
    }
}

fn short(hash: &str) -> String {
    hash.chars().take(16).collect()
}

fn links(ids: &[String]) -> Markup {
    html! {
        @for (position, id) in ids.iter().take(NAMED_CHILDREN).enumerate() {
            @if position > 0 { ", " }
            a href=(path(id)) data-key={ "plan " (id) } { code { (id) } }
        }
        @if ids.len() > NAMED_CHILDREN { " and " (ids.len() - NAMED_CHILDREN) " more" }
    }
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_absent, assert_harmless, assert_parts};
    use crate::page::plans::diff::tests::{diff as plan_diff, file, hunk};
    use crate::page::plans::state::tests::{plan, refused};

    fn rendered(plan: Plan, seen: Seen, with_changes: bool) -> String {
        let visitor = Visitor::example();
        let detail = Detail {
            id: plan.id.parse().unwrap(),
            plan,
            changesets: Vec::new(),
            moments: Vec::new(),
            commit: Commit::Possible,
        };
        let diff = plan_diff(vec![file("src/a.rs", vec![hunk(1, 1, &["-old", "+new"])])]);
        let view = View::default();
        content(&visitor, &detail, seen, with_changes.then_some((&diff, &view))).into_string()
    }

    fn parts(page: &str) -> Vec<&str> {
        let parts = page.split("data-part=\"").skip(1);
        parts.map(|part| part.split('"').next().unwrap()).collect()
    }

    #[test]
    fn everything_that_is_known_is_shown() {
        let plan = Plan {
            parent: Some("plan_0".to_owned()),
            children: vec!["plan_8".to_owned(), "plan_9".to_owned()],
            sandbox_root: "/data/sandboxes/1/tree".to_owned(),
            notice: Some("its workspace is gone".to_owned()),
            ..plan(PlanState::Sealed)
        };
        let page = rendered(plan, Seen::Current, true);
        assert_parts(
            &page,
            &[
                "<h1 class=\"job-title\">Fix the parser</h1>",
                "<span class=\"badge warn\">Sealed</span><small>Ready for review</small>",
                "<dt>Workspace</dt><dd><code>/home/me/project</code></dd>",
                "<dt>Parent</dt><dd><a href=\"/plans/plan_0\"",
                "<a href=\"/plans/plan_8\" data-key=\"plan plan_8\"><code>plan_8</code></a>, <a href=\"/plans/plan_9\"",
                "<dt>Changes</dt><dd>2 files <span class=\"lines\"><span class=\"added\">+5</span> \
             <span class=\"removed\">−1</span></span></dd>",
                " by claude</dd>",
                "<code>/data/sandboxes/1/tree</code>",
                "<p>Its workspace is gone.</p>",
                "<td class=\"code added\">new</td>",
            ],
        );
    }

    #[test]
    fn the_parts_are_always_the_same() {
        // Only then does the script replace parts one by one and keep the changes.
        let whole = rendered(plan(PlanState::Open), Seen::Current, true);
        let conflicted = Plan {
            refused: Some(refused("apply")),
            ..plan(PlanState::Sealed)
        };
        let other = rendered(conflicted, Seen::Outdated, false);
        assert_eq!(parts(&whole), parts(&other));
        assert_parts(&other, &["data-part=\"changes\" data-keep></section>"]);
    }

    #[test]
    fn a_plan_that_has_changed_says_so() {
        let current = rendered(plan(PlanState::Sealed), Seen::Current, false);
        let outdated = rendered(plan(PlanState::Sealed), Seen::Outdated, false);
        assert_parts(&current, &["id=\"apply\""]);
        assert_absent(&current, &["id=\"outdated\""]);
        assert_parts(&outdated, &["id=\"outdated\""]);
        assert_absent(&outdated, &["id=\"apply\""]);
    }

    #[test]
    fn what_a_plan_says_is_shown_as_text() {
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            opened_by: HOSTILE.to_owned(),
            notice: Some(HOSTILE.to_owned()),
            ..plan(PlanState::Open)
        };
        assert_harmless(&rendered(hostile, Seen::Current, false));
    }
}
