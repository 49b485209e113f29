//! What a turn is.

use eventlog::{BlobId, Sequence, UnixMs, Version};
use protocol::{
    AgentChoice, FinishPlan, JobId, PlanId, SessionId, TurnError, TurnId, TurnState, Usage, lenient,
};
use serde::{Deserialize, Serialize};

use crate::owner::Owner;
use crate::prompt::Prompt;
use crate::session::Actor;

/// A turn, as it was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The version that it was read at.
    pub version: Version,
    /// The last event of its stream.
    pub last_sequence: Sequence,
    /// What it is.
    pub record: TurnRecord,
}

/// What the head of a turn says. It differs from [`protocol::Turn`]: times are milliseconds here and RFC 3339 there, and
/// readers are not told who owns the turn.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The session that it was made in.
    pub session: SessionId,
    /// Which prompt of the session it is, from 1.
    pub number: u64,
    /// The turn before it, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<TurnId>,
    /// What was asked.
    pub prompt: Prompt,
    /// Which agent is asked.
    #[serde(deserialize_with = "lenient")]
    pub agent: AgentChoice,
    /// Who asked.
    pub by: Actor,
    /// When the prompt was accepted.
    pub accepted_at: UnixMs,
    /// What it is doing.
    pub state: TurnState,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMs>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMs>,
    /// Who runs it or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The plan that it worked in, if it came to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended, if not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// What is done with the plan when it is done.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub finish: Option<FinishPlan>,
    /// The job that does it, submitted by the commit that ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_job: Option<JobId>,
    /// The whole of it, once its events were folded together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<BlobId>,
}
