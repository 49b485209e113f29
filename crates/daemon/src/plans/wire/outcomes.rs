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
) -> Result<api::PlanOutcome, PlanError> {
    Ok(api::PlanOutcome {
        outcome: match outcome.kind {
            OutcomeKind::Done => api::OutcomeKind::Done,
            OutcomeKind::WouldBeDone => api::OutcomeKind::WouldBeDone,
            OutcomeKind::Conflicted => api::OutcomeKind::Conflicted,
        },
        plans: several(plans, machines, &outcome.plans).await?,
        paths: outcome.paths.iter().map(path_to_wire).collect(),
        conflicts: outcome.conflicts.iter().map(conflict_to_wire).collect(),
        commit: outcome.commit.clone(),
        commit_failed: outcome.commit_failed.clone(),
        notes: outcome.notes.clone(),
    })
}

pub(crate) fn path_to_wire(path: &OutcomePath) -> api::OutcomePath {
    let kind = match (&path.before, &path.after) {
        (None, _) => "create",
        (Some(_), Some(_)) => "modify",
        (Some(_), None) => "delete",
    };
    api::OutcomePath {
        path: path.path.to_string(),
        kind: kind.to_owned(),
        merged: path.merged,
    }
}

pub(super) fn conflict_to_wire(conflict: &Conflict) -> api::PlanConflict {
    let (kind, text) = words::conflict_words(conflict.kind);
    api::PlanConflict {
        path: conflict.path.to_string(),
        other: conflict.other.as_ref().map(ToString::to_string),
        kind: kind.to_owned(),
        text: text.to_owned(),
        hunks: conflict.hunks.iter().map(hunk_to_wire).collect(),
    }
}

fn hunk_to_wire(hunk: &ConflictHunk) -> api::PlanConflictHunk {
    api::PlanConflictHunk {
        line: hunk.line,
        base: hunk.base.clone(),
        ours: hunk.ours.clone(),
        theirs: hunk.theirs.clone(),
    }
}

pub(super) fn overlap_to_wire(overlap: &Overlap) -> api::PlanOverlap {
    api::PlanOverlap {
        plan: overlap.plan.to_string(),
        title: overlap.title.clone(),
        paths: overlap.paths.iter().map(overlap_path_to_wire).collect(),
    }
}

fn overlap_path_to_wire(path: &OverlapPath) -> api::PlanOverlapPath {
    api::PlanOverlapPath {
        path: path.path.to_string(),
        conflicts: path.conflicts,
        lines: path.second_lines.clone(),
    }
}

pub(crate) fn collected_to_wire(collected: &Collected) -> api::PlansCollected {
    api::PlansCollected {
        sandboxes: collected
            .sandboxes
            .iter()
            .map(|(plan, bytes)| api::CollectedSandbox {
                plan: plan.to_string(),
                bytes: *bytes,
            })
            .collect(),
        bases: collected.bases,
        bytes: collected.bytes,
        kept: collected.kept.iter().map(ToString::to_string).collect(),
    }
}
