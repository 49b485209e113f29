//! Recent activity across the whole daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of object an activity entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// A session, or one of its turns.
    Session,
    /// A plan.
    Plan,
    /// A job.
    Job,
    /// A language server. Only its latest change is known, and only since the daemon started.
    Server,
    /// A circuit breaker that a user changed manually.
    Breaker,
    /// The daemon itself.
    Daemon,
}

/// One entry in the activity feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    /// When it happened, in RFC 3339 and UTC, with millisecond precision.
    #[schema(format = "date-time", example = "2026-01-31T09:30:00.125Z")]
    pub at: String,
    /// The kind of object it happened to.
    pub kind: ActivityKind,
    /// The id of that object.
    #[schema(example = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The object's one-line title. May be empty.
    pub title: String,
    /// What happened, as one word, such as `applied` for a plan or `failed` for a job. Later versions may add
    /// others.
    #[schema(example = "applied")]
    pub event: String,
    /// Who did it. May be empty.
    pub actor: String,
    /// A one-line description. May be empty.
    pub text: String,
    /// How many times in a row it happened. `at` and `text` are those of the latest occurrence.
    pub count: u64,
}

/// The response of `GET /v1/activity`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivityList {
    /// The entries, newest first.
    pub activity: Vec<Activity>,
}
