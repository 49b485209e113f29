//! On which machine the prompts of a session run, if several share a log.
//!
//! A session has a home, whose machine has its directory. Its prompts run there and nowhere else, until a user says otherwise
//! ([`move_here`]). Whoever finds a prompt that waits for another home looks whether anybody is there to run it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use ::machines::{Presence, presence};
use protocol::{HomeId, SessionId, SessionState};

use crate::error::SessionError;
use crate::manage::{amend, existing};
use crate::owner::Sharing;
use crate::runner::go_on;
use crate::session::{Actor, Session};
use crate::shared::Shared;
use crate::state::Happening;
use crate::store;

/// Another machine, which a session waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AwaitedMachine {
    /// The home of its daemon.
    pub home: HomeId,
    /// Whether its daemon is there.
    pub presence: Presence,
}

/// The other machines that sessions wait for, as they were when it was last looked.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    /// Held to look and to write.
    awaited: Mutex<BTreeMap<HomeId, Presence>>,
}

impl Machines {
    /// The machine that a session waits for, if that is another one.
    pub(crate) fn awaited(&self, shared: &Shared, session: &Session) -> Option<AwaitedMachine> {
        let home = session.record.home.filter(|home| *home != shared.owner.home)?;
        let is_waiting = session.record.state() == SessionState::Waiting;
        if !is_waiting || shared.sharing == Sharing::Alone {
            return None;
        }
        let presence = self.lock().get(&home).copied().unwrap_or(Presence::Running);
        Some(AwaitedMachine { home, presence })
    }

    /// Whether all of these have been looked for.
    pub(crate) fn knows(&self, homes: &BTreeSet<HomeId>) -> bool {
        let awaited = self.lock();
        homes.iter().all(|home| awaited.contains_key(home))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<HomeId, Presence>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks whether the daemons of these homes are there. What was known of others is forgotten: nothing waits for them.
pub(crate) async fn look_for(shared: &Shared, homes: BTreeSet<HomeId>) -> Result<(), SessionError> {
    let mut found = BTreeMap::new();
    for home in homes {
        found.insert(home, presence(&shared.log, home, shared.owner.boot).await?);
    }
    *shared.machines.lock() = found;
    Ok(())
}

/// Looks for one more, if that was not done a short while ago: somebody is about to wait for it.
pub(crate) async fn look_for_one(shared: &Shared, home: HomeId) -> Result<(), SessionError> {
    if !shared.machines.knows(&BTreeSet::from([home])) {
        let found = presence(&shared.log, home, shared.owner.boot).await?;
        shared.machines.lock().insert(home, found);
    }
    Ok(())
}

/// The home whose machine runs the prompts of a session. Sessions from before homes were written down have that of the daemon
/// that ran their last turn.
pub(crate) async fn home_of(shared: &Shared, session: &Session) -> Result<HomeId, SessionError> {
    let own = shared.owner.home;
    if shared.sharing == Sharing::Alone {
        return Ok(own);
    }
    if let Some(home) = session.record.home {
        return Ok(home);
    }
    let Some(last) = session.record.last_turn else {
        return Ok(own);
    };
    let owner = store::turn(&shared.log, last).await?.record.owner;
    Ok(owner.map_or(own, |owner| owner.home))
}

/// Refuses to run prompts here if the directory of the session is not here.
pub(crate) async fn check_directory(session: &Session) -> Result<(), SessionError> {
    match existing(session.record.facts.directory.clone()).await {
        Ok(_) => Ok(()),
        Err(SessionError::Directory { why }) => {
            let directory = session.record.facts.directory.display();
            let why = format!("of the session, `{directory}`, {why} on this machine");
            Err(SessionError::Directory { why })
        }
        Err(error) => Err(error),
    }
}

/// From now on the prompts of a session run on this machine, also those that wait.
pub(crate) async fn move_here(
    shared: &Arc<Shared>,
    id: SessionId,
    by: &Actor,
) -> Result<Session, SessionError> {
    shared.check_open()?;
    check_directory(&store::session(&shared.log, id).await?).await?;
    let home = shared.owner.home;
    let moved = shared
        .change(id, |session| {
            if session.record.home == Some(home) {
                return Err(SessionError::Stale {
                    current: Box::new(session.clone()),
                });
            }
            let happened = Happening::new("home_set", by, None, home.to_string());
            Ok(amend(shared, session, happened, |next| next.home = Some(home)))
        })
        .await;
    let session = match moved {
        // It is here already.
        Err(SessionError::Stale { current }) if current.record.home == Some(home) => *current,
        moved => moved?,
    };
    if session.record.state() == SessionState::Waiting {
        go_on(shared, id);
    }
    Ok(session)
}
