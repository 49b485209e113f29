//! How plans stand in the log: the names of their streams, their heads, and their events.
//!
//! | stream | kind | status | events |
//! |---|---|---|---|
//! | `plan/ID` | `plan` | its state | what happened to the plan |
//! | `changeset/ID` | `changeset` | the id of its plan, so that those of one plan can be listed | the changes, in order |
//! | `landing/ID` | `landing` | `begun`, `done`, `taken_back` or `set_aside` | what it does, path by path |
//! | `workspace/ID` | `workspace` | `present` | none |
//! | `plan-key/KEY` | `plan-key` | `used` | none |
//!
//! Bodies are JSON. Readers pass over what they do not know.

use std::sync::Arc;

use eventlog::{BlobId, DAMAGED_EVENT, Event, Head, NewEvent, StoredHead, StreamId};
use protocol::{ChangesetId, PlanId, WorkspaceId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::landings::LandingRecord;
use crate::{Actor, ChangesetRecord, Moment, Plan, PlanError, Record, Recorded, WorkspaceRecord};

pub(crate) const PLAN_KIND: &str = "plan";
pub(crate) const CHANGESET_KIND: &str = "changeset";
pub(crate) const LANDING_KIND: &str = "landing";
pub(crate) const WORKSPACE_KIND: &str = "workspace";
pub(crate) const KEY_KIND: &str = "plan-key";

/// What is wrong with a stream whose name cannot be ours.
const NOT_AN_ID: &str = "its name is not an id";

const CHANGE_EVENT: &str = "change";

pub(crate) fn plan_stream(id: PlanId) -> Result<StreamId, PlanError> {
    stream(&format!("plan/{id}"))
}

pub(crate) fn changeset_stream(id: ChangesetId) -> Result<StreamId, PlanError> {
    stream(&format!("changeset/{id}"))
}

pub(crate) fn landing_stream(id: &str) -> Result<StreamId, PlanError> {
    stream(&format!("landing/{id}"))
}

pub(crate) fn workspace_stream(id: WorkspaceId) -> Result<StreamId, PlanError> {
    stream(&format!("workspace/{id}"))
}

/// The stream of an idempotency key. Keys are other people's texts, so their hash stands for them.
pub(crate) fn key_stream(key: &str) -> Result<StreamId, PlanError> {
    stream(&format!("plan-key/{}", blake3::hash(key.as_bytes()).to_hex()))
}

fn stream(name: &str) -> Result<StreamId, PlanError> {
    StreamId::new(name).map_err(|bad| PlanError::Commit(bad.into()))
}

/// The id that a stream is named after.
pub(crate) fn id_of<T: std::str::FromStr>(stream: &StreamId) -> Option<T> {
    let (_, id) = stream.as_str().split_once('/')?;
    id.parse().ok()
}

pub(crate) fn plan_head(record: &Record) -> Result<Head, PlanError> {
    head(PLAN_KIND, record.state.as_str(), record)
}

pub(crate) fn changeset_head(record: &ChangesetRecord) -> Result<Head, PlanError> {
    head(CHANGESET_KIND, &record.plan.to_string(), record)
}

pub(crate) fn landing_head(record: &LandingRecord) -> Result<Head, PlanError> {
    head(LANDING_KIND, record.state.name(), record)
}

pub(crate) fn workspace_head(record: &WorkspaceRecord) -> Result<Head, PlanError> {
    head(WORKSPACE_KIND, "present", record)
}

pub(crate) fn key_head(plan: PlanId) -> Result<Head, PlanError> {
    head(KEY_KIND, "used", &plan.to_string())
}

fn head(kind: &str, status: &str, body: &impl Serialize) -> Result<Head, PlanError> {
    Ok(Head::json(kind, status, body)?)
}

/// Reads a body that we have written.
pub(crate) fn parse<T: DeserializeOwned>(stream: &StreamId, body: &[u8]) -> Result<T, PlanError> {
    serde_json::from_slice(body).map_err(|source| unreadable(stream, source))
}

fn misnamed(stored: &StoredHead) -> PlanError {
    unreadable(&stored.stream, serde::de::Error::custom(NOT_AN_ID))
}

fn unreadable(stream: &StreamId, source: serde_json::Error) -> PlanError {
    PlanError::Unreadable {
        stream: stream.to_string(),
        source,
    }
}

pub(crate) fn plan_of(stored: &StoredHead) -> Result<Plan, PlanError> {
    Ok(Plan {
        id: id_of(&stored.stream).ok_or_else(|| misnamed(stored))?,
        version: stored.version,
        record: parse(&stored.stream, &stored.head.body)?,
    })
}

pub(crate) fn workspace_of(stored: &StoredHead) -> Result<(WorkspaceId, WorkspaceRecord), PlanError> {
    let id = id_of(&stored.stream).ok_or_else(|| misnamed(stored))?;
    Ok((id, parse(&stored.stream, &stored.head.body)?))
}

pub(crate) fn landing_of(stored: &StoredHead) -> Result<LandingRecord, PlanError> {
    parse(&stored.stream, &stored.head.body)
}

/// Why a head of ours cannot be read; nothing if it can be, or is not ours.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    fn problem<T: DeserializeOwned>(body: &[u8]) -> Option<serde_json::Error> {
        serde_json::from_slice::<T>(body).err()
    }
    let is_named = match &*head.kind {
        PLAN_KIND => id_of::<PlanId>(stream).is_some(),
        CHANGESET_KIND => id_of::<ChangesetId>(stream).is_some(),
        WORKSPACE_KIND => id_of::<WorkspaceId>(stream).is_some(),
        _ => true,
    };
    if !is_named {
        return Some(serde::de::Error::custom(NOT_AN_ID));
    }
    match &*head.kind {
        PLAN_KIND => problem::<Record>(&head.body),
        CHANGESET_KIND => problem::<ChangesetRecord>(&head.body),
        LANDING_KIND => problem::<LandingRecord>(&head.body),
        WORKSPACE_KIND => problem::<WorkspaceRecord>(&head.body),
        KEY_KIND => problem::<String>(&head.body),
        _ => None,
    }
}

/// The event of a change. It keeps the contents.
pub(crate) fn change_event(recorded: &Recorded) -> Result<NewEvent, PlanError> {
    let mut blobs: Vec<BlobId> = recorded.change.contents().collect();
    blobs.dedup();
    Ok(NewEvent {
        blobs,
        ..NewEvent::json(CHANGE_EVENT, recorded)?
    })
}

pub(crate) fn change_of(stream: &StreamId, event: &Event) -> Result<Option<Recorded>, PlanError> {
    if &*event.kind == DAMAGED_EVENT {
        return Err(unreadable(
            stream,
            serde::de::Error::custom("a change was damaged"),
        ));
    }
    if &*event.kind != CHANGE_EVENT {
        return Ok(None);
    }
    parse(stream, &event.body).map(Some)
}

/// Something that happened to a plan, for people.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PlanEvent {
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

    pub(crate) fn to_event(&self) -> Result<NewEvent, PlanError> {
        let body = PlanEventBody {
            actor: self.actor.to_string(),
            text: self.text.clone(),
        };
        Ok(NewEvent::json(self.event, &body)?)
    }
}

impl Moment {
    /// What an event of a plan's stream says.
    #[must_use]
    pub fn of(event: &Event) -> Self {
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
