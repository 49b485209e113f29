//! The names of kinds and states.

use plans::{ChangeKind, ConflictKind, WhyLeftOut};
use protocol::CheckState;

/// The state of a check, as a text that follows its command.
pub(super) fn check_state_text(state: CheckState) -> &'static str {
    match state {
        CheckState::Missing => "has not run",
        CheckState::Running => "is still running",
        CheckState::Passed => "has passed",
        CheckState::Failed => "has failed",
        CheckState::Outdated => "ran before the last change",
    }
}

pub(crate) fn kind_name(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Create => "create",
        ChangeKind::Modify => "modify",
        ChangeKind::Delete => "delete",
        ChangeKind::Rename => "rename",
        ChangeKind::Chmod => "chmod",
        ChangeKind::Symlink => "symlink",
    }
}

pub(super) fn why_left_out(why: WhyLeftOut) -> &'static str {
    match why {
        WhyLeftOut::Repository => "repository",
        WhyLeftOut::ChangedRepository => "changed_repository",
        WhyLeftOut::History => "history",
        WhyLeftOut::TooLarge => "too_large",
        WhyLeftOut::TooLong => "too_long",
        WhyLeftOut::Special => "special",
        WhyLeftOut::Name => "name",
        WhyLeftOut::Unreadable => "unreadable",
        WhyLeftOut::TooMany => "too_many",
    }
}

/// The name of a conflict kind, and a one-line description for people.
pub(super) fn conflict_words(kind: ConflictKind) -> (&'static str, &'static str) {
    match kind {
        ConflictKind::Content => ("content", "both changed the same lines"),
        ConflictKind::Binary => ("binary", "both changed it, and it can't be merged line by line"),
        ConflictKind::BothAdded => ("both_added", "both added this file with different contents"),
        ConflictKind::DeletedByWorkspace => (
            "deleted_by_workspace",
            "the plan changed it, and the workspace no longer has it",
        ),
        ConflictKind::DeletedByPlan => (
            "deleted_by_plan",
            "the plan deleted it, and the workspace has changed it",
        ),
        ConflictKind::BothRenamed => ("both_renamed", "both renamed it"),
        ConflictKind::DirectoryAndFile => (
            "directory_and_file",
            "one has a directory there, the other a file",
        ),
        ConflictKind::Type => ("type", "both changed its permissions, its target, or what it is"),
        ConflictKind::Moving => ("moving", "another process keeps changing it"),
    }
}
