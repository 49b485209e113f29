//! The machines that share a log: on which of them the prompts of a session run, and which of them are there.
//!
//! A session has a home, whose machine has its directory. Its prompts run there and nowhere else, until a user says otherwise
//! ([`move_here`]). Every daemon writes down which life of its home is the newest one, after it has taken the lease of that
//! life. So whoever finds a prompt that waits for another home can find out whether anybody is there to run it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use eventlog::{Commit, CommitError, Head, StoredHead, Version, Write};
use kernel::{BootId, HomeId, SessionId};
use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::manage::{amend, existing};
use crate::owner::{Owner, Sharing, is_life_over};
use crate::runner::go_on;
use crate::session::{Actor, Session, SessionState};
use crate::shared::Shared;
use crate::state::Happening;
use crate::store::{self, TRIES};
use crate::streams::{MACHINE_KIND, as_text, machine_stream};

/// What is kept of a home. There is one for each, and it stays: a name that was seen once is needed as long as sessions have
/// that home.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MachineRecord {
    /// The newest life of its daemon.
    #[serde(with = "as_text")]
    boot: BootId,
    /// What the machine is called.
    name: String,
}

impl MachineRecord {
    fn of(stored: &StoredHead) -> Result<Self, SessionError> {
        serde_json::from_slice(&stored.head.body).map_err(|source| SessionError::Unreadable {
            stream: stored.stream.to_string(),
            source,
        })
    }
}

/// Another machine, which a session waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AwaitedMachine {
    /// The home of its daemon.
    pub home: HomeId,
    /// What it is called; the id of the home if that is not known.
    pub name: String,
    /// Whether its daemon is there.
    pub presence: Presence,
}

/// Whether a daemon is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It is, as far as is known.
    Running,
    /// Nobody holds the lease of its newest life.
    Gone,
}

impl AwaitedMachine {
    fn unknown(home: HomeId) -> Self {
        Self {
            home,
            name: home.to_string(),
            presence: Presence::Running,
        }
    }
}

/// The other machines that sessions wait for, as they were when it was last looked.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    /// Held to look and to write.
    awaited: Mutex<BTreeMap<HomeId, AwaitedMachine>>,
}

impl Machines {
    /// The machine that a session waits for, if that is another one.
    pub(crate) fn awaited(&self, shared: &Shared, session: &Session) -> Option<AwaitedMachine> {
        let home = session.record.home.filter(|home| *home != shared.owner.home)?;
        let is_waiting = session.record.state() == SessionState::Waiting;
        if !is_waiting || shared.sharing == Sharing::Alone {
            return None;
        }
        let known = self.lock().get(&home).cloned();
        Some(known.unwrap_or_else(|| AwaitedMachine::unknown(home)))
    }

    /// Whether all of these have been looked for.
    pub(crate) fn knows(&self, homes: &BTreeSet<HomeId>) -> bool {
        let awaited = self.lock();
        homes.iter().all(|home| awaited.contains_key(home))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<HomeId, AwaitedMachine>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks whether the daemons of these homes are there. What was known of others is forgotten: nothing waits for them.
pub(crate) async fn look_for(shared: &Shared, homes: BTreeSet<HomeId>) -> Result<(), SessionError> {
    let mut found = BTreeMap::new();
    for home in homes {
        found.insert(home, find(shared, home).await?);
    }
    *shared.machines.lock() = found;
    Ok(())
}

/// Looks for one more, if that was not done a short while ago: somebody is about to wait for it.
pub(crate) async fn look_for_one(shared: &Shared, home: HomeId) -> Result<(), SessionError> {
    if !shared.machines.knows(&BTreeSet::from([home])) {
        let found = find(shared, home).await?;
        shared.machines.lock().insert(home, found);
    }
    Ok(())
}

async fn find(shared: &Shared, home: HomeId) -> Result<AwaitedMachine, SessionError> {
    let Some(stored) = shared.log.head(&machine_stream(home)?).await? else {
        // Every daemon that gives a session its home has written itself down before.
        return Ok(AwaitedMachine {
            presence: Presence::Gone,
            ..AwaitedMachine::unknown(home)
        });
    };
    let MachineRecord { boot, name } = shared.log.looked_at(&stored, MachineRecord::of(&stored))?;
    let presence = match is_life_over(shared, Owner { home, boot }).await? {
        true => Presence::Gone,
        false => Presence::Running,
    };
    Ok(AwaitedMachine { home, name, presence })
}

/// Writes down that this is the newest life of its home. Its lease is held by now.
pub(crate) async fn register(shared: &Shared, name: &str) -> Result<(), SessionError> {
    let stream = machine_stream(shared.owner.home)?;
    let record = MachineRecord {
        boot: shared.owner.boot,
        name: name.to_owned(),
    };
    let head = Head::json(MACHINE_KIND, "known", &record)?;
    for _ in 0..TRIES {
        let stored = shared.log.head(&stream).await?;
        let write = Write {
            stream: stream.clone(),
            expected: stored.map_or(Version::NONE, |stored| stored.version),
            head: Some(head.clone()),
            events: Vec::new(),
        };
        match shared.log.commit(Commit::one(write)).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(SessionError::Closed)
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
