//! The state that all parts of the service share.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use eventlog::{Change, ConflictRetries, Log, MaybeConflict, WallClock};
use kernel::{CancellationToken, Clock};
use plans::Plans;
use process::Tasks;
use protocol::{AgentChoice, SessionId, TurnId};

use crate::agent::{Agent, Readiness};
use crate::error::SessionError;
use crate::machines::Machines;
use crate::observe::Observer;
use crate::options::SessionsSettings;
use crate::owner::{Owner, Sharing, Tenure};
use crate::permits::TurnPermits;
use crate::ports::Ports;
use crate::session::Session;
use crate::state::{Refused, Step};
use crate::store::{self, Made, On, TRIES};
use crate::turn::Turn;

#[derive(Debug)]
pub(crate) struct SessionsInner {
    pub(crate) log: Log,
    pub(crate) sharing: Sharing,
    pub(crate) owner: Owner,
    pub(crate) tenure: Tenure,
    pub(crate) plans: Plans,
    pub(crate) ports: Ports,
    pub(crate) agents: BTreeMap<String, Arc<dyn Agent>>,
    pub(crate) settings: SessionsSettings,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) wall: WallClock,
    pub(crate) permits: TurnPermits,
    pub(crate) machines: Machines,
    /// Observes what turns do.
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    /// Cancelled when the daemon accepts no more prompts.
    pub(crate) open: CancellationToken,
}

impl SessionsInner {
    /// Changes a session and nothing else. `decide` may return `None` if there is nothing to change.
    pub(crate) async fn change<S: Into<Option<Step>>>(
        &self,
        id: SessionId,
        mut decide: impl FnMut(&Session) -> Result<S, SessionError>,
    ) -> Result<Session, SessionError> {
        let changed = Session::update(&self.log, id, TRIES, |session| {
            let session = session.filter(|session| !session.record.removing);
            let step = decide(session.ok_or(SessionError::NotFound(id))?)?;
            Ok(step.into().map(|step| Change {
                events: step.happened,
                ..Change::new(step.session)
            }))
        });
        let changed = self.or_stale(id, changed.await).await?;
        changed.entity().ok_or(SessionError::NotFound(id))
    }

    pub(crate) async fn change_turn(
        &self,
        id: SessionId,
        turn: TurnId,
        mut decide: impl FnMut(&Session, &Turn) -> Result<Step, SessionError>,
    ) -> Result<Made, SessionError> {
        let mut retries = ConflictRetries::new(TRIES);
        loop {
            let session = store::session(&self.log, id).await?;
            let found = store::turn(&self.log, turn).await?;
            if found.record.session != id {
                return Err(SessionError::TurnNotFound(turn));
            }
            let step = decide(&session, &found)?;
            let on = On {
                session: &session,
                turn: Some((turn, found.version)),
            };
            let changed = store::commit(&self.log, on, step, Vec::new()).await;
            if !retries.again(&changed) {
                return self.or_stale(id, changed.map_err(SessionError::from)).await;
            }
        }
    }

    /// Runs something to its end, even if the caller goes away. Otherwise a turn could be marked as running while no
    /// task runs it.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
    ) -> Result<T, SessionError> {
        let done = self.tasks.to_the_end("session-change", work).await;
        done.unwrap_or(Err(SessionError::Closed))
    }

    /// Passes on the result of a change. If every attempt conflicted, the session is stale.
    pub(crate) async fn or_stale<T>(
        &self,
        id: SessionId,
        changed: Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        match changed {
            Err(error) if error.is_conflict() => Err(SessionError::Stale {
                current: Box::new(store::session(&self.log, id).await?),
            }),
            changed => changed,
        }
    }

    /// An agent that is ready.
    pub(crate) fn agent(&self, name: &str) -> Result<&Arc<dyn Agent>, SessionError> {
        let agent = self.agents.get(name).ok_or_else(|| SessionError::AgentNotFound {
            name: name.to_owned(),
            known: self.agents.keys().cloned().collect(),
        })?;
        match agent.info().readiness {
            Readiness::Ready => Ok(agent),
            Readiness::Missing(missing) => Err(SessionError::AgentNotReady {
                name: name.to_owned(),
                missing,
            }),
        }
    }

    /// Refuses a choice that its agent can't follow.
    pub(crate) fn check_choice(&self, choice: &AgentChoice) -> Result<(), SessionError> {
        let agent = self.agent(&choice.name)?;
        agent.check(choice).map_err(|what| SessionError::Invalid { what })
    }

    pub(crate) fn check_open(&self) -> Result<(), SessionError> {
        match self.open.is_cancelled() {
            true => Err(SessionError::Closed),
            false => Ok(()),
        }
    }
}

/// The error for a refused step about a turn.
pub(crate) fn refusal(refused: &Refused, session: &Session, turn: &Turn) -> SessionError {
    match refused {
        Refused::Active(active) => SessionError::TurnActive {
            session: session.id,
            turn: *active,
        },
        Refused::NotQueued => SessionError::TurnNotQueued {
            turn: turn.id,
            state: turn.record.state,
        },
        Refused::QueueFull => SessionError::QueueFull {
            session: session.id,
            limit: crate::state::QUEUE_LIMIT,
        },
        Refused::Archived => SessionError::Archived(session.id),
        Refused::NotActive | Refused::NotAsked | Refused::Nothing => SessionError::TurnNotActive {
            session: session.id,
            turn: turn.id,
            state: turn.record.state,
        },
    }
}
