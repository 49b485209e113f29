//! The events of a turn, on their way to the log and back.
//!
//! The body of an event in the log is its JSON, and readers of the stream get the same bytes. A reader that knows version 1
//! passes over kinds and members that it does not know.

use eventlog::{CommitError, Event, NewEvent};

use crate::prompt::StoredAttachment;

/// Something that happened in a turn, as the log has it.
pub type TurnEvent = protocol::TurnEventBody<StoredAttachment>;

/// The version of these events.
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

/// An event from the log, unless it is of a kind that is not known here.
#[must_use]
pub fn from_log(event: &Event) -> Option<TurnEvent> {
    serde_json::from_slice(&event.body)
        .ok()
        .filter(|event| *event != TurnEvent::Unknown)
}
