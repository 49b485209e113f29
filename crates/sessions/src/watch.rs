//! Watches a session while one of its turns runs: for stop requests, answers, and the end of the daemon.

use std::sync::Arc;

use eventlog::TailEnd;
use kernel::{CancellationToken, Cause, Deadline, Slot};
use protocol::{SessionId, TurnId};

use crate::error::SessionError;
use crate::inner::SessionsInner;
use crate::pause::LogPause;
use crate::session::{Asked, Session, Stop};
use crate::store;
use crate::streams::session_stream;

/// The questions of a turn, as stored in the session.
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
    /// Takes over the questions from the session. It has only one caller.
    pub(crate) fn publish(&self, asked: Vec<Asked>) {
        let seen = self.asked.read();
        if *seen.state != asked {
            // This fails only if there is another writer, and there isn't.
            drop(self.asked.transition(seen.generation, asked));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Why {
    /// A stop was requested.
    Stopped(Stop),
    /// The daemon is shutting down.
    Closing,
    /// It took too long.
    TimedOut,
    /// Another daemon has ended it.
    TakenAway,
}

impl Why {
    pub(crate) fn cause(&self) -> Cause {
        match self {
            Self::Stopped(stop) => Cause::new(stop.by.to_string(), stop.why.clone()),
            Self::Closing => Cause::new("the daemon", "it is shutting down"),
            Self::TimedOut => Cause::deadline(),
            Self::TakenAway => Cause::new("the log", "another daemon has ended the turn"),
        }
    }
}

/// Follows the session of a turn until the turn must end.
///
/// *Cancel safety*: the future may be dropped at any time.
pub(crate) async fn watch(
    shared: &Arc<SessionsInner>,
    session: &Session,
    turn: TurnId,
    questions: &Questions,
) -> Why {
    let (closing, lease) = (shared.open.scope(), shared.tenure.scope());
    tokio::select! {
        biased;
        _ = lease.wait() => Why::TakenAway,
        why = follow(shared, session, turn, questions) => why,
        _ = closing.wait() => Why::Closing,
        () = worked_too_long(shared, questions) => Why::TimedOut,
    }
}

/// Waits until a turn has exceeded its time limit. Time spent waiting for the user doesn't count.
async fn worked_too_long(shared: &Arc<SessionsInner>, questions: &Questions) {
    let never = CancellationToken::new().scope();
    let mut left = shared.settings.turn_timeout;
    loop {
        let since = shared.clock.now();
        let deadline = Deadline::after(&shared.clock, left);
        if questions
            .asked
            .wait_until(|asked: &Vec<Asked>| is_asking(asked), deadline, &never)
            .await
            .is_err()
        {
            return;
        }
        left = left.saturating_sub(shared.clock.now().saturating_duration_since(since));
        let answered = |asked: &Vec<Asked>| !is_asking(asked);
        if questions
            .asked
            .wait_until(answered, Deadline::never(), &never)
            .await
            .is_err()
        {
            return;
        }
    }
}

fn is_asking(asked: &[Asked]) -> bool {
    asked.iter().any(|asked| asked.answer.is_none())
}

/// Reads the session whenever it changes. While the log fails, it retries until the turn is over, and then finds stop requests
/// and answers that arrived in the meantime.
async fn follow(shared: &Arc<SessionsInner>, session: &Session, turn: TurnId, questions: &Questions) -> Why {
    let Ok(stream) = session_stream(session.id) else {
        return Why::TakenAway;
    };
    let scope = shared.open.scope();
    let mut tail = shared.log.tail(&stream, session.last_sequence, &scope);
    let mut pause = LogPause::new();
    loop {
        let mut looked = match tail.next().await {
            Ok(_) => {
                pause.reset();
                look(shared, session.id, turn, questions).await
            }
            Err(TailEnd::Cancelled(_)) => return Why::Closing,
            Err(TailEnd::Log(error)) => Err(error.into()),
        };
        while let Err(error) = &looked {
            tracing::warn!(%error, %turn, "could not read the session of a turn; retrying");
            pause.wait(&shared.clock).await;
            looked = look(shared, session.id, turn, questions).await;
        }
        if let Ok(Some(why)) = looked {
            return why;
        }
    }
}

/// Why the turn must end, if the session says so.
async fn look(
    shared: &SessionsInner,
    session: SessionId,
    turn: TurnId,
    questions: &Questions,
) -> Result<Option<Why>, SessionError> {
    let now = match store::session(&shared.log, session).await {
        Ok(now) => now,
        Err(SessionError::NotFound(_)) => return Ok(Some(Why::TakenAway)),
        Err(error) => return Err(error),
    };
    Ok(match now.record.active {
        Some(active) if active.turn == turn => {
            questions.publish(active.asked);
            active.stop.map(Why::Stopped)
        }
        _ => Some(Why::TakenAway),
    })
}
