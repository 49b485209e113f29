//! The applies of the reports. They have the real plans and the real workspace, and carry out what they should not.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventlog::BlobId;
use plans::{Change, Contents, Entry};
use protocol::PlanId;

use crate::plans_kit::{PATIENCE, Running, Site};

/// What became of an attempt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Done,
    /// It clashes in these paths.
    Clashes(Vec<String>),
    Refused(String),
}

/// What has to be known to carry a change out.
pub(crate) struct Work {
    changes: Vec<Change>,
    contents: BTreeMap<BlobId, Bytes>,
}

impl Work {
    pub(crate) async fn of(running: &Running, plan: PlanId) -> Self {
        let changes = running.plans.changes(plan, None).await.unwrap();
        let wanted: Vec<BlobId> = changes.iter().flat_map(Change::contents).collect();
        let contents: Arc<dyn Contents> = running.plans.contents();
        let read = tokio::task::spawn_blocking(move || {
            let read = wanted.into_iter().map(|id| (id, contents.get(id).unwrap()));
            read.collect()
        });
        Self {
            changes,
            contents: read.await.unwrap(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Writes the first so many changes, one after the other, and stops at the first that is not what it was.
    pub(crate) fn write(&self, root: &Path, first: usize) -> Verdict {
        for change in self.changes.iter().take(first) {
            if !self.is_as_before(root, change) {
                return Verdict::Clashes(vec![change.path.to_string()]);
            }
            self.carry_out(root, change);
        }
        Verdict::Done
    }

    /// Whether everything is what it was. Whoever has looked writes later.
    pub(crate) fn look(&self, root: &Path) -> bool {
        self.changes.iter().all(|change| self.is_as_before(root, change))
    }

    /// Writes what was looked at before.
    pub(crate) fn write_later(&self, root: &Path) {
        for change in &self.changes {
            self.carry_out(root, change);
        }
    }

    fn is_as_before(&self, root: &Path, change: &Change) -> bool {
        let from = change.from.as_ref().unwrap_or(&change.path);
        self.is(root, from.as_path(), change.before.as_ref())
    }

    fn carry_out(&self, root: &Path, change: &Change) {
        if let Some(from) = &change.from {
            self.put(root, from.as_path(), None).unwrap();
        }
        self.put(root, change.path.as_path(), change.after.as_ref())
            .unwrap();
    }

    /// Writes back what was there, whatever is there now.
    pub(crate) fn write_back(&self, root: &Path, first: usize) {
        for change in self.changes.iter().rev().take(first) {
            self.put(root, change.path.as_path(), change.before.as_ref())
                .unwrap();
            if let Some(from) = &change.from {
                self.put(root, change.path.as_path(), None).unwrap();
                self.put(root, from.as_path(), change.before.as_ref()).unwrap();
            }
        }
    }

    fn is(&self, root: &Path, path: &Path, expected: Option<&Entry>) -> bool {
        let at = root.join(path);
        match expected {
            None => !at.exists(),
            Some(Entry::Directory) => at.is_dir(),
            Some(Entry::File { hash, .. }) => fs::read(at).is_ok_and(|found| found == self.contents[hash]),
            Some(Entry::Symlink { target }) => {
                fs::read_link(at).is_ok_and(|found| found.as_os_str().as_bytes() == &*target.0)
            }
        }
    }

    fn put(&self, root: &Path, path: &Path, entry: Option<&Entry>) -> io::Result<()> {
        let at = root.join(path);
        match entry {
            None if at.is_dir() => fs::remove_dir_all(at),
            None => fs::remove_file(at).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }),
            Some(Entry::Directory) => fs::create_dir_all(at),
            Some(Entry::File { hash, mode, .. }) => {
                fs::create_dir_all(at.parent().unwrap())?;
                fs::write(&at, &self.contents[hash])?;
                fs::set_permissions(at, fs::Permissions::from_mode(*mode))
            }
            Some(Entry::Symlink { target }) => symlink(std::ffi::OsStr::from_bytes(&target.0), at),
        }
    }
}

/// Puts the work of a plan on a branch, for `git merge`.
pub(crate) fn make_branch(site: &Site, plan: PlanId, work: &Work) {
    let first = "$(git rev-list --max-parents=0 main)";
    site.shell(&format!("git worktree add -q -b {plan} ../{plan} {first}"));
    let root = site.root.join(plan.to_string());
    assert_eq!(work.write(&root, work.len()), Verdict::Done);
    site.shell(&format!(
        "cd ../{plan} && git add -A && git commit -q -m {plan}; git worktree remove --force ../{plan} 2> /dev/null || true"
    ));
}

/// Merges a branch in the checkout.
pub(crate) fn merge(site: &Site, plan: PlanId) -> Verdict {
    ended(site, begin_merge(site, plan))
}

/// Begins to merge. If the hook is told to wait, it is held when everything is merged and nothing is committed.
pub(crate) fn begin_merge(site: &Site, plan: PlanId) -> Child {
    site.git_shell(&format!("exec git merge -q --no-ff --no-edit {plan}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn ended(site: &Site, mut merge: Child) -> Verdict {
    if merge.wait().unwrap().success() {
        return Verdict::Done;
    }
    let unmerged = site
        .git_shell("git diff --name-only --diff-filter=U")
        .output()
        .unwrap();
    let unmerged = String::from_utf8(unmerged.stdout).unwrap();
    if unmerged.is_empty() {
        return Verdict::Refused("git merge has failed".to_owned());
    }
    Verdict::Clashes(unmerged.lines().map(str::to_owned).collect())
}

/// Makes merges wait for each other's middle: the first is held there until it is let go.
pub(crate) struct Hook<'site>(&'site Site);

impl<'site> Hook<'site> {
    pub(crate) fn set(site: &'site Site) -> Self {
        let hook = site.workspace.join(".git/hooks/pre-merge-commit");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        let script = "#!/bin/sh\ntouch .git/held\nwhile [ ! -e .git/let-go ]; do sleep 0.01; done\n";
        fs::write(&hook, script).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        Self(site)
    }

    pub(crate) fn wait_until_held(&self) {
        let began = Instant::now();
        while !self.0.workspace.join(".git/held").exists() {
            assert!(
                began.elapsed() < PATIENCE,
                "the first merge has not come to its hook"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn let_go(&self) {
        fs::write(self.0.workspace.join(".git/let-go"), "").unwrap();
    }
}

impl Drop for Hook<'_> {
    fn drop(&mut self) {
        // A scenario that fails leaves no process that waits.
        drop(fs::write(self.0.workspace.join(".git/let-go"), ""));
    }
}
