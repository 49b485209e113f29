//! Changes queued prompts, for the HTTP API and the page.

use std::sync::Arc;

use protocol::{EditQueued, SessionId, TurnId};
use sessions::{Actor, Prompt, SessionError, Turn};

use crate::app::App;

/// Changes the text of a queued prompt, its position in the queue, or both. Its attachments stay.
///
/// *Cancel safety*: if dropped, the text may have changed but not the position.
pub(crate) async fn edit_queued(
    app: &App,
    session: SessionId,
    id: TurnId,
    change: EditQueued,
    by: Actor,
) -> Result<Turn, SessionError> {
    let mut turn = app.sessions.turn(id).await?;
    if turn.record.session != session {
        return Err(SessionError::TurnNotFound(id));
    }
    if let Some(text) = change.prompt {
        let prompt = Prompt {
            text,
            attachments: turn.record.prompt.attachments,
        };
        turn = app
            .sessions
            .edit_queued(session, id, prompt, Arc::clone(&by))
            .await?;
    }
    if let Some(place) = change.place {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        app.sessions.move_queued(session, id, place, by).await?;
        turn = app.sessions.turn(id).await?;
    }
    Ok(turn)
}
