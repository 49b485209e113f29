//! The machines that share a log: each home with its name, and which life of it is the one that counts.

mod claim;
mod place;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{Log, LogError, MovesEnd};
use kernel::{Clock, Deadline, HomeId, Scope, Slot};

pub(crate) use claim::Claimed;
pub(super) use claim::{Elsewhere, claim};
use place::Place;

use super::heads::each_head;
use crate::home::Home;

/// The kind of these streams.
pub(super) const KIND: &str = "machine";
/// How often it is looked without a hint whether there are new ones.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The shortest time between two looks.
const BREATH: Duration = Duration::from_secs(1);
/// How much of the id of a home tells two of one name apart.
const SHORT_ID: usize = 6;

/// This machine, as it tells others about itself.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    name: String,
    place: Place,
}

impl Machine {
    /// With this name, or with that of the host.
    pub(super) fn new(home: &Home, name: Option<&str>) -> io::Result<Self> {
        Ok(Self {
            name: name.map_or_else(host_name, str::to_owned),
            place: Place::of(home)?,
        })
    }
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The names of all machines on this log, as of a moment ago. Clones are the same list.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    own: HomeId,
    labels: Arc<Slot<BTreeMap<String, String>>>,
}

impl Machines {
    /// Those of a log that nobody shares: there is no need for names.
    pub(crate) fn alone(own: HomeId) -> Self {
        Self {
            own,
            labels: Arc::new(Slot::new(BTreeMap::new())),
        }
    }

    pub(super) async fn load(log: &Log, own: HomeId) -> Result<Self, LogError> {
        let labels = Arc::new(Slot::new(read(log).await?));
        Ok(Self { own, labels })
    }

    /// What people call the machine of a home. Nothing if there is only one, or it is not known.
    pub(crate) fn label(&self, home: &str) -> Option<String> {
        let labels = self.labels.read().state;
        labels.get(home).filter(|_| labels.len() > 1).cloned()
    }

    /// The machine of a home that is not this one.
    pub(crate) fn elsewhere(&self, home: HomeId) -> Option<String> {
        let name = || self.label(&home.to_string()).unwrap_or_else(|| home.to_string());
        (home != self.own).then(name)
    }

    /// Keeps the list up to date.
    pub(super) async fn follow(self, log: Log, clock: Arc<dyn Clock>, closing: Scope) {
        let mut moves = log.moved(KIND);
        loop {
            match read(&log).await {
                Ok(labels) => {
                    let seen = self.labels.read();
                    // Nobody else writes it.
                    drop(self.labels.transition(seen.generation, labels));
                }
                Err(error) => tracing::debug!(%error, "the names of machines could not be read"),
            }
            tokio::select! {
                _ = closing.wait() => return,
                () = Deadline::after(&clock, BREATH).passed() => {}
            }
            let patience = Deadline::after(&clock, LOOK_EVERY);
            if let Err(MovesEnd::Cancelled(_)) = moves.next(patience, &closing).await {
                return;
            }
        }
    }
}

async fn read(log: &Log) -> Result<BTreeMap<String, String>, LogError> {
    let mut names = BTreeMap::new();
    each_head(log, KIND, None, |stored| {
        let home = stored.stream.as_str().strip_prefix("machine/");
        if let (Some(home), Some(record)) = (home, claim::record_of(log, &stored)) {
            names.insert(home.to_owned(), record.name);
        }
    })
    .await?;
    Ok(labels(names))
}

/// Names that tell machines apart: with the end of the id where two have the same.
fn labels(names: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for name in names.values() {
        *counts.entry(name).or_default() += 1;
    }
    let labels = names.iter().map(|(home, name)| {
        let label = match counts.get(&**name) {
            Some(2..) => format!("{name} ({})", &home[home.len().saturating_sub(SHORT_ID)..]),
            _ => name.clone(),
        };
        (home.clone(), label)
    });
    labels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_one_name_are_told_apart_by_their_homes() {
        let names = [
            ("home_A000001", "box"),
            ("home_B000002", "box"),
            ("home_C", "desk"),
        ];
        let names = names.map(|(home, name)| (home.to_owned(), name.to_owned()));
        let found = labels(names.into());
        let found: Vec<_> = found.values().map(String::as_str).collect();
        assert_eq!(found, ["box (000001)", "box (000002)", "desk"]);
    }
}
