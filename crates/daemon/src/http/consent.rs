//! Who may change the user's files: people, and agents that have the user's consent.
//!
//! A command in the sandbox of a plan can read the token, so it can send any request. It must not reach the user's
//! files, though, by applying a plan or by running a command outside all sandboxes. The kernel tells us which process
//! is at the other end of the socket, and we know whether that process is one of ours. `mcp.apply = "allow"` lifts this
//! restriction.
//!
//! It stops agents that take a shortcut, not agents that look for a gap: over TCP, the process at the other end is
//! unknown.

use plans::PlanError;
use process::Belongs;
use protocol::{ErrorCode, PlanId};

use super::log_problem::ReadLog;
use super::problem::Problem;
use super::refusals::families;
use crate::app::App;
use crate::configuration::ApplyWord;
use crate::jobs::CommandPayload;

families! {
    /// The user's files are changed.
    ChangeUserFiles = [ApplyNotAllowed] + ReadLog;
}

/// The process at the other end of a connection, if known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Peer(pub(crate) Option<u32>);

/// On whose behalf a command is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StartedFor {
    /// An agent, outside all sandboxes. The user agreed to this one command only.
    Agent,
    Anybody,
}

/// Refuses to apply or undo plans for a command that an agent started. Plans with a parent are exempt: they only change
/// the parent's sandbox.
pub(crate) async fn may_apply(app: &App, peer: Peer, plans: &[PlanId]) -> Result<(), Problem> {
    for id in plans {
        // If the plan doesn't exist, the operation itself reports that.
        let is_child = match app.plans.get(*id).await {
            Ok(plan) => plan.record.facts.parent.is_some(),
            Err(PlanError::NotFound(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        if !is_child {
            return may_change_workspace(app, peer).await;
        }
    }
    Ok(())
}

/// Refuses a change to the user's files that a command of an agent asks for.
pub(crate) async fn may_change_workspace(app: &App, Peer(pid): Peer) -> Result<(), Problem> {
    let Some(pid) = pid.filter(|_| app.mcp.apply() != ApplyWord::Allow) else {
        return Ok(());
    };
    let processes = app.processes.clone();
    let belongs = tokio::task::spawn_blocking(move || processes.owner_of(pid)).await;
    match belongs.map_err(Problem::internal)? {
        Belongs::ToOthers => Ok(()),
        // It may have passed its connection on to any other process.
        Belongs::NoSuchProcess => Err(refused("a process that has ended")),
        Belongs::To(owner) => match owner.split_once('/') {
            Some(("job", id)) if is_free(app, id).await? => Ok(()),
            Some(("job" | "agent", _)) => Err(refused(&owner)),
            _ => Ok(()),
        },
    }
}

/// Whether a person started a job, outside all sandboxes.
async fn is_free(app: &App, id: &str) -> Result<bool, Problem> {
    let Ok(id) = id.parse() else {
        return Ok(false);
    };
    let payload = app.jobs.payload(id).await?;
    let payload = payload.and_then(|payload| CommandPayload::decode(&payload).ok());
    Ok(payload.is_some_and(|payload| payload.plan.is_none() && !payload.is_of_agent))
}

fn refused(who: &str) -> Problem {
    let detail = format!("This comes from {who}, which may not change files outside of its sandbox.");
    Problem::new(ErrorCode::ApplyNotAllowed, detail)
}
