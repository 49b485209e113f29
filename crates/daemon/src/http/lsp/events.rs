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

/// A count that no count is.
const NEVER_SEEN: u64 = u64::MAX;

/// All language servers now, and again after each change.
///
/// Each event is named `servers`, and its data is a `ServerList`. The first one comes at once. Several changes in a
/// short time may be one event. The stream ends when the daemon does.
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

/// Tells when one of them has changed.
pub(in crate::http) struct Servers {
    app: Arc<App>,
    /// The count of changes at which they were read last.
    seen: u64,
}

impl Servers {
    /// The count is read before the list: a change in between is then told twice, and never missed.
    pub(in crate::http) async fn of(app: &Arc<App>) -> Self {
        let scope = app.life.scope();
        let seen = tokio::select! {
            biased;
            seen = app.language_servers.changed(NEVER_SEEN, &scope) => seen.unwrap_or(NEVER_SEEN),
            // Nobody counts yet, so nothing has changed.
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
