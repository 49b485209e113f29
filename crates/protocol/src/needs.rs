//! Things that need a person's attention, across the whole daemon.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

/// Why something needs attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// An agent is blocked until someone answers its permission request.
    Permission,
    /// An apply or undo is stuck half-way, and its workspace can't be used.
    Stuck,
    /// User content was saved outside the workspace and must be restored or dropped.
    Rescued,
    /// The changes of a command in a plan couldn't be recorded. They are still in the sandbox.
    NotRecorded,
    /// A plan stays open because its sandbox has work that a plan can't carry.
    NotCarried,
    /// A plan conflicts with changes that others made.
    Conflict,
    /// A check of a plan failed.
    CheckFailed,
    /// A plan is sealed, but one of its checks hasn't run yet.
    ChecksMissing,
    /// A plan is sealed and ready to be applied.
    Review,
    /// Two open plans touch the same files.
    Overlap,
    /// A language server failed and isn't being restarted.
    Server,
    /// Prompts are waiting for a machine whose daemon isn't running.
    Waiting,
    /// A turn was interrupted because its daemon ended.
    Interrupted,
    /// A job failed within the last hour.
    Job,
    /// A circuit breaker is open.
    Breaker,
}

/// Something that needs a person's attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Need {
    /// Why it needs attention.
    pub kind: NeedKind,
    /// The id of the session, plan, language server, job, workspace or rescued content, or the name of the
    /// breaker.
    #[schema(example = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The title of that object. May be empty.
    pub title: String,
    /// A description for people.
    pub text: String,
    /// The id of the permission request, or of the other plan in an overlap. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The machine it is on. Absent for breakers, which are on all machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// The response of `GET /v1/needs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NeedList {
    /// What needs attention, most urgent first.
    pub needs: Vec<Need>,
    /// Whether something couldn't be read, so that the list may be incomplete.
    pub is_partial: bool,
}
