//! One plan: what it is, what can be done about it, what is in its way, and what it changes.
//!
//! The changes are read once, when the page is loaded, and stay as they are while somebody reads them. The rest is
//! kept current. When the plan changes under its reader's eyes, the page says so, and offers no apply until its reader
//! has looked again.

use std::sync::Arc;
use std::time::Duration;

use ::plans::{Moment, PlanError};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use eventlog::Sequence;
use maud::{Markup, html};
use protocol::{Changeset, ChangesetId, ErrorCode, Plan, PlanDiff, PlanId, PlanMoment};
use serde::Deserialize;

use super::ansi::one_line;
use super::error::PageError;
use super::history::percent_encode;
use super::layout::{Place, live_part, page_below};
use super::list_parts::elsewhere;
use super::overview::readable;
use super::plan_actions::{Commit, Seen, actions};
use super::plan_diff::{View, section};
use super::plan_state::{badge, extent, meaning, path, strategy_words, title};
use super::plan_text::exact;
use super::sign_in::Visitor;
use super::{plan_changesets, plan_conflicts, plan_lanes, plan_parts, plan_timeline};
use crate::app::App;
use crate::http::Problem;
use crate::plans::{Shown, diff, wire};
use crate::times::now_ms;

/// A stream says when something has changed; this is for what counts up.
const REFRESH: Duration = Duration::from_secs(5);

/// How many moments are read at a time, and shown at most: the last ones.
const READ_MOMENTS: u32 = 1000;
/// How often. Of a plan with more moments than that, the page does not show the end.
const READS: usize = 20;

/// How many other plans are linked.
const NAMED_CHILDREN: usize = 50;

/// A plan with what stands around it.
pub(super) struct Detail {
    pub(super) id: PlanId,
    pub(super) plan: Plan,
    changesets: Vec<Changeset>,
    moments: Vec<PlanMoment>,
    commit: Commit,
}

/// What the reader of a page has before their eyes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Before {
    /// Names the changes that are shown.
    #[serde(default)]
    diff: String,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
    view: Result<Query<View>, QueryRejection>,
) -> Result<Markup, PageError> {
    let Ok(Query(view)) = view else {
        return Err(bad_address());
    };
    let detail = find(&app, id).await?;
    let changeset: Option<ChangesetId> = match &view.changeset {
        Some(changeset) => Some(changeset.parse().map_err(|_| bad_address())?),
        None => None,
    };
    let shown = Shown {
        plan: detail.id,
        changeset,
    };
    let changes = match diff(&app.plans, shown).await {
        Ok(changes) => changes,
        Err(error) => return Err(unreadable(error)),
    };
    let live_path = format!(
        "/live{}?diff={}",
        path(&detail.plan.id),
        percent_encode(&changes.fingerprint)
    );
    let changes_part = Some((&changes, &view));
    let live = live(&app, &visitor, &detail, (&changes.fingerprint, changes_part));
    Ok(page_below(
        &app,
        &visitor,
        Place::Plans,
        (&title(&detail.plan), &live_path),
        &live,
    ))
}

pub(super) async fn show_live(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    id: Result<Path<String>, PathRejection>,
    before: Result<Query<Before>, QueryRejection>,
) -> Result<Markup, PageError> {
    let before = before.map(|Query(before)| before).unwrap_or_default();
    let detail = find(&app, id).await?;
    Ok(live(&app, &visitor, &detail, (&before.diff, None)))
}

/// The plan of an address.
pub(super) async fn find(app: &App, id: Result<Path<String>, PathRejection>) -> Result<Detail, PageError> {
    // An id that cannot be read is one that nobody has.
    let text = id.map(|Path(id)| id).unwrap_or_default();
    let Ok(id) = text.parse::<PlanId>() else {
        return Err(not_there(&text));
    };
    match read(app, id).await {
        Ok(detail) => Ok(detail),
        Err(PlanError::NotFound(_)) => Err(not_there(&text)),
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

fn not_there(id: &str) -> PageError {
    let detail = html! {
        p { "There is no plan with the id " code { (id) } ". It may have been forgotten." }
        p { a href="/plans" { "All plans" } }
    };
    PageError::new(ErrorCode::PlanNotFound, detail)
}

fn bad_address() -> PageError {
    let detail = html! {
        p { "The address doesn't say which part of the plan to show." }
        p { a href="/plans" { "All plans" } }
    };
    PageError::new(ErrorCode::InvalidQuery, detail)
}

/// A plan, or the list of them, cannot be read.
pub(super) fn unreadable(error: PlanError) -> PageError {
    let code = match &error {
        PlanError::NotFound(_) => ErrorCode::PlanNotFound,
        PlanError::ChangesetNotFound(_) => ErrorCode::ChangesetNotFound,
        PlanError::Closing => ErrorCode::ShuttingDown,
        _ => ErrorCode::LogFailed,
    };
    let problem = Problem::from(error);
    PageError::new(
        code,
        html! { p { (problem.detail()) } p { a href="/plans" { "All plans" } } },
    )
}

/// `changes` is there when the page is loaded. The script keeps that part, so that it is not made again and again.
fn live(
    app: &App,
    visitor: &Visitor,
    detail: &Detail,
    (fingerprint, changes): (&str, Option<(&PlanDiff, &View)>),
) -> Markup {
    let seen = match fingerprint == detail.plan.fingerprint {
        true => Seen::Current,
        false => Seen::Outdated,
    };
    live_part(app, visitor, REFRESH, &content(visitor, detail, seen, changes))
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
        div data-part="conflicts" { (plan_conflicts::section(plan)) }
        div data-part="commands" { (plan_parts::commands(plan, now_ms())) }
        div data-part="checks" { (plan_parts::checks(plan)) }
        div data-part="overlaps" { (plan_parts::overlaps(plan)) }
        section class="card changes" aria-labelledby="changes" data-part="changes" data-keep {
            @if let Some((diff, view)) = changes { (section(diff, view)) }
        }
        section class="card" aria-labelledby="changesets" data-part="changesets" {
            h2 id="changesets" { "Changesets" }
            (plan_changesets::section(plan, &detail.changesets, visitor))
        }
        div data-part="left out" { (plan_parts::left_out(plan)) }
        section class="card" aria-labelledby="timeline" data-part="timeline" {
            h2 id="timeline" { "Timeline" }
            (plan_lanes::of_plan(&detail.moments, now_ms()))
            details class="manage" data-key="moments" {
                summary { "Show as a list" }
                (plan_timeline::list(&detail.moments))
            }
        }
    }
}

fn notice(plan: &Plan, seen: Seen) -> Markup {
    html! {
        @if let Some(notice) = &plan.notice { div class="notice warn" role="status" { p { (sentence(notice)) } } }
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

fn sentence(text: &str) -> String {
    let text = one_line(text);
    let mut characters = text.chars();
    let first: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", characters.as_str())
}

fn facts(plan: &Plan) -> Markup {
    let time = |at: &str| html! { time datetime=(at) { (readable(at)) } };
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

/// As much of a hash as people compare.
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

    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::super::plan_diff::tests::{diff as plan_diff, file, hunk};
    use super::super::plan_state::tests::{plan, refused};
    use super::*;
    use crate::app::tests::detached;

    async fn rendered(plan: Plan, seen: Seen, with_changes: bool) -> String {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
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

    #[tokio::test]
    async fn everything_that_is_known_is_shown() {
        let plan = Plan {
            parent: Some("plan_0".to_owned()),
            children: vec!["plan_8".to_owned(), "plan_9".to_owned()],
            sandbox_root: "/data/sandboxes/1/tree".to_owned(),
            notice: Some("its workspace is gone".to_owned()),
            ..plan(PlanState::Sealed)
        };
        let page = rendered(plan, Seen::Current, true).await;
        for part in [
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
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[tokio::test]
    async fn the_parts_are_always_the_same() {
        // The script replaces parts one by one only then, and the changes stay.
        let whole = rendered(plan(PlanState::Open), Seen::Current, true).await;
        let conflicted = Plan {
            refused: Some(refused("apply")),
            ..plan(PlanState::Sealed)
        };
        let other = rendered(conflicted, Seen::Outdated, false).await;
        assert_eq!(parts(&whole), parts(&other));
        assert!(
            other.contains("data-part=\"changes\" data-keep></section>"),
            "{other}"
        );
    }

    #[tokio::test]
    async fn a_plan_that_has_changed_says_so() {
        let current = rendered(plan(PlanState::Sealed), Seen::Current, false).await;
        let outdated = rendered(plan(PlanState::Sealed), Seen::Outdated, false).await;
        assert!(
            !current.contains("id=\"outdated\"") && current.contains("id=\"apply\""),
            "{current}"
        );
        assert!(
            outdated.contains("id=\"outdated\"") && !outdated.contains("id=\"apply\""),
            "{outdated}"
        );
    }

    #[tokio::test]
    async fn what_a_plan_says_is_shown_as_text() {
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            opened_by: HOSTILE.to_owned(),
            notice: Some(HOSTILE.to_owned()),
            ..plan(PlanState::Open)
        };
        assert_harmless(&rendered(hostile, Seen::Current, false).await);
    }
}
