//! The handle that everybody has.

use std::sync::Arc;

use eventlog::{Sequence, StreamChanges, Tail, TailEnd, TailItem};
use kernel::{CancellationToken, Cause, Deadline, Scope};
use protocol::{AgentChoice, PermissionAnswer, PermissionId, SessionCounts, SessionId, TurnError, TurnId};

use crate::agent::AgentInfo;
use crate::answers::{Accepted, NewSession, NewTurn, SessionQuery};
use crate::asking;
use crate::error::SessionError;
use crate::machines::{self, AwaitedMachine, Machines};
use crate::manage;
use crate::options::SessionsOptions;
use crate::owner::{self, Owner, Sharing, Tenure};
use crate::places::Places;
use crate::prompt::Prompt;
use crate::recover::{self, Waiting};
use crate::runner;
use crate::session::{Actor, Session, Stop};
use crate::shared::{Shared, refusal};
use crate::starting;
use crate::state::{self, Refused};
use crate::store::{self, Made};
use crate::streams::{session_stream, turn_stream};
use crate::turn::Turn;

/// Sessions of one daemon. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Sessions {
    pub(crate) shared: Arc<Shared>,
}

impl Sessions {
    /// Opens the service. Turns that an earlier life of this daemon left are `interrupted` when it returns, and the prompts
    /// that waited behind them go on, if the settings say so.
    ///
    /// # Errors
    /// The log cannot be read or written.
    ///
    /// *Cancel safety*: dropped half-way, what is left is done the next time.
    pub async fn open(options: SessionsOptions) -> Result<Self, SessionError> {
        let shared = Arc::new(Shared {
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
            places: Places::new(options.settings.max_turns),
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
        // What others do from here on is not missed.
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

    /// The agent that is asked if nobody says which.
    #[must_use]
    pub fn default_agent(&self) -> &str {
        &self.shared.settings.default_agent
    }

    /// Opens a session.
    ///
    /// # Errors
    /// There is no such agent, what is given cannot be used, or the log fails.
    ///
    /// *Cancel safety*: dropped half-way, there may be a session.
    pub async fn create(&self, new: NewSession) -> Result<Session, SessionError> {
        manage::create(&self.shared, new).await
    }

    /// A session. *Cancel safety*: it only reads.
    pub async fn get(&self, id: SessionId) -> Result<Session, SessionError> {
        store::session(&self.shared.log, id).await
    }

    /// Sessions, newest first. *Cancel safety*: it only reads.
    pub async fn list(&self, query: SessionQuery) -> Result<Vec<Session>, SessionError> {
        manage::list(&self.shared, query).await
    }

    /// Takes a prompt. When it returns, the prompt is on disk, and its turn runs or waits.
    ///
    /// # Errors
    /// [`SessionError::TurnActive`] if a turn runs and the prompt shall not wait; others if it cannot be taken.
    ///
    /// *Cancel safety*: dropped half-way, the prompt is taken all the same, if it can be, and its turn runs. Whoever is not
    /// sure sends it again with the same idempotency key.
    pub async fn start_turn(&self, session: SessionId, new: NewTurn) -> Result<Accepted, SessionError> {
        let shared = Arc::clone(&self.shared);
        let starting = async move { starting::start_turn(&shared, session, new).await };
        self.shared.to_the_end(starting).await
    }

    /// A turn. *Cancel safety*: it only reads.
    pub async fn turn(&self, id: TurnId) -> Result<Turn, SessionError> {
        store::turn(&self.shared.log, id).await
    }

    /// The turns of a session that have begun, newest first; only those before `before`, if it is given; at most `limit`.
    /// Those from before a fork are among them. *Cancel safety*: it only reads.
    pub async fn turns(
        &self,
        session: SessionId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<Turn>, SessionError> {
        manage::turns(&self.shared, session, before, limit).await
    }

    /// The turns that wait, in their order. *Cancel safety*: it only reads.
    pub async fn queue(&self, session: SessionId) -> Result<Vec<Turn>, SessionError> {
        let session = self.get(session).await?;
        let mut queue = Vec::with_capacity(session.record.queue.len());
        for turn in session.record.queue {
            queue.push(self.turn(turn).await?);
        }
        Ok(queue)
    }

    /// Changes a prompt that waits.
    ///
    /// # Errors
    /// It does not wait any more, or it cannot be a prompt.
    ///
    /// *Cancel safety*: dropped half-way, it may have been changed; so it is with all that change something.
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

    /// Takes a prompt away that waits. Its turn is `cancelled`.
    ///
    /// # Errors
    /// It does not wait any more.
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
            state::remove_queued(&session.record, turn.id, &turn.record, (by, why), now)
                .map_err(|refused| refusal(&refused, session, turn))
        });
        Ok(made.await?.session)
    }

    /// The machine that the prompts of a session wait for, if that is another one.
    #[must_use]
    pub fn awaited(&self, session: &Session) -> Option<AwaitedMachine> {
        self.shared.machines.awaited(&self.shared, session)
    }

    /// From now on the prompts of a session run on this machine, also those that wait.
    ///
    /// # Errors
    /// [`SessionError::Directory`] if the directory of the session is not on this machine.
    ///
    /// *Cancel safety*: dropped half-way, it is done all the same, if it can be.
    pub async fn move_here(&self, session: SessionId, by: Actor) -> Result<Session, SessionError> {
        let shared = Arc::clone(&self.shared);
        let moving = async move { machines::move_here(&shared, session, &by).await };
        self.shared.to_the_end(moving).await
    }

    /// Moves a prompt that waits to another place of the queue, from 0.
    ///
    /// # Errors
    /// It does not wait any more.
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
            state::move_queued(&session.record, turn, to, &by, shared.wall.now()).map_err(|refused| {
                match refused {
                    // It is there already.
                    Refused::Nothing => SessionError::Stale {
                        current: Box::new(session.clone()),
                    },
                    refused => refusal(&refused, session, &found),
                }
            })
        });
        match moved.await {
            Err(SessionError::Stale { current }) => Ok(*current),
            moved => moved,
        }
    }

    /// Wants a turn to stop, durably: the active one if none is named, or one that waits. It does not wait for its end. If
    /// it is being stopped already, or nothing runs and none is named, nothing changes.
    ///
    /// # Errors
    /// The turn that is named neither runs nor waits.
    pub async fn cancel_turn(
        &self,
        session: SessionId,
        turn: Option<TurnId>,
        by: Actor,
        why: String,
    ) -> Result<Session, SessionError> {
        self.stop_turn(session, turn, by, why, None).await
    }

    /// The same for a turn that cannot go on, with what it says at its end.
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
                // It has begun meanwhile.
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
            state::request_stop(&session.record, wanted, stop.clone()).map_err(|refused| match refused {
                Refused::Nothing => SessionError::Stale {
                    current: Box::new(session.clone()),
                },
                refused => refusal(&refused, session, &shown),
            })
        });
        let stopped = match stopping.await {
            Err(SessionError::Stale { current }) => Ok(*current),
            // What ended by itself needs no stop, if nobody named it.
            Err(SessionError::TurnNotActive { .. }) if turn.is_none() => self.get(session).await,
            Err(SessionError::TurnNotActive { session, turn, .. }) => {
                let state = self.turn(turn).await?.record.state;
                Err(SessionError::TurnNotActive { session, turn, state })
            }
            stopped => stopped,
        }?;
        // Nobody is there to honour it if the owner is gone.
        match self.free(&stopped).await {
            Ok(Some(made)) => Ok(made.session),
            Ok(None) | Err(SessionError::NotStale { .. }) => Ok(stopped),
            Err(SessionError::Stale { current }) => Ok(*current),
            Err(error) => Err(error),
        }
    }

    /// Frees a session whose turn is nobody's any more, if it is still as the caller saw it.
    ///
    /// # Errors
    /// [`SessionError::Stale`] if it has moved, [`SessionError::NotStale`] if the owner of the turn is there.
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

    /// Buries the turn of a session if its owner is gone, and begins what waits behind it.
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

    /// Waits until a turn is over; returns it as it is when the deadline passes or the scope is cancelled.
    /// *Cancel safety*: may be dropped at any time.
    pub async fn wait(&self, turn: TurnId, deadline: &Deadline, scope: &Scope) -> Result<Turn, SessionError> {
        let found = self.turn(turn).await?;
        if found.record.state.is_terminal() {
            return Ok(found);
        }
        // The terminal event is the last one, so the end of what is there is all that has to be looked at.
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

    /// Answers a question. The first answer counts; what it was is returned.
    ///
    /// # Errors
    /// No such question was asked in the turn that runs.
    pub async fn answer(
        &self,
        session: SessionId,
        permission: PermissionId,
        answer: PermissionAnswer,
        by: Actor,
    ) -> Result<(PermissionAnswer, Actor), SessionError> {
        asking::answer(&self.shared, session, permission, (answer, by)).await
    }

    /// A new session that goes on from a turn of another one; from its newest turn that is over if none is named.
    ///
    /// # Errors
    /// The turn is not over, or not one of that session.
    pub async fn fork(
        &self,
        session: SessionId,
        at: Option<TurnId>,
        by: Actor,
    ) -> Result<Session, SessionError> {
        manage::fork(&self.shared, session, at, by).await
    }

    /// Gives a session another title.
    pub async fn rename(
        &self,
        session: SessionId,
        title: String,
        by: Actor,
    ) -> Result<Session, SessionError> {
        manage::rename(&self.shared, session, &title, &by).await
    }

    /// Gives a session another agent.
    pub async fn set_agent(
        &self,
        session: SessionId,
        agent: AgentChoice,
        by: Actor,
    ) -> Result<Session, SessionError> {
        manage::set_agent(&self.shared, session, &agent, &by).await
    }

    /// Puts a session away, or takes it back.
    ///
    /// # Errors
    /// A turn runs or waits in it.
    pub async fn archive(
        &self,
        session: SessionId,
        archived: bool,
        by: Actor,
    ) -> Result<Session, SessionError> {
        manage::archive(&self.shared, session, archived, &by).await
    }

    /// Removes a session with its turns.
    ///
    /// # Errors
    /// A turn runs or waits in it, or it has forks.
    ///
    /// *Cancel safety*: dropped half-way, nobody finds it any more, and the rest is done at the next start.
    pub async fn remove(&self, session: SessionId, by: Actor) -> Result<(), SessionError> {
        manage::remove(&self.shared, session, &by).await
    }

    /// What happens to a session, from a place on.
    pub fn follow(&self, session: SessionId, after: Sequence, scope: &Scope) -> Result<Tail, SessionError> {
        Ok(self.shared.log.tail(&session_stream(session)?, after, scope))
    }

    /// Tells that some session has moved.
    #[must_use]
    pub fn moves(&self) -> StreamChanges {
        self.shared.log.changes("session")
    }

    /// How many turns there are now.
    #[must_use]
    pub fn counts(&self) -> SessionCounts {
        self.shared.places.counts()
    }

    /// Takes no more prompts, and stops what runs. Those turns are `interrupted`.
    pub fn close(&self) {
        self.shared
            .open
            .cancel(Cause::new("the daemon", "it takes no more prompts"));
    }

    /// Waits until nothing runs any more, and lets go of what agents keep.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn drain(&self, deadline: &Deadline) {
        let never = CancellationToken::new().scope();
        if !self.shared.places.idle(deadline.clone(), &never).await {
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
