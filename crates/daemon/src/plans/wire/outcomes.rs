//! What an apply, an undo, a refresh or a collection came to.

use machines::Machines;
use plans::{
    Collected, Conflict, ConflictHunk, Outcome, OutcomeKind, OutcomePath, Overlap, OverlapPath, PlanError,
    Plans,
};

use super::{several, words};

/// What an attempt came to.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn outcome_to_wire(
    plans: &Plans,
    machines: &Machines,
    outcome: &Outcome,
) -> Result<protocol::PlanOutcome, PlanError> {
    Ok(protocol::PlanOutcome {
        outcome: match outcome.kind {
            OutcomeKind::Done => protocol::OutcomeKind::Done,
            OutcomeKind::WouldBeDone => protocol::OutcomeKind::WouldBeDone,
            OutcomeKind::Conflicted => protocol::OutcomeKind::Conflicted,
        },
        plans: several(plans, machines, &outcome.plans).await?,
        paths: outcome.paths.iter().map(path_to_wire).collect(),
        conflicts: outcome.conflicts.iter().map(conflict_to_wire).collect(),
        commit: outcome.commit.clone(),
        commit_failed: outcome.commit_failed.clone(),
        notes: outcome.notes.clone(),
    })
}

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

pub(super) fn conflict_to_wire(conflict: &Conflict) -> protocol::PlanConflict {
    let (kind, text) = words::conflict_words(conflict.kind);
    protocol::PlanConflict {
        path: conflict.path.to_string(),
        other: conflict.other.as_ref().map(ToString::to_string),
        kind: kind.to_owned(),
        text: text.to_owned(),
        hunks: conflict.hunks.iter().map(hunk_to_wire).collect(),
    }
}

fn hunk_to_wire(hunk: &ConflictHunk) -> protocol::PlanConflictHunk {
    protocol::PlanConflictHunk {
        line: hunk.line,
        base: hunk.base.clone(),
        ours: hunk.ours.clone(),
        theirs: hunk.theirs.clone(),
    }
}

pub(super) fn overlap_to_wire(overlap: &Overlap) -> protocol::PlanOverlap {
    protocol::PlanOverlap {
        plan: overlap.plan.to_string(),
        title: overlap.title.clone(),
        paths: overlap.paths.iter().map(overlap_path_to_wire).collect(),
    }
}

fn overlap_path_to_wire(path: &OverlapPath) -> protocol::PlanOverlapPath {
    protocol::PlanOverlapPath {
        path: path.path.to_string(),
        conflicts: path.conflicts,
        lines: path.second_lines.clone(),
    }
}

pub(crate) fn collected_to_wire(collected: &Collected) -> protocol::PlansCollected {
    protocol::PlansCollected {
        sandboxes: collected
            .sandboxes
            .iter()
            .map(|(plan, bytes)| protocol::CollectedSandbox {
                plan: plan.to_string(),
                bytes: *bytes,
            })
            .collect(),
        bases: collected.bases,
        bytes: collected.bytes,
        kept: collected.kept.iter().map(ToString::to_string).collect(),
    }
}
