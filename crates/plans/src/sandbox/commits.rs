//! Finding commits that were made in a sandbox. They are in its private git directory, which its actor may have filled
//! with anything.
//!
//! A private git directory starts without reflogs, and git writes one whenever a branch is created or moved. It doesn't
//! contain the objects of the user's repository. So the branches with a reflog are those that were created or moved
//! inside, and the commits with objects here were made inside. Nothing is run, no symlink is followed, and everything
//! has a limit.

use std::collections::HashSet;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use rustix::fs::{Mode, OFlags, openat};

use crate::{FileKind, RelPath, Tree};
use protocol::PlanBranch;

const BRANCHES_LIMIT: usize = 100;
const DIRECTORIES_LIMIT: usize = 1000;
/// The maximum number of commits counted, over all branches.
const COMMITS_LIMIT: usize = 1000;
/// How many commit subjects are kept per branch.
const SUBJECTS_LIMIT: usize = 5;
const SUBJECT_CHARACTERS: usize = 120;
/// The largest git file that is read: a reflog, a commit.
const FILE_LIMIT_BYTES: u64 = 1024 * 1024;
const PACKED_LIMIT_BYTES: u64 = 16 * 1024 * 1024;

/// The branches that were created or moved in the sandbox with this tree, by name. Unreadable ones are skipped.
pub(super) fn made_inside(tree: &Tree) -> Vec<PlanBranch> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = openat(tree.root(), ".git", flags, Mode::empty()) else {
        return Vec::new();
    };
    let git = Git {
        tree: Tree::of(directory, tree.path().join(".git")),
    };
    if git.tree.list(path(&["reftable"]).as_ref()).is_ok() {
        return git.loose_commits();
    }
    let mut left = COMMITS_LIMIT;
    let mut branches = git.moved_branches();
    branches.sort();
    branches
        .into_iter()
        .filter_map(|name| git.branch(&name, &mut left))
        .collect()
}

struct Git {
    tree: Tree,
}

struct Commit {
    parents: Vec<String>,
    subject: String,
}

impl Git {
    /// The commits with objects here, on any branch. A reftable isn't read.
    fn loose_commits(&self) -> Vec<PlanBranch> {
        let names = |directory: &RelPath| self.tree.list(Some(directory)).unwrap_or_default();
        let (mut commits, mut subjects, mut left) = (0, Vec::new(), COMMITS_LIMIT);
        for (directory, _) in path(&["objects"]).iter().flat_map(names) {
            let Some(directory) = directory.to_str().filter(|name| name.len() == 2) else {
                continue;
            };
            for (name, _) in path(&["objects", directory]).iter().flat_map(names) {
                if left == 0 {
                    break;
                }
                left -= 1;
                let id = name
                    .to_str()
                    .and_then(|name| as_id(format!("{directory}{name}").as_bytes()));
                if let Some(commit) = id.and_then(|id| self.commit(&id)) {
                    commits += 1;
                    if subjects.len() < SUBJECTS_LIMIT {
                        subjects.push(commit.subject);
                    }
                }
            }
        }
        let found = (commits > 0).then(|| PlanBranch {
            name: "HEAD".to_owned(),
            commits,
            subjects,
        });
        found.into_iter().collect()
    }

    fn moved_branches(&self) -> Vec<String> {
        let (mut found, mut pending, mut left) = (Vec::new(), vec![String::new()], DIRECTORIES_LIMIT);
        while let Some(below) = pending.pop() {
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => break,
            };
            let directory = path(&["logs/refs/heads", below.as_str()]);
            let names = directory.and_then(|directory| self.tree.list(Some(&directory)).ok());
            for (name, kind) in names.unwrap_or_default() {
                let Some(name) = name.to_str() else { continue };
                let name = match below.as_str() {
                    "" => name.to_owned(),
                    below => format!("{below}/{name}"),
                };
                match kind {
                    FileKind::Directory => pending.push(name),
                    FileKind::File if found.len() < BRANCHES_LIMIT => found.push(name),
                    _ => {}
                }
            }
        }
        found
    }

    /// A branch, unless it hasn't moved from where it started.
    fn branch(&self, name: &str, left: &mut usize) -> Option<PlanBranch> {
        let log = self.read(&["logs/refs/heads", name], FILE_LIMIT_BYTES)?;
        let first = log.split(|byte| *byte == b' ').next()?;
        let tip = self.tip(name)?;
        if tip.as_bytes() == first {
            return None;
        }
        let (mut seen, mut pending) = (HashSet::new(), vec![tip]);
        let mut subjects = Vec::new();
        let mut commits = 0;
        while let Some(id) = pending.pop() {
            if *left == 0 || !seen.insert(id.clone()) {
                continue;
            }
            // A commit that isn't here is from the user's repository, and so are all its ancestors.
            let Some(commit) = self.commit(&id) else { continue };
            *left -= 1;
            commits += 1;
            if subjects.len() < SUBJECTS_LIMIT {
                subjects.push(commit.subject);
            }
            pending.extend(commit.parents);
        }
        Some(PlanBranch {
            name: name.to_owned(),
            commits,
            subjects,
        })
    }

    fn tip(&self, name: &str) -> Option<String> {
        if let Some(loose) = self.read(&["refs/heads", name], FILE_LIMIT_BYTES) {
            return as_id(loose.trim_ascii());
        }
        let packed = self.read(&["packed-refs"], PACKED_LIMIT_BYTES)?;
        let wanted = format!("refs/heads/{name}");
        let line = packed.split(|byte| *byte == b'\n').find_map(|line| {
            let space = line.iter().position(|byte| *byte == b' ')?;
            (line[space + 1..] == *wanted.as_bytes()).then(|| line[..space].to_vec())
        });
        as_id(&line?)
    }

    fn commit(&self, id: &str) -> Option<Commit> {
        let (directory, rest) = id.split_at_checked(2)?;
        let packed = self.read(&["objects", directory, rest], FILE_LIMIT_BYTES)?;
        let limit = usize::try_from(FILE_LIMIT_BYTES).ok()?;
        let object = decompress_to_vec_zlib_with_limit(&packed, limit).ok()?;
        let content = object.strip_prefix(b"commit ")?;
        let start = content.iter().position(|byte| *byte == 0)? + 1;
        let text = String::from_utf8_lossy(&content[start..]);
        let (header, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let parents = header.lines().filter_map(|line| line.strip_prefix("parent "));
        let subject = message.lines().next().unwrap_or_default();
        let subject = subject.chars().filter(|character| !character.is_control());
        Some(Commit {
            parents: parents.filter_map(|parent| as_id(parent.as_bytes())).collect(),
            subject: subject.take(SUBJECT_CHARACTERS).collect(),
        })
    }

    fn read(&self, parts: &[&str], limit: u64) -> Option<Vec<u8>> {
        self.tree.read(&path(parts)?, limit).ok()
    }
}

fn path(parts: &[&str]) -> Option<RelPath> {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    RelPath::from_bytes(parts.join("/").as_bytes()).ok()
}

fn as_id(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (matches!(text.len(), 40 | 64) && is_hex).then(|| text.to_owned())
}
