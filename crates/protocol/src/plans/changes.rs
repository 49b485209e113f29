//! Changesets, and writes to a sandbox.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer of `GET /v1/plans/{id}/changesets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangesetList {
    /// The changesets, oldest first.
    pub changesets: Vec<Changeset>,
}

/// What one actor changed in a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changeset {
    /// Its id.
    pub id: String,
    /// Whether more may come.
    pub state: ChangesetState,
    /// Its plan.
    pub plan: String,
    /// Who made it.
    pub actor: String,
    /// With what: `shell`, `api`, `merge` or the name of a tool.
    pub tool: String,
    /// Why.
    pub reason: String,
    /// The job whose changes they are, if it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// When it was started.
    #[schema(format = "date-time")]
    pub started_at: String,
    /// How many changes it has.
    pub entries: u64,
    /// The changes, in the order of their effects; empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<RecordedChange>,
}

/// Whether a changeset takes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangesetState {
    /// It does.
    Open,
    /// It does not.
    Closed,
}

/// A change, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedChange {
    /// Its place among all changes of the plan.
    pub entry: u64,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// What kind: `create`, `modify`, `delete`, `rename`, `chmod` or `symlink`.
    pub kind: String,
    /// The path.
    pub path: String,
    /// Where it came from, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The hash of what was there; nothing if nothing was or it was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The hash of what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The permissions, in octal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Who else had a command running in the sandbox, so that it may be theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_running: Vec<String>,
}

/// The body of `POST /v1/plans/{id}/changes`: a write to the sandbox, which is recorded as it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeFiles {
    /// The changeset that it goes to. Without it, the caller's current one; if there is none, one is made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changeset: Option<String>,
    /// With what it was made; `api` if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What to do, in this order. If one cannot be done, the ones before it stay and are recorded.
    pub operations: Vec<FileOperation>,
}

/// One write to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum FileOperation {
    /// Writes a file; directories on the way are made.
    Write {
        /// The path.
        path: String,
        /// The content, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The same in Base64, if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base64: Option<String>,
        /// Whether it can be executed; as it is, or not for a new one, if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        executable: Option<bool>,
        /// If it is given, the write is refused unless the file has this hash; empty for a file that must not be there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_hash: Option<String>,
    },
    /// Replaces a text that must occur exactly once.
    Edit {
        /// The path.
        path: String,
        /// The text.
        find: String,
        /// What takes its place.
        replace: String,
    },
    /// Deletes a file, a symlink, or a directory with all that is in it.
    Delete {
        /// The path.
        path: String,
    },
    /// Gives a file or a directory another path. Nothing may be there.
    Rename {
        /// The old path.
        from: String,
        /// The new path.
        path: String,
    },
    /// Makes a symlink, or points one elsewhere.
    Symlink {
        /// The path.
        path: String,
        /// Where it points. It may not lead out of the workspace.
        target: String,
    },
    /// Lets a file be executed, or not.
    Chmod {
        /// The path.
        path: String,
        /// Whether it can be.
        executable: bool,
    },
}

/// The answer of `POST /v1/plans/{id}/changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilesChanged {
    /// The changeset that they went to.
    pub changeset: String,
    /// What was recorded.
    pub changes: Vec<RecordedChange>,
}

/// The body of `POST /v1/plans/{id}/changesets`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartChangeset {
    /// With what the changes will be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The answer of `GET /v1/plans/{id}/file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanFile {
    /// The path.
    pub path: String,
    /// What it is: `file`, `symlink` or `directory`.
    pub kind: String,
    /// Its content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same in Base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Where it points, if it is a symlink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What is in it, if it is a directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Its hash, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Its permissions, in octal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}
