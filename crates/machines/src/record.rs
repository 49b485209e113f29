//! The record of a home in the log: stream `machine/HOME`, kind `machine`, status `claimed`, no events.
//!
//! Each home has one, and it stays: a name is needed as long as something refers to that home.

use std::path::PathBuf;

use eventlog::{BadName, CommitError, Head, Log, StoredHead, StreamId};
use protocol::{BootId, HomeId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::location::HomeLocation;

/// The kind of these streams.
pub(crate) const KIND: &str = "machine";

/// The record of a home.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MachineRecord {
    /// The name of its machine.
    pub(crate) name: String,
    /// The newest boot of its daemon.
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub(crate) boot: BootId,
    /// Where it is. Earlier versions didn't record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<HomeLocation>,
}

impl MachineRecord {
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|place| place.path.clone())
    }
}

pub(crate) fn stream(home: HomeId) -> Result<StreamId, BadName> {
    StreamId::new(&format!("{KIND}/{home}"))
}

/// The home that a stream is about.
pub(crate) fn home_of(stream: &StreamId) -> Option<HomeId> {
    stream.as_str().strip_prefix("machine/")?.parse().ok()
}

pub(crate) fn head(record: &MachineRecord) -> Result<Head, CommitError> {
    Head::json(KIND, "claimed", record)
}

/// The record in a head; `None` if it can't be read, and then it is quarantined.
pub(crate) fn record_of(log: &Log, stored: &StoredHead) -> Option<MachineRecord> {
    log.readable(stored, serde_json::from_slice(&stored.head.body))
}

/// Why a head of this crate can't be read; `None` if it can, or belongs to another crate.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    if &*head.kind != KIND {
        return None;
    }
    let read = serde_json::from_slice::<MachineRecord>(&head.body).err();
    read.or_else(|| {
        home_of(stream)
            .is_none()
            .then(|| Error::custom("its name is not an id"))
    })
}

fn as_text<S: Serializer>(boot: &BootId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(boot)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BootId, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}
