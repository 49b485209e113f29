//! The public interface of the service.

use std::sync::Arc;

use eventlog::{Page, Sequence, StreamChanges, Tail, TailEnd, TailItem};
use kernel::{CancellationToken, Cause, Deadline, Scope};
use protocol::{PermissionAnswer, PermissionId, SessionCounts, SessionId, TurnError, TurnId};

use crate::agent::AgentInfo;
use crate::answers::{Accepted, NewTurn};
use crate::asking;
use crate::error::SessionError;
use crate::inner::{SessionsInner, refusal};
use crate::machines::{self, AwaitedMachine, Machines};
use crate::options::SessionsOptions;
use crate::owner::{self, Owner, Sharing, Tenure};
use crate::permits::TurnPermits;
use crate::prompt::Prompt;
use crate::recover::{self, Waiting};
use crate::runner;
use crate::session::{Actor, Session, Stop};
use crate::starting;
use crate::state::{self, Refused, Step};
use crate::store::{self, Made};
use crate::streams::{session_stream, turn_stream};
use crate::turn::Turn;

/// The sessions of one daemon. Clones refer to the same service.
#[derive(Clone, Debug)]
pub struct Sessions {
    pub(crate) shared: Arc<SessionsInner>,
}

impl Sessions {
    /// Opens the service. When this returns, turns that an earlier boot of this daemon left behind are `interrupted`.
    /// The prompts queued behind them start, if the settings say so.
    ///
    /// # Errors
    /// The log can't be read or written.
    ///
    /// *Cancel safety*: if the future is dropped, the rest is done the next time.
    pub async fn open(options: SessionsOptions) -> Result<Self, SessionError> {
        let shared = Arc::new(SessionsInner {
            wall: options.log.wall_clock(Arc::clone(&options.clock)),
            log: options.log,
            sharing: options.sharing,
            owner: Owner {
                home: options.home_id,
                boot: options.boot_id,
            },
            tenure: Tenure::default(),
            plans: options.plans,
            ports: options.ports,
            agents: options.agents,
            permits: TurnPermits::new(options.settings.max_turns),
            machines: Machines::default(),
            settings: options.settings,
            tasks: options.tasks,
            clock: options.clock,
            observer: std::sync::OnceLock::new(),
            open: CancellationToken::new(),
        });
        if shared.sharing == Sharing::WithOthers {
            let lease = owner::begin(&shared).await?;
            shared
                .tasks
                .spawn("sessions-lease", owner::live(Arc::clone(&shared), lease));
        }
        // From here on, no change by another daemon is missed.
        let moves = shared.log.changes("session");
        let Waiting { begin, held } = recover::at_start(&shared).await?;
        if shared.sharing == Sharing::WithOthers {
            let looking = recover::look_after_others(Arc::clone(&shared), moves, held);
            shared.tasks.spawn("sessions-scout", looking);
        }
        for session in begin {
            runner::go_on(&shared, session);
        }
        Ok(Self { shared })
    }

    /// The agents, by name.
    #[must_use]
    pub fn agents(&self) -> Vec<AgentInfo> {
        self.shared.agents.values().map(|agent| agent.info()).collect()
    }

    /// The agent for prompts that don't name one.
    #[must_use]
    pub fn default_agent(&self) -> &str {
        &self.shared.settings.default_agent
    }

    /// A session. *Cancel safety*: it only reads.
    pub async fn get(&self, id: SessionId) -> Result<Session, SessionError> {
        store::session(&self.shared.log, id).await
    }

    /// Accepts a prompt. When this returns, the prompt is on disk, and its turn is running or queued.
    ///
    /// # Errors
    /// [`SessionError::TurnActive`] if a turn is running and the prompt must not be queued; others if it can't be accepted.
    ///
    /// *Cancel safety*: if the future is dropped, the prompt is still accepted, if possible, and its turn runs. With an
    /// idempotency key, the request can safely be repeated.
    pub async fn start_turn(&self, session: SessionId, new: NewTurn) -> Result<Accepted, SessionError> {
        let shared = Arc::clone(&self.shared);
        let starting = async move { starting::start_turn(&shared, session, new).await };
        self.shared.to_the_end(starting).await
    }

    /// A turn. *Cancel safety*: it only reads.
    pub async fn turn(&self, id: TurnId) -> Result<Turn, SessionError> {
        store::turn(&self.shared.log, id).await
    }

    /// The queued turns, in order. *Cancel safety*: it only reads.
    pub async fn queue(&self, session: SessionId) -> Result<Vec<Turn>, SessionError> {
        let session = self.get(session).await?;
        let mut queue = Vec::with_capacity(session.record.queue.len());
        for turn in session.record.queue {
            queue.push(self.turn(turn).await?);
        }
        Ok(queue)
    }

    /// Changes a queued prompt.
    ///
    /// # Errors
    /// It is no longer queued, or the new prompt is invalid.
    ///
    /// *Cancel safety*: if the future is dropped, the change may or may not be made. The same holds for the other changes.
    pub async fn edit_queued(
        &self,
        session: SessionId,
        turn: TurnId,
        prompt: Prompt,
        by: Actor,
    ) -> Result<Turn, SessionError> {
        starting::check_prompt(&prompt)?;
        let shared = &self.shared;
        let made = shared.change_turn(session, turn, |session, turn| {
            let now = shared.wall.now();
            state::edit_queued(&session.record, turn.id, &turn.record, prompt.clone(), &by, now)
                .map_err(|refused| refusal(&refused, session, turn))
        });
        made.await?.turn.ok_or(SessionError::TurnNotFound(turn))
    }

    /// Removes a queued prompt. Its turn is `cancelled`.
    ///
    /// # Errors
    /// It is no longer queued.
    pub async fn remove_queued(
        &self,
        session: SessionId,
        turn: TurnId,
        by: Actor,
    ) -> Result<Session, SessionError> {
        self.take_away(session, turn, &by, "").await
    }

    async fn take_away(
        &self,
        session: SessionId,
        turn: TurnId,
        by: &Actor,
        why: &str,
    ) -> Result<Session, SessionError> {
        let shared = &self.shared;
        let made = shared.change_turn(session, turn, |session, turn| {
            let now = shared.wall.now();
            state::remove_queued(&session.record, turn.id, &turn.record, by, why, now)
                .map_err(|refused| refusal(&refused, session, turn))
        });
        Ok(made.await?.session)
    }

    /// The other machine that the prompts of a session are waiting for, if any.
    #[must_use]
    pub fn awaited(&self, session: &Session) -> Option<AwaitedMachine> {
        self.shared.machines.awaited(&self.shared, session)
    }

    /// Moves a session with its queued prompts to this machine.
    ///
    /// # Errors
    /// [`SessionError::Directory`] if this machine doesn't have the directory of the session.
    ///
    /// *Cancel safety*: if the future is dropped, the session is still moved, if possible.
    pub async fn move_here(&self, session: SessionId, by: Actor) -> Result<Session, SessionError> {
        let shared = Arc::clone(&self.shared);
        let moving = async move { machines::move_here(&shared, session, &by).await };
        self.shared.to_the_end(moving).await
    }

    /// Moves a queued prompt to another position in the queue, starting at 0.
    ///
    /// # Errors
    /// It is no longer queued.
    pub async fn move_queued(
        &self,
        session: SessionId,
        turn: TurnId,
        to: usize,
        by: Actor,
    ) -> Result<Session, SessionError> {
        let found = self.turn(turn).await?;
        let shared = &self.shared;
        let moved = shared.change(session, |session| {
            let step = state::move_queued(&session.record, turn, to, &by, shared.wall.now());
            step_or_nothing(step).map_err(|refused| refusal(&refused, session, &found))
        });
        moved.await
    }

    /// Requests that a turn stop, durably: the active one if none is named, or a queued one. It doesn't wait for the end. If
    /// the turn is already being stopped, or none is named and none is running, nothing changes.
    ///
    /// # Errors
    /// The named turn is neither running nor queued.
    pub async fn cancel_turn(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
        by: Actor,
        why: String,
    ) -> Result<Session, SessionError> {
        self.stop_turn(session, turn, by, why, None).await
    }

    /// The same for a turn that can't continue, with the error that it ends with.
    ///
    /// # Errors
    /// As for [`cancel_turn`](Self::cancel_turn).
    pub async fn cancel_turn_because(
        &self,
        session: SessionId,
        turn: TurnId,
        by: Actor,
        because: TurnError,
    ) -> Result<Session, SessionError> {
        let why = because.text.clone();
        self.stop_turn(session, Some(turn), by, why, Some(because)).await
    }

    async fn stop_turn(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
        by: Actor,
        why: String,
        error: Option<TurnError>,
    ) -> Result<Session, SessionError> {
        let found = self.get(session).await?;
        let active = found.record.active.as_ref().map(|active| active.turn);
        let Some(wanted) = turn.or(active) else {
            return Ok(found);
        };
        if found.record.queue.contains(&wanted) {
            match self.take_away(session, wanted, &by, &why).await {
                // It has started in the meantime.
                Err(SessionError::TurnNotQueued { .. }) => {}
                taken => return taken,
            }
        }
        let shown = self.turn(wanted).await?;
        let stop = Stop {
            by,
            why,
            at: self.shared.wall.now(),
            error,
        };
        let stopping = self.shared.change(session, |session| {
            let step = state::request_stop(&session.record, wanted, stop.clone());
            step_or_nothing(step).map_err(|refused| refusal(&refused, session, &shown))
        });
        let stopped = match stopping.await {
            // A turn that ended on its own needs no stop, unless it was named.
            Err(SessionError::TurnNotActive { .. }) if turn.is_none() => self.get(session).await,
            Err(SessionError::TurnNotActive { session, turn, .. }) => {
                let state = self.turn(turn).await?.record.state;
                Err(SessionError::TurnNotActive { session, turn, state })
            }
            stopped => stopped,
        }?;
        // If the owner is gone, no one else acts on the request.
        match self.free(&stopped).await {
            Ok(Some(made)) => Ok(made.session),
            Ok(None) | Err(SessionError::NotStale { .. }) => Ok(stopped),
            Err(SessionError::Stale { current }) => Ok(*current),
            Err(error) => Err(error),
        }
    }

    /// Ends the abandoned turn of a session, if the session hasn't changed since the caller read it.
    ///
    /// # Errors
    /// [`SessionError::Stale`] if it has changed, [`SessionError::NotStale`] if the daemon that runs the turn is alive.
    pub async fn clear_stale_turn(
        &self,
        session: SessionId,
        seen: &Session,
    ) -> Result<Session, SessionError> {
        let current = self.get(session).await?;
        if current.version != seen.version {
            return Err(SessionError::Stale {
                current: Box::new(current),
            });
        }
        Ok(self.free(seen).await?.map_or(current, |made| made.session))
    }

    /// Ends the turn of a session if its owner is gone, and starts the prompts behind it.
    async fn free(&self, session: &Session) -> Result<Option<Made>, SessionError> {
        let (shared, session) = (Arc::clone(&self.shared), session.clone());
        let freeing = async move {
            let made = recover::bury(&shared, &session).await?;
            if made.is_some() {
                runner::go_on(&shared, session.id);
            }
            Ok(made)
        };
        self.shared.to_the_end(freeing).await
    }

    /// Waits until a turn has ended. If the deadline passes or the scope is cancelled first, returns the turn in its
    /// current state. *Cancel safety*: the future may be dropped at any time.
    pub async fn wait(&self, turn: TurnId, deadline: &Deadline, scope: &Scope) -> Result<Turn, SessionError> {
        let found = self.turn(turn).await?;
        if found.record.state.is_terminal() {
            return Ok(found);
        }
        // The terminal event is the last one, so earlier events don't matter.
        let mut tail = self
            .shared
            .log
            .tail(&turn_stream(turn)?, found.last_sequence, scope);
        loop {
            let has_moved = tokio::select! {
                biased;
                item = tail.next() => match item {
                    Ok(TailItem::Event(event)) => &*event.kind == "state",
                    Ok(TailItem::Resync { .. }) => true,
                    Err(TailEnd::Cancelled(_)) => return self.turn(turn).await,
                    Err(TailEnd::Log(error)) => return Err(error.into()),
                },
                () = deadline.clone().passed() => return self.turn(turn).await,
            };
            if has_moved || scope.is_cancelled() {
                let found = self.turn(turn).await?;
                if found.record.state.is_terminal() || scope.is_cancelled() {
                    return Ok(found);
                }
            }
        }
    }

    /// Answers a question. The first answer counts, and is returned.
    ///
    /// # Errors
    /// The running turn has no such question.
    pub async fn answer(
        &self,
        session: SessionId,
        permission: PermissionId,
        answer: PermissionAnswer,
        by: Actor,
    ) -> Result<(PermissionAnswer, Actor), SessionError> {
        asking::answer(&self.shared, session, permission, answer, by).await
    }

    /// The events of a session after a position, oldest first. Each is a [`Happening`](crate::Happening). *Cancel safety*:
    /// it only reads.
    pub async fn happenings(
        &self,
        session: SessionId,
        after: Sequence,
        limit: u32,
    ) -> Result<Page, SessionError> {
        let stream = session_stream(session)?;
        Ok(self.shared.log.read(&stream, after, limit).await?)
    }

    /// The events of a turn after a position, oldest first. Each is a [`TurnEvent`](crate::TurnEvent). *Cancel safety*: it
    /// only reads.
    pub async fn turn_events(&self, turn: TurnId, after: Sequence, limit: u32) -> Result<Page, SessionError> {
        let stream = turn_stream(turn)?;
        Ok(self.shared.log.read(&stream, after, limit).await?)
    }

    /// Follows the events of a session from a position on.
    pub fn follow(&self, session: SessionId, after: Sequence, scope: &Scope) -> Result<Tail, SessionError> {
        Ok(self.shared.log.tail(&session_stream(session)?, after, scope))
    }

    /// Signals when a session changes, here or on another machine.
    #[must_use]
    pub fn moves(&self) -> StreamChanges {
        self.shared.log.changes("session")
    }

    /// The number of running and waiting turns.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        self.shared.permits.counts()
    }

    /// Accepts no more prompts, and stops the running turns, which are then `interrupted`.
    pub fn close(&self) {
        self.shared
            .open
            .cancel(Cause::new("the daemon", "it accepts no more prompts"));
    }

    /// Waits until no turn is running, and closes the agents.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub async fn drain(&self, deadline: &Deadline) {
        let never = CancellationToken::new().scope();
        if !self.shared.permits.idle(deadline.clone(), &never).await {
            tracing::warn!(running = self.counts().running, "turns did not end in time");
        }
        let closing = async {
            for agent in self.shared.agents.values() {
                agent.close().await;
            }
        };
        tokio::select! {
            () = closing => {}
            () = deadline.clone().passed() => {}
        }
    }
}

/// A step, or `None` if there is nothing to change.
fn step_or_nothing(step: Result<Step, Refused>) -> Result<Option<Step>, Refused> {
    match step {
        Err(Refused::Nothing) => Ok(None),
        step => step.map(Some),
    }
}
