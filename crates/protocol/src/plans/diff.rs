//! The changes of a plan, line by line.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The size of a diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffSummary {
    /// The number of changed files.
    pub files: u64,
    /// The number of added lines. Absent if they weren't counted, as in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_lines: Option<u64>,
    /// The number of removed lines. Absent if they weren't counted, as in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_lines: Option<u64>,
}

/// The response of `GET /v1/plans/{id}/diff`. With `Accept: text/x-diff`, the response is a patch for `git
/// apply` instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanDiff {
    /// The id of the plan.
    pub plan: String,
    /// The fingerprint of the plan's content.
    pub fingerprint: String,
    /// The size of the diff.
    pub summary: DiffSummary,
    /// The changed files, sorted by path.
    pub files: Vec<FileDiff>,
}

/// The changes to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileDiff {
    /// The path.
    pub path: String,
    /// The previous path, if it was renamed. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The kind of change: `create`, `modify`, `delete`, `rename`, `chmod` or `symlink`.
    pub kind: String,
    /// The previous mode, in octal as git writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// The new mode, in octal as git writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    /// Whether the file isn't text, or is too large to show.
    pub binary: bool,
    /// The number of added lines.
    pub added_lines: u64,
    /// The number of removed lines.
    pub removed_lines: u64,
    /// The changed parts of the file.
    pub hunks: Vec<DiffHunk>,
    /// Whether hunks were omitted because there are too many.
    pub cut: bool,
}

/// A changed part of a text, with a few lines of context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffHunk {
    /// The first line in the old text, starting at 1.
    pub old_start: u64,
    /// The number of lines in the old text.
    pub old_lines: u64,
    /// The first line in the new text, starting at 1.
    pub new_start: u64,
    /// The number of lines in the new text.
    pub new_lines: u64,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffLine {
    /// Whether the line was added, removed or is unchanged.
    pub kind: DiffLineKind,
    /// The text, without the line ending.
    pub text: String,
    /// Whether the file ends here without a newline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
}

/// The kind of a line in a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffLineKind {
    /// The line is unchanged.
    Context,
    /// The line was added.
    Added,
    /// The line was removed.
    Removed,
}
