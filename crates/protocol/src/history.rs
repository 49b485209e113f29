//! Manual changes to breakers, event by event.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One manual change to a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerEvent {
    /// The position in the history: 1, 2, 3 and so on, without gaps.
    pub sequence: u64,
    /// When the change was made, in RFC 3339 and UTC, with millisecond precision.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00.125Z")]
    pub at: String,
    /// The change: `forced_open`, `forced_closed` or `reset`. Later versions may add others.
    #[schema(example = "forced_open")]
    pub kind: String,
    /// Who made the change. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
}

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// The id of the request that made the change, as in the `x-request-id` header of its response.
    #[schema(example = "req_01JCZ8T6V8Y3N5K2M4Q7R9S1TX")]
    pub request_id: String,
    /// How the request arrived: `unix` or `tcp`.
    #[schema(example = "unix")]
    pub transport: String,
}

/// The response of `GET /v1/breakers/{name}/events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerEventList {
    /// The events, oldest first.
    pub events: Vec<BreakerEvent>,
    /// The sequence number of the oldest event that is still stored. Older events have expired.
    pub first: u64,
    /// The sequence number of the newest event, whether or not it is in this response. 0 if there has never
    /// been one.
    pub last: u64,
}

/// The data of a `resync` event in a stream: events that the reader hasn't seen were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resync {
    /// The stream continues after this sequence number.
    pub after: u64,
}
