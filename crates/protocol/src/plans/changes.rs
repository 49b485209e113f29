//! Changesets, and writes to a sandbox.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The response of `GET /v1/plans/{id}/changesets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangesetList {
    /// The changesets, oldest first.
    pub changesets: Vec<Changeset>,
}

/// The changes of one actor in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changeset {
    /// The id of the changeset.
    pub id: String,
    /// Whether the changeset accepts more changes.
    pub state: ChangesetState,
    /// The id of its plan.
    pub plan: String,
    /// Who made the changes.
    pub actor: String,
    /// The tool that made the changes: `shell`, `api`, `merge` or the name of a tool.
    pub tool: String,
    /// The reason for the changes.
    pub reason: String,
    /// The id of the job that made the changes. Absent if they aren't from a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// When the changeset was started.
    #[schema(format = "date-time")]
    pub started_at: String,
    /// The number of changes.
    pub entries: u64,
    /// The changes, in the order they took effect. Absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<RecordedChange>,
}

/// Whether a changeset accepts more changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangesetState {
    /// It accepts more changes.
    Open,
    /// It doesn't accept more changes.
    Closed,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedChange {
    /// The position among all changes of the plan.
    pub entry: u64,
    /// When the change was made.
    #[schema(format = "date-time")]
    pub at: String,
    /// The kind of change: `create`, `modify`, `delete`, `rename`, `chmod` or `symlink`.
    pub kind: String,
    /// The path.
    pub path: String,
    /// The previous path, if it was renamed. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The hash of the previous content. Absent if nothing was there or it wasn't a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The hash of the new content. Absent if nothing is there or it isn't a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The permissions, in octal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Other actors who had a command running in the sandbox at the time, so that the change may be theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_running: Vec<String>,
}

/// The body of `POST /v1/plans/{id}/changes`: writes to the sandbox, which are recorded as they happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeFiles {
    /// The id of the changeset to add the changes to. Defaults to the caller's current one. If there is none,
    /// one is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<String>,
    /// The tool that makes the changes. Defaults to `api`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The reason for the changes. Defaults to empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The operations, in order. If one fails, the operations before it stay and are recorded.
    pub operations: Vec<FileOperation>,
}

/// One write to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileOperation {
    /// Writes a file, and creates missing parent directories.
    Write {
        /// The path.
        path: String,
        /// The content, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The content in Base64, if it isn't text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
        /// Whether the file is executable. If omitted, an existing file keeps its permission and a new one
        /// isn't executable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        executable: Option<bool>,
        /// If given, the write is refused unless the file has this hash. Empty means that the file must not
        /// exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_hash: Option<String>,
    },
    /// Replaces a text that must occur exactly once.
    Edit {
        /// The path.
        path: String,
        /// The text to find.
        find: String,
        /// The replacement.
        replace: String,
    },
    /// Deletes a file, a symlink, or a directory with everything in it.
    Delete {
        /// The path.
        path: String,
    },
    /// Moves a file or directory. The new path must not exist.
    Rename {
        /// The old path.
        from: String,
        /// The new path.
        path: String,
    },
    /// Creates a symlink, or changes the target of one.
    Symlink {
        /// The path.
        path: String,
        /// The target. It must not lead out of the workspace.
        target: String,
    },
    /// Sets or clears the executable permission of a file.
    Chmod {
        /// The path.
        path: String,
        /// Whether the file is executable.
        executable: bool,
    },
}

/// The response of `POST /v1/plans/{id}/changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilesChanged {
    /// The id of the changeset that the changes were added to.
    pub changeset: String,
    /// The recorded changes.
    pub changes: Vec<RecordedChange>,
}

/// The body of `POST /v1/plans/{id}/changesets`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartChangeset {
    /// The tool that will make the changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The reason for the changes. Defaults to empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The response of `GET /v1/plans/{id}/file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanFile {
    /// The path.
    pub path: String,
    /// The file type: `file`, `symlink` or `directory`.
    pub kind: String,
    /// The content, if it is text. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content in Base64, if it isn't text. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The target of a symlink. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The names of the entries of a directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The hash of a file. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The permissions, in octal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}
