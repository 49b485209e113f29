//! The record of a home in the log: stream `machine/HOME`, kind `machine`, status `claimed`, no events.
//!
//! Each home has one, and it stays: a name is needed as long as something refers to that home.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Entity, EntityRecord, Head, NoEvent, StreamId};
use protocol::{BootId, HomeId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::location::HomeLocation;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MachineRecord {
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

/// The record of a home in the log, by the id of the home.
pub(crate) type HomeEntity = Entity<MachineRecord>;

impl EntityRecord for MachineRecord {
    const KIND: &'static str = "machine";
    type Id = HomeId;
    type Event = NoEvent;

    fn status(&self) -> Arc<str> {
        "claimed".into()
    }
}

/// Why a head of this crate can't be read; `None` if it can, or belongs to another crate.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    HomeEntity::problem(stream, head)
}

fn as_text<S: Serializer>(boot: &BootId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(boot)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BootId, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}
