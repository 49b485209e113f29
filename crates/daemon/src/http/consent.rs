//! Who may change the user's files: people, and agents that the user has said yes to.
//!
//! A command in the sandbox of a plan can read the token, so it can ask for anything. What reaches the user's files,
//! applying a plan and running a command outside of every sandbox, is not done for it: the kernel says which process is at
//! the other end of the socket, and whether that is one of ours is known. `mcp.apply = "allow"` lifts it.
//!
//! It is a wall against agents that take the short way, not against those that look for a gap: over TCP nobody knows who is
//! at the other end.

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

/// The process at the other end of a connection, as far as it is known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Peer(pub(crate) Option<u32>);

/// For whom a command is started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StartedFor {
    /// An agent, outside of every sandbox. The user has said yes to that command, and to nothing else.
    Agent,
    Anybody,
}

/// Refuses to apply or undo plans for a command of an agent's. What goes into the sandbox of a parent is its own business.
pub(crate) async fn may_apply(app: &App, peer: Peer, plans: &[PlanId]) -> Result<(), Problem> {
    for id in plans {
        // One that is not there is told by whoever does it.
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

/// Refuses a change of the user's files that a command of an agent's asks for.
pub(crate) async fn may_change_workspace(app: &App, Peer(pid): Peer) -> Result<(), Problem> {
    let Some(pid) = pid.filter(|_| app.mcp.apply() != ApplyWord::Allow) else {
        return Ok(());
    };
    let processes = app.processes.clone();
    let belongs = tokio::task::spawn_blocking(move || processes.owner_of(pid)).await;
    match belongs.map_err(Problem::internal)? {
        Belongs::ToOthers => Ok(()),
        // It may have handed its connection on to anybody.
        Belongs::NoSuchProcess => Err(refused("a process that has ended")),
        Belongs::To(owner) => match owner.split_once('/') {
            Some(("job", id)) if is_free(app, id).await? => Ok(()),
            Some(("job" | "agent", _)) => Err(refused(&owner)),
            _ => Ok(()),
        },
    }
}

/// Whether a job is a person's, and outside of every sandbox.
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
