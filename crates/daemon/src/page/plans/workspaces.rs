//! The workspaces page: where agents work, whether the directory still exists, and which checks its plans must pass.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use maud::{Markup, html};
use protocol::{Workspace, WorkspaceId, WorkspaceState};
use serde::Deserialize;

use super::act::refused;
use super::detail::unreadable;
use super::list::of_workspace;
use super::notice;
use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::error::PageError;
use crate::page::parts::form::{Notice, OwnForm, button_form, done};
use crate::page::parts::layout::{Live, Refresh};
use crate::page::parts::list::Column::{Actions, Count, Text};
use crate::page::parts::list::{count, empty, heading, table_card};
use crate::page::parts::text::{self, exact, exact_words};
use crate::page::parts::times::time;
use crate::plans::wire::workspace_to_wire;

pub(crate) async fn read(app: Arc<App>, visitor: Visitor, _: ()) -> Result<Live, PageError> {
    match app.plans.workspaces().await {
        Ok(workspaces) => {
            let workspaces: Vec<Workspace> = workspaces.iter().map(workspace_to_wire).collect();
            let content = content(&workspaces, &visitor);
            Ok(Live::new("Workspaces", Refresh::Still, content))
        }
        Err(error) => Err(unreadable(error)),
    }
}

fn content(workspaces: &[Workspace], visitor: &Visitor) -> Markup {
    html! {
        (heading("Workspaces", "The directories your agents work in. A directory is registered when it is first used."))
        div data-part="workspaces" {
            @if workspaces.is_empty() {
                (empty(
                    "No workspaces yet",
                    "Run an agent, or any command, in a directory to register it.",
                    "tidelock exec -- claude",
                ))
            } @else {
                (table_card(
                    &[Text("Workspace"), Text("State"), Text("Checks"), Count("Open plans"), Actions],
                    workspaces.iter().map(|workspace| row(workspace, visitor)),
                ))
            }
            p { a href="/plans" data-key="plans" { "All plans" } }
        }
    }
}

fn row(workspace: &Workspace, visitor: &Visitor) -> Markup {
    html! {
        tr data-workspace=(workspace.id) {
            th scope="row" {
                a href=(of_workspace(&workspace.id)) data-key={ "plans of " (workspace.id) } { code { (exact(&workspace.root)) } }
                small {
                    @if workspace.git { "git repository, " }
                    "since " (time(&workspace.registered_at))
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
            (count("Open plans", workspace.open_plans))
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
    html! { (text::badge((class, word))) @if let Some(why) = why { small { (why) } } }
}

fn forget_button(workspace: &Workspace, visitor: &Visitor) -> Markup {
    html! {
        @if workspace.open_plans == 0 {
            (button_form(visitor, "/workspaces/forget", &[("id", &workspace.id)], &html! {
                button data-key={ "forget " (workspace.id) } title="Its files are not touched"
                    aria-label={ "Forget " (exact_words(&workspace.root)) } { "Forget" }
            }))
        }
    }
}

/// The form behind the Forget buttons. It needs no version: a workspace in use can't be forgotten.
#[derive(Debug, Deserialize)]
pub(crate) struct ForgetForm {
    id: String,
}

pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ForgetForm>,
) -> Redirect {
    done(&app, &visitor, forgotten(&app, &fields.id).await, "/workspaces")
}

async fn forgotten(app: &App, text: &str) -> Notice {
    let Ok(id) = text.parse::<WorkspaceId>() else {
        return notice::refused(text, "There is no such workspace.");
    };
    let workspaces = app.plans.workspaces().await.unwrap_or_default();
    let known = workspaces.iter().find(|workspace| workspace.id == id);
    let root = known.map_or_else(
        || text.to_owned(),
        |known| known.record.root.display().to_string(),
    );
    match app.plans.forget_workspace(id).await {
        Ok(()) => notice::forgotten(&root),
        Err(error) => refused(&root, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parts::text::tests::assert_parts;

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

    fn rendered(workspaces: &[Workspace]) -> String {
        content(workspaces, &Visitor::example()).into_string()
    }

    #[test]
    fn a_row_has_what_people_look_for() {
        let page = rendered(&[workspace(WorkspaceState::Present, 0)]);
        assert_parts(
            &page,
            &[
                "<code>/home/me/&lt;b&gt;<span class=\"odd\">&lt;U+202E&gt;</span></code></a><small>git repository, since ",
                "<span class=\"badge good\">Present</span></td>",
                "<li><code>make &lt;test&gt;</code></li>",
                "data-label=\"Open plans\">0</td>",
                "aria-label=\"Forget /home/me/&lt;b&gt;&lt;U+202E&gt;\"",
            ],
        );
        assert!(!page.contains('\u{202e}'), "{page}");
        let empty = rendered(&[]);
        assert!(empty.contains("<code>tidelock exec -- claude</code>"), "{empty}");
    }

    #[test]
    fn one_in_use_is_not_forgotten_and_one_that_is_gone_says_so() {
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
            let page = rendered(&[workspace(state, open_plans)]);
            assert_eq!(page.contains(">Forget</button>"), can_be_forgotten, "{state:?}");
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
