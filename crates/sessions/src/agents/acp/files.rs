//! Files that an agent reads and writes through us: only in the plan.

use std::path::{Path, PathBuf};

use plans::{ChangeFiles, FileFound, FileOperation, PlanError, RelPath};
use protocol::PlanId;
use serde_json::{Value, json};

use super::launch::in_words;
use super::wire::{ReadTextFile, RpcError, WriteTextFile};
use crate::desk::PlanDesk;

/// The most bytes of one answer. An agent can ask for part of a file.
const READ_LIMIT_BYTES: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) desk: PlanDesk,
    pub(super) plan: PlanId,
    /// The name of the agent, for the record.
    pub(super) tool: String,
    pub(super) roots: Roots,
}

/// The root of the workspace: as the agent sees it, and where it really is. They differ if the sandbox is a copy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Roots {
    pub(super) seen: PathBuf,
    pub(super) workspace: PathBuf,
}

impl Roots {
    /// An agent's path relative to the root of the workspace; empty for the root itself.
    pub(super) fn below<'a>(&self, path: &'a str) -> Result<&'a Path, RpcError> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(RpcError::refused(format!("`{}` is not absolute", path.display())));
        }
        let below = path
            .strip_prefix(&self.seen)
            .or_else(|_| path.strip_prefix(&self.workspace));
        below.map_err(|_| {
            RpcError::refused(format!(
                "`{}` is not in the workspace, which is {}",
                path.display(),
                self.seen.display()
            ))
        })
    }

    /// The same, for a path below the root.
    pub(super) fn path(&self, path: &str) -> Result<RelPath, RpcError> {
        RelPath::from_path(self.below(path)?).map_err(|error| RpcError::refused(error.to_string()))
    }
}

impl Files {
    /// Reads all or part of a file.
    pub(super) async fn read(&self, path: RelPath, wanted: &ReadTextFile) -> Result<Value, RpcError> {
        let found = self.desk.plans().read_file(self.plan, Some(path)).await;
        let content = match found.map_err(|error| refused(&error))? {
            FileFound::File { content, .. } => content,
            FileFound::Directory { .. } => return Err(RpcError::refused("it is a directory")),
            FileFound::Symlink { .. } => return Err(RpcError::refused("it is a symlink")),
        };
        let text = String::from_utf8(content).map_err(|_| RpcError::refused("it is not text"))?;
        let text = part(&text, wanted.line, wanted.limit);
        if text.len() > READ_LIMIT_BYTES {
            return Err(RpcError::refused(format!(
                "it has more than {READ_LIMIT_BYTES} bytes; ask for a part of it with `line` and `limit`"
            )));
        }
        Ok(json!({ "content": text }))
    }

    /// Writes a file and reports the change.
    pub(super) async fn write(&self, path: RelPath, wanted: WriteTextFile) -> Result<Value, RpcError> {
        let name = path.to_string();
        let order = ChangeFiles {
            by: self.desk.actor(),
            changeset: None,
            tool: self.tool.clone(),
            reason: "written by the agent".to_owned(),
            operations: vec![FileOperation::Write {
                path,
                content: wanted.content.into_bytes(),
                executable: None,
                seen: None,
            }],
        };
        let changed = self.desk.plans().change_files(self.plan, order).await;
        let changed = changed.map_err(|error| refused(&error))?;
        if let Some(error) = changed.stopped_by {
            return Err(refused(&error));
        }
        self.desk.tell_changes(vec![name]).await;
        Ok(json!({}))
    }
}

fn refused(error: &PlanError) -> RpcError {
    RpcError::refused(in_words(error))
}

/// Some lines of a text: starting at a line, counted from 1, and how many.
fn part(text: &str, line: Option<usize>, limit: Option<usize>) -> String {
    if line.is_none() && limit.is_none() {
        return text.to_owned();
    }
    let skipped = line.unwrap_or(1).saturating_sub(1);
    let lines = text.split_inclusive('\n').skip(skipped);
    lines.take(limit.unwrap_or(usize::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_of_the_workspace_or_refused() {
        let roots = Roots {
            seen: "/sandbox/files".into(),
            workspace: "/home/ann/project".into(),
        };
        let check = |path: &str, expected: Result<&str, &str>| {
            let found = roots.path(path);
            let found = found.map(|path| path.to_string()).map_err(|error| error.message);
            assert_eq!(
                found,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{path}"
            );
        };
        check("/sandbox/files/a", Ok("a"));
        check("/home/ann/project/src/main.rs", Ok("src/main.rs"));
        check(
            "/home/ann/project-2/a",
            Err("`/home/ann/project-2/a` is not in the workspace, which is /sandbox/files"),
        );
        check(
            "/etc/passwd",
            Err("`/etc/passwd` is not in the workspace, which is /sandbox/files"),
        );
        check("src/main.rs", Err("`src/main.rs` is not absolute"));
        check(
            "/sandbox/files/../../etc/passwd",
            Err("`../../etc/passwd` cannot be used: it has `.` or `..` in it"),
        );
        check(
            "/sandbox/files/.git/config",
            Err("`.git/config` cannot be used: what git keeps for itself is not part of a workspace"),
        );
    }

    #[test]
    fn parts_of_a_text_are_lines() {
        let check = |line, limit, expected: &str| {
            assert_eq!(part("one\ntwo\nthree", line, limit), expected);
        };
        check(None, None, "one\ntwo\nthree");
        check(Some(2), None, "two\nthree");
        check(Some(0), Some(1), "one\n");
        check(Some(2), Some(1), "two\n");
        check(Some(9), Some(1), "");
        check(None, Some(0), "");
    }
}
