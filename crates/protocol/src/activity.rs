//! What happened lately, over all of the daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What something happened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// A session, or a turn of it.
    Session,
    /// A plan.
    Plan,
    /// A job.
    Job,
    /// A language server. Only its last change is known, and only since the daemon started.
    Server,
    /// A circuit breaker that was changed by hand.
    Breaker,
    /// The daemon itself.
    Daemon,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    /// When, in RFC 3339 and UTC, to the millisecond.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00.125Z")]
    pub at: String,
    /// What it happened to.
    pub kind: ActivityKind,
    /// The id of that.
    #[schema(example = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// What that is for, in one line; may be empty.
    pub title: String,
    /// What happened, in one word: for a plan `applied`, for a job `failed` and so on. Later versions may add others.
    #[schema(example = "applied")]
    pub event: String,
    /// Who did it; may be empty.
    pub actor: String,
    /// What is to be said of it, in one line; may be empty.
    pub text: String,
    /// How often it happened in a row. The time and the text are those of the last one.
    pub count: u64,
}

/// The answer of `GET /v1/activity`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityList {
    /// What happened, newest first.
    pub activity: Vec<Activity>,
}
