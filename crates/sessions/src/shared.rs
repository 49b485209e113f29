//! What all parts of the service share.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use eventlog::{CommitError, Log, WallClock};
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
use crate::places::Places;
use crate::ports::Ports;
use crate::session::Session;
use crate::state::{Refused, Step};
use crate::store::{self, Made, On, TRIES};
use crate::turn::Turn;

/// What all parts share.
#[derive(Debug)]
pub(crate) struct Shared {
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
    pub(crate) places: Places,
    pub(crate) machines: Machines,
    /// Is told what turns do, if anybody wants to know.
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    /// Cancelled when the daemon takes no more prompts.
    pub(crate) open: CancellationToken,
}

impl Shared {
    /// Changes a session, and nothing else: reads it whole, decides, and commits on what was read, until nobody was faster.
    pub(crate) async fn change(
        &self,
        id: SessionId,
        mut decide: impl FnMut(&Session) -> Result<Step, SessionError>,
    ) -> Result<Session, SessionError> {
        for _ in 0..TRIES {
            let session = store::session(&self.log, id).await?;
            let step = decide(&session)?;
            let on = On {
                session: &session,
                turn: None,
            };
            match store::commit(&self.log, on, step, Vec::new()).await {
                Ok(made) => return Ok(made.session),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.contended(id).await
    }

    /// Changes a session together with one of its turns.
    pub(crate) async fn change_turn(
        &self,
        id: SessionId,
        turn: TurnId,
        mut decide: impl FnMut(&Session, &Turn) -> Result<Step, SessionError>,
    ) -> Result<Made, SessionError> {
        for _ in 0..TRIES {
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
            match store::commit(&self.log, on, step, Vec::new()).await {
                Ok(made) => return Ok(made),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.contended(id).await
    }

    /// Carries something out to its end, whether or not the caller stays for the answer. A caller that goes away in between
    /// must not leave a turn that is said to run, and which nobody runs.
    pub(crate) async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
    ) -> Result<T, SessionError> {
        let done = self.tasks.to_the_end("session-change", work).await;
        done.unwrap_or(Err(SessionError::Closed))
    }

    /// Somebody else was always faster.
    pub(crate) async fn contended<T>(&self, id: SessionId) -> Result<T, SessionError> {
        Err(SessionError::Stale {
            current: Box::new(store::session(&self.log, id).await?),
        })
    }

    /// An agent that can be asked.
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

    /// Refuses a choice that names no agent which could follow it.
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

/// Why a step about a turn is not possible, in words for whoever asked.
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
