//! What happens to a session while one of its turns runs: wishes to stop, answers, and the end of the daemon.

use std::sync::Arc;

use kernel::{Cause, Deadline, Slot, TurnId};

use crate::error::SessionError;
use crate::session::{Asked, Session, Stop};
use crate::shared::Shared;
use crate::store;
use crate::streams::session_stream;

/// What the user was asked in a turn, as the session has it.
#[derive(Clone, Debug)]
pub(crate) struct Questions {
    pub(crate) asked: Slot<Vec<Asked>>,
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            asked: Slot::new(Vec::new()),
        }
    }
}

impl Questions {
    /// Takes over what the session says. There is one who does that.
    pub(crate) fn publish(&self, asked: Vec<Asked>) {
        let seen = self.asked.read();
        if *seen.state != asked {
            // Refused only if somebody else was faster, and nobody else writes.
            drop(self.asked.transition(seen.generation, asked));
        }
    }
}

/// Why a turn shall end.
#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// Somebody wants it.
    Stopped(Stop),
    /// The daemon ends.
    Closing,
    /// It took too long.
    TimedOut,
    /// It is no longer ours.
    TakenAway,
}

impl Why {
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Stopped(stop) => Cause::new(stop.by.to_string(), stop.why.clone()),
            Self::Closing => Cause::new("the daemon", "it was told to end"),
            Self::TimedOut => Cause::deadline(),
            Self::TakenAway => Cause::new("the log", "the turn is no longer this daemon's"),
        }
    }
}

/// Follows the session of a turn until that shall end.
///
/// *Cancel safety*: may be dropped at any time.
pub(crate) async fn watch(
    shared: &Arc<Shared>,
    session: &Session,
    turn: TurnId,
    questions: &Questions,
) -> Why {
    let closing = shared.open.scope();
    let too_long = Deadline::after(&shared.clock, shared.settings.turn_timeout);
    tokio::select! {
        biased;
        why = follow(shared, session, turn, questions) => why,
        _ = closing.wait() => Why::Closing,
        () = too_long.passed() => Why::TimedOut,
    }
}

async fn follow(shared: &Arc<Shared>, session: &Session, turn: TurnId, questions: &Questions) -> Why {
    let Ok(stream) = session_stream(session.id) else {
        return Why::TakenAway;
    };
    let scope = shared.open.scope();
    let mut tail = shared.log.tail(&stream, session.last_sequence, &scope);
    loop {
        if let Err(error) = tail.next().await {
            tracing::debug!(%error, %turn, "the session of a turn is not followed any more");
            // Its recorder, or the end of the daemon, ends it.
            return std::future::pending().await;
        }
        match store::session(&shared.log, session.id).await {
            Ok(now) => match now.record.active {
                Some(active) if active.turn == turn => {
                    questions.publish(active.asked);
                    if let Some(stop) = active.stop {
                        return Why::Stopped(stop);
                    }
                }
                _ => return Why::TakenAway,
            },
            Err(SessionError::NotFound(_)) => return Why::TakenAway,
            Err(error) => {
                tracing::warn!(%error, %turn, "the session of a turn cannot be read");
            }
        }
    }
}
