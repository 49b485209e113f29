//! What is in the streams of sessions and turns, page by page, for those who do not follow them.

use eventlog::{Page, Sequence};
use protocol::{SessionId, TurnId};

use crate::error::SessionError;
use crate::service::Sessions;
use crate::streams::{session_stream, turn_stream};

impl Sessions {
    /// What has happened to a session after a place, oldest first; each is a [`Happening`](crate::Happening).
    /// *Cancel safety*: it only reads.
    pub async fn happenings(
        &self,
        session: SessionId,
        after: Sequence,
        limit: u32,
    ) -> Result<Page, SessionError> {
        let stream = session_stream(session)?;
        Ok(self.shared.log.read(&stream, after, limit).await?)
    }

    /// What has happened in a turn after a place, oldest first; each is a [`TurnEvent`](crate::TurnEvent).
    /// *Cancel safety*: it only reads.
    pub async fn turn_events(&self, turn: TurnId, after: Sequence, limit: u32) -> Result<Page, SessionError> {
        let stream = turn_stream(turn)?;
        Ok(self.shared.log.read(&stream, after, limit).await?)
    }
}
