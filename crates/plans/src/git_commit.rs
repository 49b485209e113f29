//! A git commit of a few paths in their working tree state, and of nothing else.
//!
//! It bypasses the user's index: a tree is built in a separate index, from HEAD's tree and the paths, and the branch is
//! moved by compare-and-swap. What the user has staged stays staged. In the user's index, only these paths are
//! refreshed, and only those that had nothing staged.
//!
//! No hooks run: not `pre-commit`, not `commit-msg`, not any other. The applied changes have passed their plan's
//! checks, and a hook would see an index that the user never made. The commit isn't signed. The clean filters named by
//! `.gitattributes` and the git configuration (`filter.NAME.clean`, like git-lfs) do run, as with `git add`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{FileKind, RelPath, Tree, TreeError};

/// Files in the git directory that mark an operation in progress that a commit would disturb, with its name.
const GOING_ON: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase, or the applying of patches"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert of several commits"),
];
/// How much of git's output is shown.
const SAID_CHARACTERS: usize = 2000;

/// The author of a commit. Defaults to the user that git knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Author {
    pub name: String,
    pub email: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GitCommit {
    pub id: String,
    /// Paths where the user had staged something else. Their index still has it.
    pub still_staged: Vec<RelPath>,
    /// Why the user's index couldn't be refreshed, if that failed. Git then shows the paths as staged in reverse, until
    /// you `git reset` them.
    pub index_left: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum GitCommitError {
    #[error("{0} is not the top of a git working tree")]
    NotTheTop(String),
    #[error("the repository is in the middle of {0}; finish or abort it first")]
    GoingOn(&'static str),
    #[error("there is nothing to commit")]
    Nothing,
    #[error("git does not know who you are; set user.name and user.email with `git config`")]
    NoIdentity,
    #[error("a commit needs a message")]
    NoMessage,
    #[error("the branch was moved by somebody else meanwhile")]
    Moved,
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("git cannot be run")]
    Run(#[source] io::Error),
    #[error("git {command} failed: {said}")]
    Git { command: String, said: String },
}

/// Whether a commit can be made now: the root is a repository, no operation is in progress, and git knows the
/// committer. It blocks.
pub(crate) fn may_commit(root: &Path) -> Result<(), GitCommitError> {
    let git = Git { root };
    let directory = git.directory()?;
    git.nothing_going_on(&directory)?;
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        match git.run(None, &["var", who], b"") {
            Ok(_) => {}
            Err(GitCommitError::Git { .. }) => return Err(GitCommitError::NoIdentity),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Commits paths in their working tree state, on the current branch or a detached HEAD. It blocks.
///
/// # Errors
/// See [`GitCommitError`]. Nothing has changed then.
pub fn commit_paths(
    root: &Path,
    paths: &[RelPath],
    message: &str,
    author: Option<&Author>,
) -> Result<GitCommit, GitCommitError> {
    if message.trim().is_empty() {
        return Err(GitCommitError::NoMessage);
    }
    let git = Git { root };
    let directory = git.directory()?;
    git.nothing_going_on(&directory)?;
    let head = git.head()?;
    let (tree, beside) = (Tree::open(root)?, Beside::new(&directory));

    let old = head.commit.as_deref();
    let old_tree = match old {
        Some(commit) => commit.to_owned(),
        None => git.line(&["hash-object", "-t", "tree", "/dev/null"])?,
    };
    let staged = git.differ(&old_tree, paths)?;
    match old {
        Some(commit) => git.run(Some(&beside.0), &["read-tree", commit], b"")?,
        None => git.run(Some(&beside.0), &["read-tree", "--empty"], b"")?,
    };
    git.take_up(&beside, &tree, paths)?;
    let new_tree = text(&git.run(Some(&beside.0), &["write-tree"], b"")?);
    if let Some(commit) = old
        && git.line(&["rev-parse", &format!("{commit}^{{tree}}")])? == new_tree
    {
        return Err(GitCommitError::Nothing);
    }
    let new = git.commit_tree(&new_tree, old, message, author)?;
    git.move_branch(&head, &new, message)?;

    // From here on, the commit exists, whatever happens to the index.
    let refreshed = git.refresh(&new, paths, &staged);
    let still_staged = git.differ(&new, paths);
    Ok(GitCommit {
        id: new,
        still_staged: still_staged
            .unwrap_or_default()
            .into_iter()
            .filter(|path| staged.contains(path))
            .collect(),
        index_left: refreshed.err().map(|error| error.to_string()),
    })
}

/// A separate index that is removed on drop.
struct Beside(PathBuf);

impl Beside {
    fn new(directory: &Path) -> Self {
        Self(directory.join(format!("tidelock-index-{}", protocol::RequestId::generate())))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for suffix in ["", ".lock"] {
            let mut path = self.0.clone().into_os_string();
            path.push(suffix);
            // Usually there is no lock, and a small leftover file does no harm.
            std::fs::remove_file(path).ok();
        }
    }
}

struct Head {
    /// The branch; `None` if HEAD is detached.
    branch: Option<String>,
    commit: Option<String>,
}

struct Git<'a> {
    root: &'a Path,
}

impl Git<'_> {
    fn directory(&self) -> Result<PathBuf, GitCommitError> {
        let not_the_top = || GitCommitError::NotTheTop(self.root.display().to_string());
        let said = match self.run(
            None,
            &[
                "rev-parse",
                "--show-prefix",
                "--is-inside-work-tree",
                "--absolute-git-dir",
            ],
            b"",
        ) {
            Err(GitCommitError::Git { .. }) => return Err(not_the_top()),
            said => said?,
        };
        let mut lines = said.splitn(3, |byte| *byte == b'\n');
        match (lines.next(), lines.next(), lines.next()) {
            (Some(b""), Some(b"true"), Some(directory)) => {
                let directory = directory.strip_suffix(b"\n").unwrap_or(directory);
                Ok(PathBuf::from(OsString::from_vec(directory.to_vec())))
            }
            _ => Err(not_the_top()),
        }
    }

    fn nothing_going_on(&self, directory: &Path) -> Result<(), GitCommitError> {
        for (name, what) in GOING_ON {
            if directory.join(name).symlink_metadata().is_ok() {
                return Err(GitCommitError::GoingOn(what));
            }
        }
        if !self.run(None, &["ls-files", "-u", "-z"], b"")?.is_empty() {
            return Err(GitCommitError::GoingOn("a merge with conflicts"));
        }
        Ok(())
    }

    fn head(&self) -> Result<Head, GitCommitError> {
        let said = |answer| match answer {
            Ok(line) => Ok(Some(line)),
            Err(GitCommitError::Git { .. }) => Ok(None),
            Err(error) => Err(error),
        };
        Ok(Head {
            branch: said(self.line(&["symbolic-ref", "-q", "HEAD"]))?,
            commit: said(self.line(&["rev-parse", "-q", "--verify", "HEAD^{commit}"]))?,
        })
    }

    /// The paths that differ between the user's index and a tree.
    fn differ(&self, tree: &str, paths: &[RelPath]) -> Result<BTreeSet<RelPath>, GitCommitError> {
        let wanted: HashSet<&[u8]> = paths.iter().map(RelPath::as_bytes).collect();
        let said = self.run(
            None,
            &[
                "diff-index",
                "--cached",
                "--no-renames",
                "--name-only",
                "-z",
                tree,
            ],
            b"",
        )?;
        let names = said.split(|byte| *byte == 0).filter(|name| wanted.contains(name));
        Ok(names.filter_map(|name| RelPath::from_bytes(name).ok()).collect())
    }

    /// Adds the paths to the separate index, as they are in the working tree.
    fn take_up(&self, beside: &Beside, tree: &Tree, paths: &[RelPath]) -> Result<(), GitCommitError> {
        let (mut there, mut gone) = (Vec::new(), Vec::new());
        for path in paths {
            let kind = tree.stat(path)?.map(|stat| stat.kind);
            let list = match kind {
                Some(FileKind::File | FileKind::Symlink) => &mut there,
                // Git doesn't track directories; a file that was here before is deleted.
                Some(FileKind::Directory | FileKind::Special) | None => &mut gone,
            };
            list.extend_from_slice(path.as_bytes());
            list.push(0);
        }
        self.run(
            Some(&beside.0),
            &["update-index", "--force-remove", "-z", "--stdin"],
            &gone,
        )?;
        let take = ["update-index", "--add", "--replace", "-z", "--stdin"];
        self.run(Some(&beside.0), &take, &there).map(drop)
    }

    fn commit_tree(
        &self,
        tree: &str,
        parent: Option<&str>,
        message: &str,
        author: Option<&Author>,
    ) -> Result<String, GitCommitError> {
        let mut command = self.command(None);
        command.args(["commit-tree", tree, "-F", "-"]);
        if let Some(parent) = parent {
            command.args(["-p", parent]);
        }
        if let Some(author) = author {
            command.env("GIT_AUTHOR_NAME", &author.name);
            command.env("GIT_AUTHOR_EMAIL", &author.email);
        }
        let mut message = message.trim_end().to_owned();
        message.push('\n');
        finish(command, "commit-tree", message.as_bytes()).map(|said| text(&said))
    }

    fn move_branch(&self, head: &Head, new: &str, message: &str) -> Result<(), GitCommitError> {
        let subject = format!("commit: {}", message.lines().next().unwrap_or_default());
        // An empty old value means that the ref must not exist.
        let old = head.commit.as_deref().unwrap_or_default();
        let moved = match &head.branch {
            Some(branch) => self.run(None, &["update-ref", "-m", &subject, branch, new, old], b""),
            None => self.run(
                None,
                &["update-ref", "--no-deref", "-m", &subject, "HEAD", new, old],
                b"",
            ),
        };
        match moved {
            Ok(_) => Ok(()),
            Err(error) => {
                let now = self.head()?;
                if now.commit == head.commit {
                    Err(error)
                } else {
                    Err(GitCommitError::Moved)
                }
            }
        }
    }

    /// Refreshes the paths in the user's index, except those that had something staged.
    fn refresh(
        &self,
        commit: &str,
        paths: &[RelPath],
        staged: &BTreeSet<RelPath>,
    ) -> Result<(), GitCommitError> {
        let said = self.run(None, &["ls-tree", "-r", "-z", "--full-tree", commit], b"")?;
        let lines = said.split(|byte| *byte == 0).filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            Some((&line[tab + 1..], line))
        });
        let lines: BTreeMap<&[u8], &[u8]> = lines.collect();
        let null = "0".repeat(commit.len());
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for path in paths.iter().filter(|path| !staged.contains(path)) {
            match lines.get(path.as_bytes()) {
                Some(line) => {
                    there.extend_from_slice(line);
                    there.push(0);
                }
                None => {
                    gone.extend_from_slice(format!("0 {null}\t").as_bytes());
                    gone.extend_from_slice(path.as_bytes());
                    gone.push(0);
                }
            }
        }
        // Deletions first: a file may replace a directory.
        gone.extend(there);
        let update = ["update-index", "--add", "--replace", "-z", "--index-info"];
        self.run(None, &update, &gone).map(drop)
    }

    fn line(&self, arguments: &[&str]) -> Result<String, GitCommitError> {
        self.run(None, arguments, b"").map(|said| text(&said))
    }

    fn run(&self, index: Option<&Path>, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitCommitError> {
        let mut command = self.command(index);
        command.args(arguments);
        finish(command, arguments.first().unwrap_or(&""), input)
    }

    /// A git command that doesn't inherit the caller's repository environment, and runs no hooks.
    fn command(&self, index: Option<&Path>) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_bytes().starts_with(b"GIT_") || process::is_private(&name) {
                command.env_remove(name);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .arg("-C")
            .arg(self.root)
            .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        if let Some(index) = index {
            command.env(OsStr::new("GIT_INDEX_FILE"), index);
        }
        command
    }
}

/// Runs a command that reads all of its input before it writes much.
fn finish(mut command: Command, name: &str, input: &[u8]) -> Result<Vec<u8>, GitCommitError> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(GitCommitError::Run)?;
    // Stdin is closed here, whether the command read all of it or not: a command that fails early reports
    // why.
    let fed = child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(input));
    let output = child.wait_with_output().map_err(GitCommitError::Run)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(GitCommitError::Git {
            command: name.to_owned(),
            said: said.trim().chars().take(SAID_CHARACTERS).collect(),
        });
    }
    fed.map_err(GitCommitError::Run)?;
    Ok(output.stdout)
}

fn text(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim().to_owned()
}
