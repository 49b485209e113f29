//! Lists as streams of server-sent events: the current list, and a new one after each change.
//!
//! Each event is the whole list, so several changes can be one event, and a reader that connects late or reconnects needs
//! no earlier event.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::Response;
use eventlog::{ChangesEnd, StreamChanges};
use jobs::JobChanges;
use kernel::{Deadline, Scope};
use serde::Serialize;

use super::pieces::{Piece, Source};
use super::problem::Problem;
use super::sse::{HEARTBEAT, NOTHING_NEW, named, stream_of, take_place};
use crate::app::App;

/// The shortest time between two events. Thousands of things can change in a second, and each event costs a read of the
/// list.
const BREATH: Duration = Duration::from_millis(100);

/// How many of the newest entries are sent where there can be many. Readers page through older ones.
pub(super) const NEWEST: u32 = 50;

/// Reports when a list may have changed. It misses no change from its creation on, and the list is read after that.
pub(super) trait Moving: Send + 'static {
    /// Waits until something may have changed since the last time.
    fn moved(
        &mut self,
        silence: Deadline,
        scope: &Scope,
    ) -> impl Future<Output = Result<(), ChangesEnd>> + Send;
}

impl Moving for StreamChanges {
    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), ChangesEnd> {
        self.next(silence, scope).await
    }
}

impl Moving for JobChanges {
    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), ChangesEnd> {
        self.next(silence, scope).await
    }
}

pub(super) type Read<L, E> = for<'a> fn(&'a App) -> Pin<Box<dyn Future<Output = Result<L, E>> + Send + 'a>>;

/// Responds with the current list, and again after each change, as events with this name.
pub(super) fn follow<L, E>(
    app: Arc<App>,
    name: &'static str,
    moves: impl Moving,
    read: Read<L, E>,
) -> Result<Response, Problem>
where
    L: Serialize + 'static,
    E: Error + Send + Sync + 'static,
{
    let place = take_place(&app)?;
    let changes = Changes {
        scope: app.life.scope(),
        app,
        name,
        moves,
        read,
        breath: None,
    };
    Ok(stream_of(place, changes))
}

/// The source of the stream.
struct Changes<M, L, E> {
    app: Arc<App>,
    scope: Scope,
    name: &'static str,
    moves: M,
    read: Read<L, E>,
    /// When the next list may be sent.
    breath: Option<Deadline>,
}

impl<M, L, E> Source for Changes<M, L, E>
where
    M: Moving,
    L: Serialize + 'static,
    E: Error + Send + Sync + 'static,
{
    async fn next(mut self) -> Piece<Self> {
        if let Some(breath) = self.breath.clone() {
            let silence = Deadline::after(&self.app.clock, HEARTBEAT);
            breath.passed().await;
            match self.moves.moved(silence, &self.scope).await {
                Ok(()) => {}
                Err(ChangesEnd::DeadlineExceeded) => {
                    return Some((self, Ok(Bytes::from_static(NOTHING_NEW.as_bytes()))));
                }
                // The daemon is draining. The end of the stream makes the reader reconnect to the next one.
                Err(ChangesEnd::Cancelled(_)) => return None,
            }
        }
        self.breath = Some(Deadline::after(&self.app.clock, BREATH));
        let piece = match (self.read)(&self.app).await {
            Ok(list) => Ok(Bytes::from(named(self.name, &list))),
            Err(error) => {
                tracing::warn!(%error, list = self.name, "a stream ends because its list cannot be read");
                Err(io::Error::other(error))
            }
        };
        Some((self, piece))
    }
}
