//! The buttons of a language server. Each form names the generation that its reader saw.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Redirect;
use kernel::Deadline;
use maud::{Markup, html};
use protocol::{ChangeServer, Current, Server, ServerState};
use serde::Deserialize;

use super::detail::path;
use super::state::label;
use crate::app::App;
use crate::http::Problem;
use crate::http::lsp::servers::{self, ServerChange};
use crate::page::login::Visitor;
use crate::page::parts::form::{Notice, OwnForm, button_form, done};

/// How long a form waits for its outcome. A server may take a minute to start; the page that follows shows its progress.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Start,
    Restart,
    Stop,
}

impl Action {
    /// Its name in a form, its label, what it did, and what it is doing.
    fn words(self) -> [&'static str; 4] {
        match self {
            Self::Start => ["start", "Start", "was started and is ready", "is being started"],
            Self::Restart => [
                "restart",
                "Restart",
                "was restarted and is ready",
                "is being restarted",
            ],
            Self::Stop => [
                "stop",
                "Stop",
                "was stopped and stays off until you start it",
                "is being stopped",
            ],
        }
    }
}

/// The page that a form is on, and returns to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    #[default]
    List,
    Detail,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChangeForm {
    id: String,
    generation: u64,
    action: Action,
    #[serde(default)]
    origin: Origin,
}

pub(crate) fn buttons(server: &Server, visitor: &Visitor, origin: Origin) -> Markup {
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
        @for [value, word, ..] in actions.iter().map(|action| action.words()) {
            (button_form(
                visitor,
                "/servers/change",
                &[("id", &server.id), ("generation", &server.generation), ("action", &value), ("origin", &origin)],
                &html! {
                    button data-key={ (value) " " (server.id) }
                        aria-label={ (word) " " (server.server) " in " (server.root) } { (word) }
                },
            ))
        }
    }
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    OwnForm { visitor, fields }: OwnForm<ChangeForm>,
) -> Redirect {
    let notice = notice(&app, &fields).await;
    let to = match fields.origin {
        Origin::List => "/servers".to_owned(),
        Origin::Detail => path(&fields.id),
    };
    done(&app, &visitor, notice, &to)
}

async fn notice(app: &App, form: &ChangeForm) -> Notice {
    let name = match app.language_servers.find(&form.id) {
        Ok(server) => server.server,
        Err(problem) => return refused(&form.id, &problem),
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
    let [_, _, is_done, has_begun] = form.action.words();
    // Only the wait ends here: the operation is shared with others and continues.
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome.map(|_| is_done),
        () = patience => Ok(has_begun),
    };
    match outcome {
        Ok(outcome) => changed(&name, outcome),
        Err(problem) => match problem.current() {
            Some(Current::Server(current)) => moved(current),
            _ => refused(&name, &problem),
        },
    }
}

fn changed(name: &str, outcome: &str) -> Notice {
    Notice::good(html! { "“" (name) "” " (outcome) "." })
}

fn moved(server: &Server) -> Notice {
    Notice::moved(&server.server, label(server), Some(server.generation))
}

fn refused(name: &str, problem: &Problem) -> Notice {
    Notice::warn(html! { "“" (name) "” could not be changed: " (problem.detail()) })
}

#[cfg(test)]
mod tests {
    use protocol::ErrorCode;

    use super::*;
    use crate::page::parts::text::tests::assert_parts;
    use crate::page::servers::list::tests::server;

    #[test]
    fn a_form_carries_what_its_reader_saw() {
        let visitor = Visitor::example();
        let token = visitor.login.form_token.reveal();
        assert_parts(
            &buttons(&server("ruff"), &visitor, Origin::Detail).into_string(),
            &[
                &format!("name=\"form_token\" value=\"{token}\""),
                "name=\"id\" value=\"ruff-1a2b\"",
                "name=\"generation\" value=\"3\"",
                "name=\"action\" value=\"restart\"",
                "name=\"origin\" value=\"detail\"",
                "aria-label=\"Restart ruff in /home/me/project\"",
            ],
        );
    }

    #[test]
    fn notices_say_what_became_of_it() {
        for (notice, expected) in [
            (
                changed("a<b", Action::Restart.words()[3]),
                "notice good\" role=\"status\"><p>“a&lt;b” is being restarted.",
            ),
            (
                moved(&server("ruff")),
                "“ruff” has moved since you looked: it is now <strong>ready</strong> (generation 3). Nothing was changed.",
            ),
            (
                refused("ruff", &Problem::new(ErrorCode::ServerFailed, "It ended.")),
                "“ruff” could not be changed: It ended.",
            ),
        ] {
            assert_parts(&notice.render().into_string(), &[expected]);
        }
    }
}
