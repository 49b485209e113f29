//! The outcome of an apply, an undo or a refresh.

use machines::Machines;
use plans::{Conflict, LandingOutcome, OutcomePath, PlanError, Plans};

use super::{several, words};

pub(crate) async fn outcome_to_wire(
    plans: &Plans,
    machines: &Machines,
    outcome: &LandingOutcome,
) -> Result<protocol::PlanOutcome, PlanError> {
    Ok(protocol::PlanOutcome {
        outcome: outcome.kind,
        plans: several(plans, machines, &outcome.plans).await?,
        paths: outcome.paths.iter().map(path_to_wire).collect(),
        conflicts: outcome.conflicts.iter().map(conflict_to_wire).collect(),
        commit: outcome.commit.clone(),
        commit_failed: outcome.commit_failed.clone(),
        notes: outcome.notes.clone(),
    })
}

/// A path. Both entries are known, so that a git commit can be created from it; the wire has one word for them.
pub(crate) fn path_to_wire(path: &OutcomePath) -> protocol::OutcomePath {
    let kind = match (&path.before, &path.after) {
        (None, _) => "create",
        (Some(_), Some(_)) => "modify",
        (Some(_), None) => "delete",
    };
    protocol::OutcomePath {
        path: path.path.to_string(),
        kind: kind.to_owned(),
        merged: path.merged,
    }
}

/// A conflict. The log has its entries, the wire a sentence for people.
pub(super) fn conflict_to_wire(conflict: &Conflict) -> protocol::PlanConflict {
    let (kind, text) = words::conflict_words(conflict.kind);
    protocol::PlanConflict {
        path: conflict.path.to_string(),
        other: conflict.other.as_ref().map(ToString::to_string),
        kind: kind.to_owned(),
        text: text.to_owned(),
        hunks: conflict.hunks.clone(),
    }
}
