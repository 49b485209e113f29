//! The page of workspaces: where agents work, whether it is still there, and what plans of it must pass.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Redirect;
use maud::{Markup, html};
use protocol::{Workspace, WorkspaceId, WorkspaceState};
use serde::Deserialize;

use super::error::PageError;
use super::form::{OwnForm, token_field};
use super::layout::{Place, live_part, page_below};
use super::notice::Notice;
use super::overview::readable;
use super::plan_detail::unreadable;
use super::plan_notice::PlanNotice;
use super::plan_text::{exact, exact_words};
use super::plans;
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::Problem;
use crate::plans::wire::workspace_to_wire;

/// Nobody watches this for long.
const REFRESH: Duration = Duration::from_secs(5);

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Result<Markup, PageError> {
    let live = live(&app, &visitor).await?;
    Ok(page_below(
        &app,
        &visitor,
        Place::Plans,
        ("Workspaces", "/live/workspaces"),
        &live,
    ))
}

pub(super) async fn show_live(State(app): State<Arc<App>>, visitor: Visitor) -> Result<Markup, PageError> {
    live(&app, &visitor).await
}

async fn live(app: &App, visitor: &Visitor) -> Result<Markup, PageError> {
    match app.plans.workspaces().await {
        Ok(workspaces) => {
            let workspaces: Vec<Workspace> = workspaces.iter().map(workspace_to_wire).collect();
            Ok(live_part(app, visitor, REFRESH, &content(&workspaces, visitor)))
        }
        Err(error) => Err(unreadable(error)),
    }
}

fn content(workspaces: &[Workspace], visitor: &Visitor) -> Markup {
    html! {
        div class="heading" data-part="heading" {
            div {
                h1 { "Workspaces" }
                p { "The directories your agents work in. A directory is registered when it is first used." }
            }
        }
        div data-part="workspaces" {
            @if workspaces.is_empty() {
                div class="card empty" {
                    h2 { "No workspaces yet" }
                    p { "Run an agent, or any command, in a directory to register it." }
                    p { code { "tidelock exec -- claude" } }
                }
            } @else {
                div class="card table" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Workspace" }
                                th scope="col" { "State" }
                                th scope="col" { "Checks" }
                                th scope="col" class="count" { "Open plans" }
                                th scope="col" { span class="skip" { "Actions" } }
                            }
                        }
                        tbody { @for workspace in workspaces { (row(workspace, visitor)) } }
                    }
                }
            }
            p { a href="/plans" data-key="plans" { "All plans" } }
        }
    }
}

fn row(workspace: &Workspace, visitor: &Visitor) -> Markup {
    html! {
        tr data-workspace=(workspace.id) {
            th scope="row" {
                a href=(plans::of_workspace(&workspace.id)) data-key={ "plans of " (workspace.id) } { code { (exact(&workspace.root)) } }
                small {
                    @if workspace.git { "git repository, " }
                    "since " time datetime=(workspace.registered_at) { (readable(&workspace.registered_at)) }
                }
            }
            td class="state" { (badge(workspace.state)) }
            td class="act" {
                @if workspace.checks.is_empty() {
                    "none"
                } @else {
                    ul class="plain-list" { @for check in &workspace.checks { li { code { (exact(check)) } } } }
                }
            }
            td class="count" data-label="Open plans" { (workspace.open_plans) }
            td class="act" { div class="actions" { (forget_button(workspace, visitor)) } }
        }
    }
}

fn badge(state: WorkspaceState) -> Markup {
    let (class, word, why) = match state {
        WorkspaceState::Present => ("badge good", "Present", None),
        WorkspaceState::Missing => ("badge bad", "Gone", Some("nothing exists at its path")),
        WorkspaceState::Replaced => ("badge bad", "Gone", Some("another directory is now at its path")),
        WorkspaceState::Unreachable => (
            "badge bad",
            "Unreachable",
            Some("its file system doesn't respond"),
        ),
    };
    html! { span class=(class) { (word) } @if let Some(why) = why { small { (why) } } }
}

/// One with plans that are not over is not forgotten.
fn forget_button(workspace: &Workspace, visitor: &Visitor) -> Markup {
    html! {
        @if workspace.open_plans == 0 {
            form method="post" action="/workspaces/forget" {
                (token_field(visitor))
                input type="hidden" name="id" value=(workspace.id);
                button data-key={ "forget " (workspace.id) } title="Its files are not touched"
                    aria-label={ "Forget " (exact_words(&workspace.root)) } { "Forget" }
            }
        }
    }
}

/// The form behind the Forget buttons. It needs no version: a workspace that is in use is not forgotten.
#[derive(Debug, Deserialize)]
pub(super) struct ForgetForm {
    id: String,
}

pub(super) async fn forget(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ForgetForm>,
) -> Redirect {
    let notice = forgotten(&app, &fields.id).await;
    tracing::info!(?notice, "a form of the page was handled");
    app.sessions
        .leave_notice(visitor.session.id, Notice::Plan(notice));
    Redirect::to("/workspaces")
}

async fn forgotten(app: &App, text: &str) -> PlanNotice {
    let Ok(id) = text.parse::<WorkspaceId>() else {
        return PlanNotice::refused(text.to_owned(), "There is no such workspace.");
    };
    let workspaces = app.plans.workspaces().await.unwrap_or_default();
    let known = workspaces.iter().find(|workspace| workspace.id == id);
    let root = known.map_or_else(
        || text.to_owned(),
        |known| known.record.root.display().to_string(),
    );
    match app.plans.forget_workspace(id).await {
        Ok(()) => PlanNotice::Forgotten { root },
        Err(error) => PlanNotice::refused(root, Problem::from(error).detail()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tests::detached;

    fn workspace(state: WorkspaceState, open_plans: u64) -> Workspace {
        Workspace {
            id: "workspace_1".to_owned(),
            state,
            root: "/home/me/<b>\u{202e}".to_owned(),
            git: true,
            checks: vec!["make <test>".to_owned()],
            registered_at: "2026-01-31T09:30:00Z".to_owned(),
            open_plans,
            stuck: None,
            notice: None,
        }
    }

    async fn rendered(workspaces: &[Workspace]) -> String {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        content(workspaces, &visitor).into_string()
    }

    #[tokio::test]
    async fn a_row_has_what_people_look_for() {
        let page = rendered(&[workspace(WorkspaceState::Present, 0)]).await;
        for part in [
            "<code>/home/me/&lt;b&gt;<span class=\"odd\">&lt;U+202E&gt;</span></code></a><small>git repository, since ",
            "<span class=\"badge good\">Present</span></td>",
            "<li><code>make &lt;test&gt;</code></li>",
            "data-label=\"Open plans\">0</td>",
            "aria-label=\"Forget /home/me/&lt;b&gt;&lt;U+202E&gt;\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains('\u{202e}'), "{page}");
        let empty = rendered(&[]).await;
        assert!(empty.contains("<code>tidelock exec -- claude</code>"), "{empty}");
    }

    #[tokio::test]
    async fn one_in_use_is_not_forgotten_and_one_that_is_gone_says_so() {
        for (state, open_plans, can_be_forgotten, part) in [
            (WorkspaceState::Present, 2, false, "Present</span>"),
            (
                WorkspaceState::Missing,
                0,
                true,
                "Gone</span><small>nothing exists at its path",
            ),
            (
                WorkspaceState::Replaced,
                1,
                false,
                "Gone</span><small>another directory",
            ),
        ] {
            let page = rendered(&[workspace(state, open_plans)]).await;
            assert_eq!(page.contains(">Forget</button>"), can_be_forgotten, "{state:?}");
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
