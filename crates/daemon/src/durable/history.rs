//! The streams of breakers that were held by hand: their names, their heads, and their events.

use std::sync::Arc;

use eventlog::{BadName, Event, Head, Log, LogError, NewEvent, Sequence, StreamId};
use kernel::{CircuitBreaker, CircuitSnapshot, CircuitState, HomeId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::heads::each_head;
use super::overrides::Who;
use crate::times;

/// The kind of these streams.
pub(super) const KIND: &str = "breaker";

/// A change by hand, as the log tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// It is held open from here on.
    ForcedOpen,
    /// It is held closed from here on.
    ForcedClosed,
    /// It decides by itself from here on.
    Reset,
}

impl Transition {
    /// The kind of the event.
    fn event_kind(self) -> &'static str {
        match self {
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
            Self::Reset => "reset",
        }
    }

    /// The status of the head afterwards.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
            Self::Reset => "automatic",
        }
    }

    pub(super) fn head(self, name: &str) -> Head {
        Head {
            kind: Arc::from(KIND),
            status: Arc::from(self.status()),
            body: json!({ "name": name }).to_string().into_bytes().into(),
            blobs: Vec::new(),
        }
    }

    pub(super) fn event(self, who: Who) -> NewEvent {
        let body = By {
            request_id: who.request_id.to_string(),
            transport: who.transport.name().to_owned(),
        };
        NewEvent {
            kind: Arc::from(self.event_kind()),
            body: json!(body).to_string().into_bytes().into(),
            blobs: Vec::new(),
        }
    }
}

/// Who made a change, as the body of its event says it.
#[derive(Debug, Serialize, Deserialize)]
struct By {
    request_id: String,
    transport: String,
}

/// The history of one breaker.
#[derive(Clone, Debug)]
pub(crate) struct BreakerHistory {
    pub(crate) stream: StreamId,
}

/// Some events of a history.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Oldest first.
    pub(crate) events: Vec<api::BreakerEvent>,
}

impl BreakerHistory {
    pub(crate) fn of(home_id: HomeId, name: &str) -> Result<Self, BadName> {
        let stream = StreamId::new(&format!("{}{name}", prefix(home_id)))?;
        Ok(Self { stream })
    }

    /// The events after a place.
    pub(crate) async fn after(&self, log: &Log, place: u64, limit: u32) -> Result<Past, LogError> {
        let page = log.read(&self.stream, Sequence::from_u64(place), limit).await?;
        Ok(Past {
            first: page.first.get(),
            last: page.last.get(),
            events: page.events.iter().map(to_wire).collect(),
        })
    }

    /// The last events up to a place, or up to the newest one.
    pub(crate) async fn before(&self, log: &Log, place: Option<u64>, limit: u32) -> Result<Past, LogError> {
        let newest = log
            .head(&self.stream)
            .await?
            .map_or(0, |head| head.last_sequence.get());
        let end = place.unwrap_or(u64::MAX).min(newest.saturating_add(1));
        let start = end.saturating_sub(u64::from(limit) + 1);
        let mut past = self.after(log, start, limit).await?;
        past.events.retain(|event| event.sequence < end);
        Ok(past)
    }
}

fn prefix(home_id: HomeId) -> String {
    format!("{KIND}/{home_id}/")
}

/// An event as it goes over the wire.
pub(crate) fn to_wire(event: &Event) -> api::BreakerEvent {
    // A body that this version does not understand was written by another one. The event still counts.
    let by: Option<By> = serde_json::from_slice(&event.body).ok();
    api::BreakerEvent {
        sequence: event.sequence.get(),
        at: times::rfc3339_ms(event.at_ms),
        kind: event.kind.to_string(),
        by: by.map(|by| api::Actor {
            request_id: by.request_id,
            transport: by.transport,
        }),
    }
}

/// Brings breakers into the state that the log says they are held in. Nobody else may use them yet.
pub(crate) async fn restore(log: &Log, home_id: HomeId, breakers: &CircuitBreaker) -> Result<u64, LogError> {
    let prefix = prefix(home_id);
    let (mut held, mut left_out) = (0, 0);
    for transition in [Transition::ForcedOpen, Transition::ForcedClosed] {
        each_head(log, KIND, Some(transition.status()), |head| {
            let Some(name) = head.stream.as_str().strip_prefix(&prefix) else {
                return;
            };
            if apply(breakers, name, transition) {
                held += 1;
            } else {
                left_out += 1;
            }
        })
        .await?;
    }
    if left_out > 0 {
        tracing::error!(
            left_out,
            "there is no room for all breakers that are held by hand"
        );
    }
    Ok(held)
}

/// How a circuit is held by hand, if it is.
pub(super) fn held_by_hand(circuit: &CircuitSnapshot) -> Option<Transition> {
    match circuit.state {
        CircuitState::ForcedOpen => Some(Transition::ForcedOpen),
        CircuitState::ForcedClosed => Some(Transition::ForcedClosed),
        CircuitState::Closed | CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => None,
    }
}

/// Brings a breaker into the state that a head says, if it is not in it.
pub(super) fn agree(breakers: &CircuitBreaker, name: &str, status: &str) {
    let known = [Transition::ForcedOpen, Transition::ForcedClosed];
    let wanted = known.into_iter().find(|transition| transition.status() == status);
    let held = breakers.get(name).as_ref().and_then(held_by_hand);
    if wanted != held {
        apply(breakers, name, wanted.unwrap_or(Transition::Reset));
    }
}

/// Makes a change in memory. Returns whether there was room for it.
pub(super) fn apply(breakers: &CircuitBreaker, name: &str, transition: Transition) -> bool {
    match transition {
        Transition::ForcedOpen => breakers.force_open(name),
        Transition::ForcedClosed => breakers.force_closed(name),
        Transition::Reset => breakers.reset(name),
    }
}
