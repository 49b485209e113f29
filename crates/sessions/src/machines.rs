//! The machine that runs the prompts of a session, if several machines share a log.
//!
//! A session belongs to a home on the machine that has its directory. Its prompts run only there, until a user moves the
//! session ([`move_here`]). A daemon that sees a prompt for another home checks whether the daemon of that home is running.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use ::machines::{Presence, presence};
use protocol::{HomeId, SessionId, SessionState};

use crate::error::SessionError;
use crate::inner::SessionsInner;
use crate::manage::{amend, existing};
use crate::owner::Sharing;
use crate::runner::go_on;
use crate::session::{Actor, Session};
use crate::state::Happening;
use crate::store;

/// Another machine that a session waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AwaitedMachine {
    /// The home of its daemon.
    pub home: HomeId,
    /// Whether its daemon is running.
    pub presence: Presence,
}

/// The other machines that sessions wait for, as of the last check.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    /// Guards what is known about the other machines.
    awaited: Mutex<BTreeMap<HomeId, Presence>>,
}

impl Machines {
    /// The machine that a session waits for, if that is another one.
    pub(crate) fn awaited(&self, shared: &SessionsInner, session: &Session) -> Option<AwaitedMachine> {
        let home = session.record.home.filter(|home| *home != shared.owner.home)?;
        let is_waiting = session.record.state() == SessionState::Waiting;
        if !is_waiting || shared.sharing == Sharing::Alone {
            return None;
        }
        let presence = self.lock().get(&home).copied().unwrap_or(Presence::Running);
        Some(AwaitedMachine { home, presence })
    }

    /// Whether all of these homes have been checked.
    pub(crate) fn knows(&self, homes: &BTreeSet<HomeId>) -> bool {
        let awaited = self.lock();
        homes.iter().all(|home| awaited.contains_key(home))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<HomeId, Presence>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks whether the daemons of these homes are running. Other homes are forgotten, because nothing waits for them.
pub(crate) async fn look_for(shared: &SessionsInner, homes: BTreeSet<HomeId>) -> Result<(), SessionError> {
    let mut found = BTreeMap::new();
    for home in homes {
        found.insert(home, presence(&shared.log, home, shared.owner.boot).await?);
    }
    *shared.machines.lock() = found;
    Ok(())
}

/// Checks one more home, which a prompt is about to wait for, unless it was checked recently.
pub(crate) async fn look_for_one(shared: &SessionsInner, home: HomeId) -> Result<(), SessionError> {
    if !shared.machines.knows(&BTreeSet::from([home])) {
        let found = presence(&shared.log, home, shared.owner.boot).await?;
        shared.machines.lock().insert(home, found);
    }
    Ok(())
}

/// The home that runs the prompts of a session. For old sessions without one, it is the home that ran their last turn.
pub(crate) async fn home_of(shared: &SessionsInner, session: &Session) -> Result<HomeId, SessionError> {
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

/// Refuses to run prompts here if this machine doesn't have the directory of the session.
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

/// Moves a session with its queued prompts to this machine.
pub(crate) async fn move_here(
    shared: &Arc<SessionsInner>,
    id: SessionId,
    by: &Actor,
) -> Result<Session, SessionError> {
    shared.check_open()?;
    check_directory(&store::session(&shared.log, id).await?).await?;
    let home = shared.owner.home;
    let moved = shared
        .change(id, |session| {
            if session.record.home == Some(home) {
                return Ok(None);
            }
            let happened = Happening::new("home_set", by, None, home.to_string());
            Ok(Some(amend(shared, session, happened, |next| {
                next.home = Some(home)
            })))
        })
        .await;
    let session = moved?;
    if session.record.state() == SessionState::Waiting {
        go_on(shared, id);
    }
    Ok(session)
}
