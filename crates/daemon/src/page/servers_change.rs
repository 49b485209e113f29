//! The buttons of a language server. Each form names the generation that its reader saw.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Redirect;
use kernel::Deadline;
use maud::{Markup, html};
use protocol::{ChangeServer, Current, Server, ServerState};
use serde::Deserialize;

use super::form::{OwnForm, token_field};
use super::notice::Notice;
use super::server_log;
use super::sign_in::Visitor;
use crate::app::App;
use crate::http::Problem;
use crate::http::lsp::servers::{self, ServerChange};

/// How long a form waits for its outcome. A server may take a minute to start; by then the page has long shown what
/// is going on, so that nobody needs to look at an empty one.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Action {
    Start,
    Restart,
    Stop,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Restart => "Restart",
            Self::Stop => "Stop",
        }
    }

    fn value(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Restart => "restart",
            Self::Stop => "stop",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Start => "was started and is ready",
            Self::Restart => "was restarted and is ready",
            Self::Stop => "was stopped and stays off until you start it",
        }
    }

    fn begun(self) -> &'static str {
        match self {
            Self::Start => "is being started",
            Self::Restart => "is being restarted",
            Self::Stop => "is being stopped",
        }
    }
}

/// The page that a form stands on, and leads back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    #[default]
    List,
    Detail,
}

/// The form behind every button.
#[derive(Debug, Deserialize)]
pub(super) struct ChangeForm {
    id: String,
    generation: u64,
    action: Action,
    #[serde(default)]
    origin: Origin,
}

/// What can be done about a server as it is.
pub(super) fn buttons(server: &Server, visitor: &Visitor, origin: Origin) -> Markup {
    let actions: &[Action] = match server.state {
        ServerState::Stopped => &[Action::Start],
        ServerState::Stopping => &[],
        ServerState::Starting | ServerState::Ready | ServerState::Restarting | ServerState::Failed => {
            &[Action::Restart, Action::Stop]
        }
    };
    let origin = match origin {
        Origin::List => "list",
        Origin::Detail => "detail",
    };
    html! {
        @for action in actions {
            form method="post" action="/servers/change" {
                (token_field(visitor))
                input type="hidden" name="id" value=(server.id);
                input type="hidden" name="generation" value=(server.generation);
                input type="hidden" name="action" value=(action.value());
                input type="hidden" name="origin" value=(origin);
                button data-key={ (action.value()) " " (server.id) }
                    aria-label={ (action.word()) " " (server.server) " in " (server.root) } { (action.word()) }
            }
        }
    }
}

pub(super) async fn change(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ChangeForm>,
) -> Redirect {
    let notice = notice(&app, &fields).await;
    tracing::info!(?notice, "a form of the page was handled");
    app.sessions.leave_notice(visitor.session.id, notice);
    match fields.origin {
        Origin::List => Redirect::to("/servers"),
        Origin::Detail => Redirect::to(&server_log::path(&fields.id)),
    }
}

async fn notice(app: &App, form: &ChangeForm) -> Notice {
    let name = match app.language_servers.find(&form.id) {
        Ok(server) => server.server,
        Err(problem) => return refused(form.id.clone(), &problem),
    };
    let change = match form.action {
        Action::Start => ServerChange::StartAgain,
        Action::Restart => ServerChange::Restart,
        Action::Stop => ServerChange::Stop,
    };
    let seen = ChangeServer {
        generation: Some(form.generation),
    };
    let work = servers::change(app, &form.id, seen, change);
    let patience = Deadline::after(&app.clock, PATIENCE).passed();
    // Whoever waits no longer ends only the wait: what others share goes on.
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome.map(|_| form.action.done()),
        () = patience => Ok(form.action.begun()),
    };
    match outcome {
        Ok(outcome) => Notice::Server { name, outcome },
        Err(problem) => match problem.current() {
            Some(Current::Server(current)) => Notice::ServerMoved {
                current: current.clone(),
            },
            _ => refused(name, &problem),
        },
    }
}

fn refused(name: String, problem: &Problem) -> Notice {
    Notice::ServerRefused {
        name,
        reason: problem.detail().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::servers::tests::server;
    use super::*;
    use crate::app::tests::detached;

    #[tokio::test]
    async fn a_form_carries_what_its_reader_saw() {
        let app = detached().await;
        let visitor = Visitor::for_tests(&app);
        let form = buttons(&server("ruff"), &visitor, Origin::Detail).into_string();
        let token = visitor.session.form_token.reveal();
        for part in [
            format!("name=\"form_token\" value=\"{token}\""),
            "name=\"id\" value=\"ruff-1a2b\"".to_owned(),
            "name=\"generation\" value=\"3\"".to_owned(),
            "name=\"action\" value=\"restart\"".to_owned(),
            "name=\"origin\" value=\"detail\"".to_owned(),
            "aria-label=\"Restart ruff in /home/me/project\"".to_owned(),
        ] {
            assert!(form.contains(&part), "{part}: {form}");
        }
    }

    #[test]
    fn notices_say_what_became_of_it() {
        let moved = Notice::ServerMoved {
            current: Box::new(server("ruff")),
        };
        for (notice, expected) in [
            (
                Notice::Server {
                    name: "a<b".to_owned(),
                    outcome: Action::Restart.begun(),
                },
                "notice good\" role=\"status\"><p>“a&lt;b” is being restarted.",
            ),
            (
                moved,
                "“ruff” has moved since you looked: it is now <strong>ready</strong> (generation 3). Nothing was changed.",
            ),
            (
                Notice::ServerRefused {
                    name: "ruff".to_owned(),
                    reason: "It ended.".to_owned(),
                },
                "“ruff” could not be changed: It ended.",
            ),
        ] {
            let rendered = notice.render().into_string();
            assert!(rendered.contains(expected), "{rendered}");
        }
    }
}
