//! The names of the machines that share a log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{ChangesEnd, EntityRecord, Log, LogError};
use kernel::{Clock, Deadline, Scope, Slot};
use protocol::HomeId;

use crate::record::{HomeEntity, MachineRecord};

/// How often to read the names without a hint.
const READ_EVERY: Duration = Duration::from_secs(60);
/// The shortest time between two reads.
const READ_PAUSE: Duration = Duration::from_secs(1);
/// How much of a home's id is shown if two machines have the same name.
const SHORT_ID: usize = 6;

/// The host name of this machine.
#[must_use]
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The names of all machines on this log, as of a moment ago. Clones refer to the same list.
#[derive(Clone, Debug)]
pub struct Machines {
    own: HomeId,
    labels: Arc<Slot<BTreeMap<HomeId, String>>>,
}

/// A machine, as it is shown to users.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MachineLabel {
    /// The home of its daemon.
    pub home: HomeId,
    /// Its name, or the id of the home if the name is unknown.
    pub name: String,
    /// Whether it is this machine.
    pub is_here: bool,
}

impl Machines {
    /// The machine of a log that isn't shared.
    #[must_use]
    pub fn alone(own: HomeId, name: String) -> Self {
        Self {
            own,
            labels: Arc::new(Slot::new(BTreeMap::from([(own, name)]))),
        }
    }

    /// The machines that have a record in the log.
    ///
    /// # Errors
    /// The log can't be read.
    pub async fn load(log: &Log, own: HomeId) -> Result<Self, LogError> {
        let labels = Arc::new(Slot::new(read(log).await?));
        Ok(Self { own, labels })
    }

    /// The machine of a home.
    #[must_use]
    pub fn of(&self, home: HomeId) -> MachineLabel {
        let name = self.labels.read().state.get(&home).cloned();
        MachineLabel {
            home,
            name: name.unwrap_or_else(|| home.to_string()),
            is_here: home == self.own,
        }
    }

    /// This machine.
    #[must_use]
    pub fn own(&self) -> MachineLabel {
        self.of(self.own)
    }

    /// The other machines, by home.
    pub fn others(&self) -> impl Iterator<Item = MachineLabel> {
        let homes: Vec<HomeId> = self.labels.read().state.keys().copied().collect();
        homes
            .into_iter()
            .filter(|home| *home != self.own)
            .map(|home| self.of(home))
    }

    /// Keeps the list up to date.
    ///
    /// *Cancel safety*: if the future is dropped, the list stays as it is.
    pub async fn follow(self, log: Log, clock: Arc<dyn Clock>, closing: Scope) {
        let mut changes = log.changes(MachineRecord::KIND);
        loop {
            match read(&log).await {
                Ok(labels) => {
                    let seen = self.labels.read();
                    // Nobody else writes it.
                    drop(self.labels.transition(seen.generation, labels));
                }
                Err(error) => tracing::debug!(%error, "could not read the names of the machines"),
            }
            tokio::select! {
                _ = closing.wait() => return,
                () = Deadline::after(&clock, READ_PAUSE).passed() => {}
            }
            let patience = Deadline::after(&clock, READ_EVERY);
            if let Err(ChangesEnd::Cancelled(_)) = changes.next(patience, &closing).await {
                return;
            }
        }
    }
}

async fn read(log: &Log) -> Result<BTreeMap<HomeId, String>, LogError> {
    let homes = HomeEntity::all(log, None).await?;
    let names = homes
        .into_iter()
        .map(|home| (home.id, home.record.name))
        .collect();
    Ok(labels(&names))
}

/// Unique names: if two machines have the same name, the end of the id is appended.
fn labels(names: &BTreeMap<HomeId, String>) -> BTreeMap<HomeId, String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for name in names.values() {
        *counts.entry(name).or_default() += 1;
    }
    let label = |home: &HomeId, name: &String| match counts.get(&**name) {
        Some(2..) => {
            let id = home.to_string();
            format!("{name} ({})", &id[id.len().saturating_sub(SHORT_ID)..])
        }
        _ => name.clone(),
    };
    names
        .iter()
        .map(|(home, name)| (*home, label(home, name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_homes() {
        let names = [
            ("home_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", "box"),
            ("home_01JCZ8T6V8Y3N5K2M4Q7R9S1TY", "box"),
            ("home_01JCZ8T6V8Y3N5K2M4Q7R9S1TZ", "desk"),
        ];
        let names = names.map(|(home, name)| (home.parse().unwrap(), name.to_owned()));
        let found = labels(&names.into());
        let found: Vec<_> = found.values().map(String::as_str).collect();
        assert_eq!(found, ["box (R9S1TX)", "box (R9S1TY)", "desk"]);
    }
}
