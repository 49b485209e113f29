//! Lists that are told again after each change, as a stream of server-sent events.
//!
//! They tell the level, not the edge: each event is the whole list as it is then, so that several changes may be one event
//! and a reader that comes late, or comes back, needs nothing from before.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use eventlog::MovesEnd;
use kernel::{Deadline, Scope};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::pieces::{Piece, Source};
use super::problem::Problem;
use super::sse::{HEARTBEAT, NOTHING_NEW, OPENING, named, stream_of, take_place};
use crate::app::App;

/// The shortest time between two events. Things can move by the thousand in a second; nobody can look as often, and the
/// list has to be read each time.
const BREATH: Duration = Duration::from_millis(100);

/// How many of the newest are told, where there can be many. Older ones are asked for page by page.
pub(super) const NEWEST: u32 = 50;

/// A list that is told. Whoever makes one sees to it that no change from then on is missed; it is read afterwards.
pub(super) trait Listed: Send + 'static {
    /// The name of its events.
    const NAME: &'static str;
    type List: Serialize;
    type Error: Error + Send + Sync + 'static;

    /// Waits until something may have changed since the last time.
    fn moved(
        &mut self,
        silence: Deadline,
        scope: &Scope,
    ) -> impl Future<Output = Result<(), MovesEnd>> + Send;

    /// The list as it is.
    fn read(&self, app: &App) -> impl Future<Output = Result<Self::List, Self::Error>> + Send;
}

/// Answers with the list now, and again after each change.
pub(super) fn follow(app: Arc<App>, listed: impl Listed) -> Result<Response, Problem> {
    let place = take_place(&app)?;
    Ok(stream_of(Changes {
        scope: app.life.scope(),
        app,
        listed,
        told: Told::Nothing,
        _place: place,
    }))
}

/// Where the pieces of the stream come from.
struct Changes<L> {
    app: Arc<App>,
    scope: Scope,
    listed: L,
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

impl<L: Listed> Source for Changes<L> {
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
                match self.listed.moved(silence, &self.scope).await {
                    Ok(()) => {}
                    Err(MovesEnd::DeadlineExceeded) => {
                        return Some((self, Ok(Bytes::from_static(NOTHING_NEW.as_bytes()))));
                    }
                    // The daemon drains. The end of the stream tells the reader to come back to the next one.
                    Err(MovesEnd::Cancelled(_)) => return None,
                }
            }
        }
        self.told = Told::List {
            breath: Deadline::after(&self.app.clock, BREATH),
        };
        let piece = match self.listed.read(&self.app).await {
            Ok(list) => Ok(Bytes::from(named(L::NAME, &list))),
            Err(error) => {
                tracing::warn!(%error, list = L::NAME, "a stream ends because its list cannot be read");
                Err(io::Error::other(error))
            }
        };
        Some((self, piece))
    }
}
