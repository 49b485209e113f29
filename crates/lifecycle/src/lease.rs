//! A counted use of a server.

use std::{fmt, sync::Arc};

use kernel::Scope;

use crate::{
    Launch, LifecycleError, Patience, ServerGeneration, ServerKey, ServerStatus,
    state::{Answer, EpisodeOutcome, EpisodeProgress, Event},
    wait::{HeldEntry, ServerHandle, wait_for_episode},
    work::ManagerShared,
};

/// A use of a server. The server isn't stopped for idleness while it has leases. A lease survives restarts:
/// afterwards it refers to the new process. Dropping it returns it.
pub struct ClientLease<L: Launch> {
    shared: Arc<ManagerShared<L>>,
    held: HeldEntry<L::Server>,
}

/// The process that a lease currently refers to.
#[derive(Clone, Debug)]
pub struct CurrentServer<S> {
    /// The server.
    pub server: S,
    /// The generation of its process.
    pub generation: ServerGeneration,
}

impl<L: Launch> ClientLease<L> {
    /// A lease that has already been counted in `held`.
    pub(crate) fn counted(shared: Arc<ManagerShared<L>>, held: HeldEntry<L::Server>) -> Self {
        Self { shared, held }
    }

    /// The server that the lease is for.
    pub fn key(&self) -> &ServerKey {
        self.held.key()
    }

    /// The status of the server.
    pub fn status(&self) -> ServerStatus {
        ServerStatus::of(self.key(), &self.held.read().state)
    }

    /// The current server. During a restart it waits for the next process, if `patience` allows that.
    ///
    /// *Cancel safety*: the future may be dropped at any time; a start in progress continues.
    pub async fn server(
        &self,
        patience: &Patience,
        scope: &Scope,
    ) -> Result<CurrentServer<L::Server>, LifecycleError> {
        self.shared.report_if_dead(&self.held);
        let answer = self.shared.apply(&self.held, &Event::Want);
        self.follow(answer, patience, scope).await
    }

    /// Follows an answer until there is a server.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn follow(
        &self,
        mut answer: Answer<ServerHandle<L::Server>>,
        patience: &Patience,
        scope: &Scope,
    ) -> Result<CurrentServer<L::Server>, LifecycleError> {
        loop {
            let number = match answer {
                Answer::Ready { generation, server } => {
                    let server = server.0;
                    return Ok(CurrentServer { server, generation });
                }
                Answer::Refused(refusal) => return Err(refusal.into()),
                Answer::Join(number) => number,
                Answer::Done | Answer::Late | Answer::Leaving(_) | Answer::Moved { .. } => {
                    return Err(LifecycleError::ServerStopped);
                }
            };
            let Patience::Wait(deadline) = patience else {
                let generation = self.held.read().state.generation;
                return Err(LifecycleError::ServerRestarting { generation });
            };
            match wait_for_episode(&self.held, number, deadline, scope).await? {
                EpisodeProgress::Settled(EpisodeOutcome::Failed(failed)) => return Err(failed.into()),
                EpisodeProgress::Settled(EpisodeOutcome::Stopped) => {
                    return Err(LifecycleError::ServerStopped);
                }
                // The server came up. It is still there unless it has ended since, which the state tells.
                EpisodeProgress::Settled(EpisodeOutcome::Ready(_))
                | EpisodeProgress::Forgotten
                | EpisodeProgress::UnderWay => {
                    answer = self.shared.apply(&self.held, &Event::Want);
                }
            }
        }
    }
}

impl<L: Launch> Drop for ClientLease<L> {
    fn drop(&mut self) {
        self.shared.apply(&self.held, &Event::LeaseReturned);
    }
}

impl<L: Launch> fmt::Debug for ClientLease<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientLease")
            .field("key", self.key())
            .finish_non_exhaustive()
    }
}
