//! The state of all language servers as a stream of server-sent events.
//!
//! It tells the level, not the edge: each event is the whole list as it is then, so that several changes may be one
//! event and a reader that comes late, or comes back, needs nothing from before.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use api::ServerList;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use kernel::{Deadline, Scope};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::http::pieces::{Piece, Source};
use crate::http::problem::Problem;
use crate::http::sse::{HEARTBEAT, NOTHING_NEW, OPENING, stream_of, take_place};

/// The shortest time between two events. A server that reads a workspace reports its progress hundreds of times a
/// second; nobody can look as often, and the list has to be made each time.
const BREATH: Duration = Duration::from_millis(100);

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
        (status = 429, description = "`stream_limit_reached`", body = api::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let place = take_place(&app)?;
    Ok(stream_of(Changes {
        scope: app.life.scope(),
        app,
        told: Told::Nothing,
        _place: place,
    }))
}

/// Where the pieces of the stream come from.
struct Changes {
    app: Arc<App>,
    scope: Scope,
    told: Told,
    _place: OwnedSemaphorePermit,
}

/// What the reader has been told.
enum Told {
    Nothing,
    /// How soon to come back.
    Opening,
    /// The list at this count, and when the next one may follow.
    List {
        count: u64,
        breath: Deadline,
    },
}

impl Source for Changes {
    async fn next(mut self) -> Piece<Self> {
        let text = match self.told {
            Told::Nothing => {
                self.told = Told::Opening;
                OPENING.to_owned()
            }
            Told::Opening => {
                // The count is read before the list: a change in between is then told twice, and never missed.
                let count = tokio::select! {
                    biased;
                    count = self.app.language_servers.changed(NEVER_SEEN, &self.scope) => count.ok()?,
                    // Nobody counts yet, so nothing has changed.
                    () = ready(()) => 0,
                };
                self.tell(count)
            }
            Told::List { count, ref breath } => {
                let silence = Deadline::after(&self.app.clock, HEARTBEAT).passed();
                let changed = async {
                    let changed = self.app.language_servers.changed(count, &self.scope).await;
                    tokio::select! {
                        biased;
                        _ = self.scope.wait() => {}
                        () = breath.clone().passed() => {}
                    }
                    changed
                };
                let seen = tokio::select! {
                    biased;
                    // The daemon drains. The end of the stream tells the reader to come back to the next one.
                    changed = changed => Some(changed.ok()?),
                    () = silence => None,
                };
                match seen {
                    Some(count) => self.tell(count),
                    None => NOTHING_NEW.to_owned(),
                }
            }
        };
        Some((self, Ok(Bytes::from(text))))
    }
}

impl Changes {
    fn tell(&mut self, count: u64) -> String {
        self.told = Told::List {
            count,
            breath: Deadline::after(&self.app.clock, BREATH),
        };
        let list = ServerList {
            servers: self.app.language_servers.list(),
        };
        // A struct of strings and numbers always becomes JSON, and JSON in one line is one line of data.
        let data = serde_json::to_string(&list).unwrap_or_default();
        format!("event: servers\ndata: {data}\n\n")
    }
}
