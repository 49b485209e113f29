//! What waits for a person, over all of the daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

/// Why something waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// An agent stands still until somebody answers.
    Permission,
    /// An apply or undo is stuck half-way, and its workspace cannot be used.
    Stuck,
    /// Content of a user was kept beside the workspace, and waits to be restored or dropped.
    Rescued,
    /// What a command in a plan changed could not be recorded. It is still in the sandbox.
    NotRecorded,
    /// A plan is left open because of work in its sandbox that a plan does not carry.
    NotCarried,
    /// Others have changed the same places as a plan.
    Conflict,
    /// A check of a plan has failed.
    CheckFailed,
    /// A plan is sealed, and a check of it is still to be run.
    ChecksMissing,
    /// A plan is sealed, and waits to be applied.
    Review,
    /// Two open plans touch the same files.
    Overlap,
    /// A language server was given up.
    Server,
    /// Prompts wait for a machine whose daemon does not run.
    Waiting,
    /// A turn was cut off by the end of its daemon.
    Interrupted,
    /// A job failed within the last hour.
    Job,
    /// A circuit breaker is open.
    Breaker,
}

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Need {
    /// Why it waits.
    pub kind: NeedKind,
    /// The id of what waits: a session, a plan, a language server, a job, a workspace or rescued content, or the name of a
    /// breaker.
    #[schema(example = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// What that is for; may be empty.
    pub title: String,
    /// What is to be said of it.
    pub text: String,
    /// The permission that is asked for, or the other plan of an overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The machine that it is on. A breaker is on all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// The answer of `GET /v1/needs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NeedList {
    /// What waits, most urgent first.
    pub needs: Vec<Need>,
    /// Something could not be read, so there may be more.
    pub is_partial: bool,
}
