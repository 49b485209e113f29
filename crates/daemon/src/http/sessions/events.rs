//! The newest sessions as a stream of server-sent events.
//!
//! It tells the level, not the edge: each event is the whole page as it is then, so that several changes may be one
//! event and a reader that comes late, or comes back, needs nothing from before.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use eventlog::{Moves, MovesEnd};
use kernel::{Deadline, Scope};
use sessions::{SessionError, SessionQuery};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::http::pieces::{Piece, Source};
use crate::http::problem::Problem;
use crate::http::sse::{HEARTBEAT, NOTHING_NEW, OPENING, stream_of, take_place};
use crate::sessions::wire;

/// The shortest time between two events. Two hundred sessions can move many times in a second; nobody can look as often,
/// and the list has to be read each time.
const BREATH: Duration = Duration::from_millis(100);

/// How many sessions are told. Older ones are asked for page by page.
const NEWEST: u32 = 50;

/// The newest sessions now, and again after each change.
///
/// Each event is named `sessions`, and its data is a `SessionList` with the newest 50. The first one comes at once. Several
/// changes in a short time may be one event. The stream ends when the daemon does.
#[utoipa::path(
    get, path = "/v1/sessions/events", operation_id = "follow_sessions", tag = "sessions",
    responses(
        (status = 200, description = "The sessions, again and again.", content((String = "text/event-stream"))),
        (status = 429, description = "`stream_limit_reached`", body = api::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let place = take_place(&app)?;
    Ok(stream_of(Changes {
        scope: app.life.scope(),
        // From here on no change is missed; the list is read afterwards.
        moves: app.conversations.moves(),
        app,
        told: Told::Nothing,
        _place: place,
    }))
}

/// Where the pieces of the stream come from.
struct Changes {
    app: Arc<App>,
    scope: Scope,
    moves: Moves,
    told: Told,
    _place: OwnedSemaphorePermit,
}

/// What the reader has been told.
enum Told {
    Nothing,
    /// How soon to come back.
    Opening,
    /// The list, and when the next one may follow.
    List {
        breath: Deadline,
    },
}

impl Source for Changes {
    async fn next(mut self) -> Piece<Self> {
        match &self.told {
            Told::Nothing => {
                self.told = Told::Opening;
                return Some((self, Ok(Bytes::from_static(OPENING.as_bytes()))));
            }
            Told::Opening => {}
            Told::List { breath } => {
                let silence = Deadline::after(&self.app.clock, HEARTBEAT);
                breath.clone().passed().await;
                match self.moves.next(silence, &self.scope).await {
                    Ok(()) => {}
                    Err(MovesEnd::DeadlineExceeded) => {
                        return Some((self, Ok(Bytes::from_static(NOTHING_NEW.as_bytes()))));
                    }
                    // The daemon drains. The end of the stream tells the reader to come back to the next one.
                    Err(MovesEnd::Cancelled(_)) => return None,
                }
            }
        }
        let piece = self.tell().await.map(Bytes::from).map_err(|error| {
            tracing::warn!(%error, "a stream ends because the sessions cannot be read");
            io::Error::other(error)
        });
        Some((self, piece))
    }
}

impl Changes {
    async fn tell(&mut self) -> Result<String, SessionError> {
        self.told = Told::List {
            breath: Deadline::after(&self.app.clock, BREATH),
        };
        let newest = SessionQuery {
            limit: NEWEST,
            ..SessionQuery::default()
        };
        let list = wire::list(&self.app.conversations, newest).await?;
        // A struct of strings and numbers always becomes JSON, and JSON in one line is one line of data.
        let data = serde_json::to_string(&list).unwrap_or_default();
        Ok(format!("event: sessions\ndata: {data}\n\n"))
    }
}
