//! The use of a server, counted.

use std::{fmt, sync::Arc};

use kernel::Scope;

use crate::{
    Launch, LifecycleError, Patience, ServerGeneration, ServerKey, ServerStatus,
    state::{Answer, Event, Outcome, Verdict},
    wait::{Handle, HeldEntry, episode_over},
    work::Shared,
};

/// Somebody uses a server: it does not stop for idleness while this lives. It is good across restarts: after one,
/// the same lease leads to the new process. Dropping it gives it back.
pub struct ClientLease<L: Launch> {
    shared: Arc<Shared<L>>,
    held: HeldEntry<L::Server>,
}

/// The server that a lease leads to right now.
#[derive(Clone, Debug)]
pub struct CurrentServer<S> {
    /// The server.
    pub server: S,
    /// Which process it is.
    pub generation: ServerGeneration,
}

impl<L: Launch> ClientLease<L> {
    /// A lease that has been counted in `held`.
    pub(crate) fn counted(shared: Arc<Shared<L>>, held: HeldEntry<L::Server>) -> Self {
        Self { shared, held }
    }

    /// Which server it is for.
    pub fn key(&self) -> &ServerKey {
        self.held.key()
    }

    /// What is known about the server.
    pub fn status(&self) -> ServerStatus {
        ServerStatus::of(self.key(), &self.held.read().state)
    }

    /// The server as it is now; waits for the next one during a restart, if the caller is patient.
    ///
    /// *Cancel safety*: may be dropped at any time; a start that is under way goes on.
    pub async fn server(
        &self,
        patience: &Patience,
        scope: &Scope,
    ) -> Result<CurrentServer<L::Server>, LifecycleError> {
        self.shared.bury_dead(&self.held);
        let answer = self.shared.apply(&self.held, &Event::Want);
        self.follow(answer, patience, scope).await
    }

    /// Follows an answer until there is a server.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub(crate) async fn follow(
        &self,
        mut answer: Answer<Handle<L::Server>>,
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
            match episode_over(&self.held, number, deadline, scope).await? {
                Verdict::Settled(Outcome::Failed(defeat)) => return Err(defeat.into()),
                Verdict::Settled(Outcome::Stopped) => return Err(LifecycleError::ServerStopped),
                // It came up, so it is there, unless it is gone again: the state says which.
                Verdict::Settled(Outcome::Ready(_)) | Verdict::Forgotten | Verdict::UnderWay => {
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
