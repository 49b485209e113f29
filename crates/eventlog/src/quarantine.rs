//! Heads that can't be read, so that one of them never stops a start or a list.
//!
//! Whoever lists heads omits such a head and records it here. The log keeps it as it is; `tidelock quarantine`
//! lists, shows and drops them. This list is in memory: it has what was found since the log was opened.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::commit::StoredHead;

/// How many heads are listed. Further ones are only logged.
const QUARANTINE_LIMIT: usize = 1_000;
/// The longest reason that is kept.
const REASON_BYTES: usize = 500;

/// A head that can't be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quarantined {
    /// The name of its stream.
    pub stream: String,
    /// The kind of the head.
    pub kind: Arc<str>,
    /// Why it can't be read.
    pub reason: String,
}

/// The list. Clones refer to the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    /// Guards the list; held to add, read or remove an entry.
    listed: Arc<Mutex<BTreeMap<String, Quarantined>>>,
}

impl Quarantine {
    fn listed(&self) -> MutexGuard<'_, BTreeMap<String, Quarantined>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn look<T, E: Error>(&self, stored: &StoredHead, read: &Result<T, E>) {
        match read {
            Ok(_) => {
                let mut listed = self.listed();
                if !listed.is_empty() {
                    listed.remove(stored.stream.as_str());
                }
            }
            Err(error) => self.note(stored.stream.as_str(), &stored.head.kind, error),
        }
    }

    /// Adds a head, and logs it the first time.
    pub(crate) fn note(&self, stream: &str, kind: &str, reason: &dyn Error) {
        let mut listed = self.listed();
        if listed.contains_key(stream) || listed.len() >= QUARANTINE_LIMIT {
            return;
        }
        let mut reason = chain(reason);
        reason.truncate(reason.floor_char_boundary(REASON_BYTES));
        tracing::error!(
            stream,
            reason,
            "a head cannot be read and is omitted; see `tidelock quarantine`"
        );
        let quarantined = Quarantined {
            stream: stream.to_owned(),
            kind: kind.into(),
            reason,
        };
        listed.insert(stream.to_owned(), quarantined);
    }

    pub(crate) fn list(&self) -> Vec<Quarantined> {
        self.listed().values().cloned().collect()
    }

    pub(crate) fn forget(&self, stream: &str) {
        self.listed().remove(stream);
    }
}

/// An error and its sources, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::commit::Head;
    use crate::names::{Sequence, StreamId, Version};

    #[test]
    fn a_head_is_listed_until_it_can_be_read() {
        let stored = StoredHead {
            stream: StreamId::new("plan/1").unwrap(),
            version: Version::NONE,
            last_sequence: Sequence::default(),
            head: Head::json("plan", "open", &1).unwrap(),
        };
        let quarantine = Quarantine::default();
        let unreadable = |why: &str| Err::<(), _>(io::Error::other(why));
        quarantine.look(&stored, &unreadable(&"é".repeat(REASON_BYTES)));
        quarantine.look(&stored, &unreadable("again"));
        let listed = quarantine.list();
        assert_eq!((listed.len(), listed[0].stream.as_str()), (1, "plan/1"));
        assert_eq!(listed[0].reason.len(), REASON_BYTES);
        quarantine.look(&stored, &Ok::<_, io::Error>(7));
        assert_eq!(quarantine.list(), []);
        for number in 0..=QUARANTINE_LIMIT {
            quarantine.note(&number.to_string(), "plan", &io::Error::other("broken"));
        }
        assert_eq!(quarantine.list().len(), QUARANTINE_LIMIT);
    }
}
