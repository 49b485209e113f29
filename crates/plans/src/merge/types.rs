//! The inputs and results of a merge.

use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use eventlog::BlobId;
use protocol::PlanConflictHunk;
use serde::{Deserialize, Serialize};

use crate::{Change, Entry, RelPath};

/// Changes one path of a tree from one state to another.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    pub path: RelPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Entry>,
}

impl From<&Effect> for Change {
    /// The effect as a change that [`invert`](crate::invert) can revert.
    fn from(effect: &Effect) -> Self {
        Self {
            path: effect.path.clone(),
            before: effect.before.clone(),
            after: effect.after.clone(),
            from: None,
        }
    }
}

/// The tree that changes are merged into. It is read, never written. Methods may block.
pub trait Ours {
    /// What is at a path. There is nothing below something that isn't a directory.
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>>;

    /// Whether a directory contains anything besides these paths. It is called for the innermost directories first, so
    /// it only has to check direct children.
    fn has_others(&self, directory: &RelPath, beside: &dyn Fn(&RelPath) -> bool) -> io::Result<bool>;

    /// Another path with this content, if the tree can tell: a file that was moved.
    fn find(&self, content: BlobId) -> Option<RelPath>;

    /// How to merge a file that both sides have changed.
    fn merge_driver(&self, _path: &RelPath) -> MergeDriver {
        MergeDriver::Text
    }
}

/// How to merge a file that both sides have changed; git's merge driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MergeDriver {
    /// Line by line; if both changed the same lines, it is a conflict.
    #[default]
    Text,
    /// Line by line; if both changed the same lines, all of them are taken, the workspace's first.
    Union,
    /// Not at all: the result is one side's file or the other's.
    Binary,
}

/// The result of a merge. If there are conflicts, none of it may be carried out.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// The effects, in path order. Paths that are already as wanted have none.
    pub effects: Vec<Effect>,
    /// Contents that neither side had.
    pub made: HashMap<BlobId, Bytes>,
    /// Paths that both sides had changed and that merged cleanly.
    pub combined: Vec<RelPath>,
    /// Paths that can't be merged.
    pub conflicts: Vec<Conflict>,
}

/// A path that both sides changed, where neither change can be dropped.
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
    /// The conflicting regions, if it is text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<PlanConflictHunk>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Both changed the same lines.
    Content,
    /// Both changed a file that is binary, or too large to compare.
    Binary,
    /// Both created a file there, with different contents.
    BothAdded,
    /// The plan changed something that the workspace no longer has.
    DeletedByWorkspace,
    DeletedByPlan,
    BothRenamed,
    DirectoryAndFile,
    /// Both changed the permissions, the symlink, or the file type.
    Type,
    /// Someone kept writing to the file while it was being applied.
    Moving,
}
