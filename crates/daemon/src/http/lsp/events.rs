//! The state of all language servers as a stream of server-sent events.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use eventlog::ChangesEnd;
use kernel::{Deadline, Scope};
use protocol::ServerList;

use crate::app::App;
use crate::http::lists::{self, Moving};
use crate::http::problem::Problem;
use crate::http::sse::OpenStream;

/// A value that the change count never has.
const NEVER_SEEN: u64 = u64::MAX;

/// Streams the list of language servers, now and after each change.
///
/// Each event is named `servers`, and its data is a `ServerList`. The first event is sent immediately.
/// Several changes in a short time may be combined into one event. The stream ends when the daemon stops.
#[utoipa::path(
    get, path = "/v1/lsp/events", operation_id = "follow_servers", tag = "lsp",
    responses(
        (status = 200, description = "The servers, again and again.", content((String = "text/event-stream"))),
        OpenStream,
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let servers = Servers::of(&app).await;
    lists::follow(app, "servers", servers, |app| {
        let servers = app.language_servers.list();
        Box::pin(ready(Ok::<_, Infallible>(ServerList { servers })))
    })
}

/// Reports when a server has changed.
pub(in crate::http) struct Servers {
    app: Arc<App>,
    /// The change count when they were last read.
    seen: u64,
}

impl Servers {
    /// The count is read before the list, so a change in between is reported twice rather than missed.
    pub(in crate::http) async fn of(app: &Arc<App>) -> Self {
        let scope = app.life.scope();
        let seen = tokio::select! {
            biased;
            seen = app.language_servers.changed(NEVER_SEEN, &scope) => seen.unwrap_or(NEVER_SEEN),
            // The counter isn't running yet, so nothing has changed.
            () = ready(()) => 0,
        };
        Self {
            app: Arc::clone(app),
            seen,
        }
    }
}

impl Moving for Servers {
    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), ChangesEnd> {
        tokio::select! {
            biased;
            changed = self.app.language_servers.changed(self.seen, scope) => {
                self.seen = changed.map_err(ChangesEnd::Cancelled)?;
                Ok(())
            }
            () = silence.passed() => Err(ChangesEnd::DeadlineExceeded),
        }
    }
}
