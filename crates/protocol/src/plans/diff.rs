//! What a plan changes, line by line.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffSummary {
    /// How many files.
    pub files: u64,
    /// How many lines were added; nothing while it was not counted, as in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_lines: Option<u64>,
    /// How many lines were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_lines: Option<u64>,
}

/// The answer of `GET /v1/plans/{id}/diff`. With `Accept: text/x-diff` it is a patch instead, as `git apply` takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanDiff {
    /// The plan.
    pub plan: String,
    /// Names what is in it.
    pub fingerprint: String,
    /// How much changed.
    pub summary: DiffSummary,
    /// The files, in the order of paths.
    pub files: Vec<FileDiff>,
}

/// What changed in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileDiff {
    /// The path.
    pub path: String,
    /// Where it came from, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What kind of change: `create`, `modify`, `delete`, `rename`, `chmod` or `symlink`.
    pub kind: String,
    /// Permissions before, in octal as git writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// Permissions now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    /// Whether it is not text, or too large to be shown.
    pub binary: bool,
    /// How many lines were added.
    pub added_lines: u64,
    /// How many were removed.
    pub removed_lines: u64,
    /// The changed places.
    pub hunks: Vec<DiffHunk>,
    /// Whether hunks were left out because there are too many.
    pub cut: bool,
}

/// A changed place in a text, with a few lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffHunk {
    /// Its first line before, from 1.
    pub old_start: u64,
    /// How many lines it had.
    pub old_lines: u64,
    /// Its first line now.
    pub new_start: u64,
    /// How many lines it has.
    pub new_lines: u64,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffLine {
    /// What it is.
    pub kind: DiffLineKind,
    /// Its text, without the end of the line.
    pub text: String,
    /// Whether the file ends here without an end of line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// What a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffLineKind {
    /// It is the same in both.
    Context,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}
