//! The stored state of a turn.

use std::sync::Arc;

use eventlog::{BlobId, Entity, EntityRecord, NewEvent, UnixMs};
use protocol::{
    AgentChoice, FinishPlan, JobId, PlanId, SessionId, TurnError, TurnId, TurnState, Usage, lenient,
};
use serde::{Deserialize, Serialize};

use crate::owner::Owner;
use crate::prompt::Prompt;
use crate::session::Actor;

/// A turn as it was when it was read.
pub type Turn = Entity<TurnRecord>;

/// The head of a turn. It differs from [`protocol::Turn`]: times are milliseconds here and RFC 3339 there, and readers don't
/// get the owner.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The session that it was started in.
    pub session: SessionId,
    /// Which prompt of the session it is, from 1.
    pub number: u64,
    /// The previous turn, once this one has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<TurnId>,
    /// The prompt.
    pub prompt: Prompt,
    /// The agent.
    #[serde(deserialize_with = "lenient")]
    pub agent: AgentChoice,
    /// Who asked.
    pub by: Actor,
    /// When the prompt was accepted.
    pub accepted_at: UnixMs,
    /// Its state.
    pub state: TurnState,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMs>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMs>,
    /// Who runs it or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The plan that it worked in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// Why it failed or was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// What to do with the plan when the turn is done.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub finish: Option<FinishPlan>,
    /// The job that finishes the plan, submitted by the commit that ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_job: Option<JobId>,
    /// The transcript, once its events have been compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<BlobId>,
}

impl EntityRecord for TurnRecord {
    const KIND: &'static str = "turn";
    type Id = TurnId;
    /// Created by [`to_log`](crate::event::to_log).
    type Event = NewEvent;

    fn status(&self) -> Arc<str> {
        self.state.name().into()
    }

    fn blobs(&self) -> Vec<BlobId> {
        let attachments = self.prompt.attachments.iter();
        attachments
            .map(|attachment| attachment.content)
            .chain(self.transcript)
            .collect()
    }
}
