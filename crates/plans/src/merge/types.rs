//! What a merge needs to know, and what it comes to.

use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use eventlog::BlobId;
use protocol::PlanConflictHunk;
use serde::{Deserialize, Serialize};

use crate::{Change, Entry, RelPath};

/// One path of a tree goes from one state to another.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub path: RelPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Entry>,
}

impl From<&Effect> for Change {
    /// What was done to a path, as a change that [`invert`](crate::invert) can take back.
    fn from(effect: &Effect) -> Self {
        Self {
            path: effect.path.clone(),
            before: effect.before.clone(),
            after: effect.after.clone(),
            from: None,
        }
    }
}

/// The tree that changes are merged into. It is looked at, never written. It may block.
pub trait Ours {
    /// What is at a path. Below something that is not a directory there is nothing.
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>>;

    /// Whether a directory has anything in it beside these paths. It is asked of the innermost directories first, so it is
    /// enough to look at what is right in it.
    fn has_others(&self, directory: &RelPath, beside: &dyn Fn(&RelPath) -> bool) -> io::Result<bool>;

    /// Where else a content is, if the tree can tell: a file that was moved away.
    fn find(&self, content: BlobId) -> Option<RelPath>;

    /// How a file is merged that both sides have changed.
    fn merge_driver(&self, _path: &RelPath) -> MergeDriver {
        MergeDriver::Text
    }
}

/// How a file is merged that both sides have changed. git calls it a driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MergeDriver {
    /// Line by line; the same lines changed by both are a conflict.
    #[default]
    Text,
    /// Line by line; of the same lines changed by both, all are taken, the workspace's first.
    Union,
    /// Not at all: it is one side's or the other's.
    Binary,
}

/// What a merge came to. With conflicts, nothing of it is to be done.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// What is to be done, in the order of paths. What is already as wanted has none.
    pub effects: Vec<Effect>,
    /// Contents that neither side had.
    pub made: HashMap<BlobId, Bytes>,
    /// Paths where both sides had changed and that were merged cleanly.
    pub combined: Vec<RelPath>,
    /// Paths that cannot be merged.
    pub conflicts: Vec<Conflict>,
}

/// A path where both sides changed and neither can be dropped.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Conflict {
    pub path: RelPath,
    pub kind: ConflictKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<RelPath>,
    /// The places in the text, if it is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<PlanConflictHunk>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Both changed the same lines.
    Content,
    /// Both changed a file that is not text, or is too large to look into.
    Binary,
    /// Both made a file there, with different contents.
    BothAdded,
    /// The plan changed what the workspace no longer has.
    DeletedByWorkspace,
    DeletedByPlan,
    BothRenamed,
    DirectoryAndFile,
    /// Both changed the permissions, a symlink, or the type of it.
    Type,
    /// Somebody wrote the file while it was being applied, again and again.
    Moving,
}
