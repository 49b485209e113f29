//! What people call the machines that share a log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{Log, LogError, MovesEnd};
use kernel::{Clock, Deadline, Scope, Slot};
use protocol::HomeId;

use crate::record::{KIND, home_of, record_of};

/// How often it is looked without a hint whether there are new ones.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The shortest time between two looks.
const BREATH: Duration = Duration::from_secs(1);
/// How much of the id of a home tells two of one name apart.
const SHORT_ID: usize = 6;

/// What the system calls this machine.
#[must_use]
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The names of all machines on this log, as of a moment ago. Clones are the same list.
#[derive(Clone, Debug)]
pub struct Machines {
    own: HomeId,
    labels: Arc<Slot<BTreeMap<HomeId, String>>>,
}

/// A machine, as people are told of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Label {
    /// The home of its daemon.
    pub home: HomeId,
    /// What it is called; the id of the home if that is not known.
    pub name: String,
    /// Whether it is this one.
    pub is_here: bool,
}

impl Machines {
    /// Those of a log that nobody shares.
    #[must_use]
    pub fn alone(own: HomeId, name: String) -> Self {
        Self {
            own,
            labels: Arc::new(Slot::new(BTreeMap::from([(own, name)]))),
        }
    }

    /// Those that have written themselves down.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn load(log: &Log, own: HomeId) -> Result<Self, LogError> {
        let labels = Arc::new(Slot::new(read(log).await?));
        Ok(Self { own, labels })
    }

    /// The machine of a home.
    #[must_use]
    pub fn of(&self, home: HomeId) -> Label {
        let name = self.labels.read().state.get(&home).cloned();
        Label {
            home,
            name: name.unwrap_or_else(|| home.to_string()),
            is_here: home == self.own,
        }
    }

    /// This machine.
    #[must_use]
    pub fn own(&self) -> Label {
        self.of(self.own)
    }

    /// The others, by home.
    pub fn others(&self) -> impl Iterator<Item = Label> {
        let homes: Vec<HomeId> = self.labels.read().state.keys().copied().collect();
        homes
            .into_iter()
            .filter(|home| *home != self.own)
            .map(|home| self.of(home))
    }

    /// Keeps the list up to date.
    ///
    /// *Cancel safety*: dropped, the list stays as it is.
    pub async fn follow(self, log: Log, clock: Arc<dyn Clock>, closing: Scope) {
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

async fn read(log: &Log) -> Result<BTreeMap<HomeId, String>, LogError> {
    let mut names = BTreeMap::new();
    log.each_head(KIND, None, |stored| {
        if let (Some(home), Some(record)) = (home_of(&stored.stream), record_of(log, &stored)) {
            names.insert(home, record.name);
        }
    })
    .await?;
    Ok(labels(&names))
}

/// Names that tell machines apart: with the end of the id where two have the same.
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
