//! Converts the events of a turn to and from their stored form.
//!
//! The body of an event in the log is its JSON, and readers of the stream get the same bytes. A reader that knows
//! version 1 ignores unknown kinds and fields.

use eventlog::{CommitError, Event, NewEvent};

use crate::prompt::StoredAttachment;

/// Something that happened in a turn, as stored in the log.
pub type TurnEvent = protocol::TurnEventBody<StoredAttachment>;

pub(crate) const EVENT_VERSION: u32 = 1;

pub(crate) fn to_log(event: &TurnEvent) -> Result<NewEvent, CommitError> {
    let blobs = match event {
        TurnEvent::Accepted { prompt, .. } | TurnEvent::Edited { prompt } => prompt
            .attachments
            .iter()
            .map(|attachment| attachment.content)
            .collect(),
        _ => Vec::new(),
    };
    Ok(NewEvent {
        blobs,
        ..NewEvent::json(event.kind(), event)?
    })
}

pub(crate) fn all_to_log(events: &[TurnEvent]) -> Result<Vec<NewEvent>, CommitError> {
    events.iter().map(to_log).collect()
}

/// Parses an event from the log; `None` if its kind is unknown.
#[must_use]
pub fn from_log(event: &Event) -> Option<TurnEvent> {
    serde_json::from_slice(&event.body)
        .ok()
        .filter(|event| *event != TurnEvent::Unknown)
}
