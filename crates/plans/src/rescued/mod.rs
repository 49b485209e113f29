//! Rescued content: what a user had in the workspace, or wrote to it, and what an apply or undo couldn't leave there.
//!
//! Each piece is a directory `kept/ID` in the daemon's home that contains two things: `content`, which is the file,
//! symlink or directory itself, and `record.json`, which says where it was and why it is here. The directory gets its
//! name when both are on disk, so content and description are never separated, and the list can be read even when the
//! log can't.
//!
//! **Who owns the state:** the directory. Nothing in it is removed automatically: you restore a piece, or drop it.

mod copy;
mod shelf;

use std::path::PathBuf;

use eventlog::UnixMs;
use protocol::{PlanId, RescuedId, WorkspaceId};
use serde::{Deserialize, Serialize};

use crate::{Attempt, Entry, RelPath};

pub(crate) use copy::{Source, copy_in};
pub(crate) use shelf::{Shelf, Shelved};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rescued {
    pub id: RescuedId,
    pub record: RescuedRecord,
    pub at: PathBuf,
}

/// Where a piece of rescued content came from.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RescuedRecord {
    pub workspace: WorkspaceId,
    /// The path of the workspace, for people.
    pub root: String,
    pub what: Attempt,
    /// The landing, and the piece's name there. Together they identify a piece that is already kept.
    pub(crate) landing: String,
    pub(crate) name: String,
    pub plans: Vec<PlanId>,
    pub path: RelPath,
    pub kind: RescuedKind,
    /// The exact entry, for a file or a symlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    pub why: RescueReason,
    pub since: UnixMs,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RescuedKind {
    File,
    Symlink,
    Directory,
    /// A pipe, a socket or a device.
    Special,
}

impl RescuedKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Symlink => "symlink",
            Self::Directory => "directory",
            Self::Special => "special",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RescueReason {
    /// Someone wrote it while the path was being changed.
    WrittenMeanwhile,
    /// It was at the path before, and someone else had written the path when it was to be put back.
    NotPutBack,
    /// The apply or undo could be neither finished nor rolled back, and was set aside.
    SetAside,
    /// Another piece of rescued content was restored at its path.
    Replaced,
}

impl RescueReason {
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::WrittenMeanwhile => "Written while the path was being changed.",
            Self::NotPutBack => "Was there before; the path had been taken when it was put back.",
            Self::SetAside => "Was there before a landing that was set aside.",
            Self::Replaced => "Replaced by restoring other content.",
        }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RescuedList {
    /// The pieces, newest first.
    pub rescued: Vec<Rescued>,
    /// Directories with an unreadable record.
    pub unreadable: Vec<PathBuf>,
}
