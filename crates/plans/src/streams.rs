//! How plans are stored in the log: the names of their streams, their heads, and their events.
//!
//! | stream | kind | status | events |
//! |---|---|---|---|
//! | `plan/ID` | `plan` | its state | what happened to the plan |
//! | `changeset/ID` | `changeset` | the id of its plan, so that those of one plan can be listed | the changes, in order |
//! | `landing/ID` | `landing` | `begun`, `done`, `taken_back` or `set_aside` | what it does, path by path |
//! | `workspace/ID` | `workspace` | `present` | none |
//! | `plan-key/KEY` | `plan-key` | `used` | none |
//!
//! Bodies are JSON. Readers ignore what they don't know.

use std::sync::Arc;

use eventlog::{
    CommitError, DAMAGED_EVENT, Entity, EntityEvent, EntityRecord, Event, Head, Log, NewEvent, NoEvent,
    StreamId, Version,
};
use protocol::{ChangesetId, PlanId, WorkspaceId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::landing_queue::LandingEvent;
use crate::landings::LandingRecord;
use crate::{Actor, ChangesetRecord, Moment, PlanError, PlanRecord, Recorded, WorkspaceRecord};

const CHANGE_EVENT: &str = "change";

impl EntityRecord for PlanRecord {
    const KIND: &'static str = "plan";
    type Id = PlanId;
    type Event = PlanEvent;

    fn status(&self) -> Arc<str> {
        self.state.as_str().into()
    }
}

impl EntityRecord for ChangesetRecord {
    const KIND: &'static str = "changeset";
    type Id = ChangesetId;
    type Event = Recorded;

    fn status(&self) -> Arc<str> {
        self.plan.to_string().into()
    }
}

impl EntityRecord for LandingRecord {
    const KIND: &'static str = "landing";
    type Id = String;
    type Event = LandingEvent;

    fn status(&self) -> Arc<str> {
        self.state.name().into()
    }
}

impl EntityRecord for WorkspaceRecord {
    const KIND: &'static str = "workspace";
    type Id = WorkspaceId;
    type Event = NoEvent;

    fn status(&self) -> Arc<str> {
        "present".into()
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct KeyRecord(pub(crate) PlanId);

impl EntityRecord for KeyRecord {
    const KIND: &'static str = "plan-key";
    /// Keys are arbitrary text from callers, so their hash is used instead.
    type Id = String;
    type Event = NoEvent;

    fn status(&self) -> Arc<str> {
        "used".into()
    }
}

impl KeyRecord {
    pub(crate) fn id_of(key: &str) -> String {
        blake3::hash(key.as_bytes()).to_hex().to_string()
    }
}

/// Why one of our heads can't be read; `None` if it can, or isn't ours.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    Entity::<PlanRecord>::problem(stream, head)
        .or_else(|| Entity::<ChangesetRecord>::problem(stream, head))
        .or_else(|| Entity::<LandingRecord>::problem(stream, head))
        .or_else(|| Entity::<WorkspaceRecord>::problem(stream, head))
        .or_else(|| Entity::<KeyRecord>::problem(stream, head))
}

pub(crate) fn parse<T: DeserializeOwned>(stream: &StreamId, body: &[u8]) -> Result<T, PlanError> {
    serde_json::from_slice(body).map_err(|source| unreadable(stream, source))
}

fn unreadable(stream: &StreamId, source: serde_json::Error) -> PlanError {
    PlanError::Unreadable {
        stream: stream.to_string(),
        source,
    }
}

/// Removes streams, all or none. Returns whether they were still at these versions.
pub(crate) async fn remove_unchanged(
    log: &Log,
    streams: Vec<(StreamId, Version)>,
) -> Result<bool, PlanError> {
    match log.remove(streams).await {
        Ok(()) => Ok(true),
        Err(CommitError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl EntityEvent for Recorded {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        let mut blobs: Vec<_> = self.change.contents().collect();
        blobs.dedup();
        Ok(NewEvent {
            blobs,
            ..NewEvent::json(CHANGE_EVENT, self)?
        })
    }
}

pub(crate) fn change_of(stream: &StreamId, event: &Event) -> Result<Option<Recorded>, PlanError> {
    match &*event.kind {
        DAMAGED_EVENT => Err(unreadable(
            stream,
            serde::de::Error::custom("a change was damaged"),
        )),
        CHANGE_EVENT => parse(stream, &event.body).map(Some),
        _ => Ok(None),
    }
}

/// Something that happened to a plan, for people.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanEvent {
    pub(crate) event: &'static str,
    pub(crate) actor: Actor,
    pub(crate) text: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct PlanEventBody {
    #[serde(default)]
    actor: String,
    #[serde(default)]
    text: String,
}

impl PlanEvent {
    pub(crate) fn new(event: &'static str, actor: &Actor, text: impl Into<String>) -> Self {
        Self {
            event,
            actor: Arc::clone(actor),
            text: text.into(),
        }
    }
}

impl EntityEvent for PlanEvent {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        let body = PlanEventBody {
            actor: self.actor.to_string(),
            text: self.text.clone(),
        };
        NewEvent::json(self.event, &body)
    }
}

impl Moment {
    #[must_use]
    pub fn of(event: &Event) -> Self {
        // An event with a damaged body is still part of the history.
        let body: PlanEventBody = serde_json::from_slice(&event.body).unwrap_or_default();
        Self {
            sequence: event.sequence,
            at_ms: event.at_ms,
            event: event.kind.to_string(),
            actor: body.actor,
            text: body.text,
        }
    }
}
