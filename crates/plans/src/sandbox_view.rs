//! A read-only view of a whole sandbox, for many threads at once, that reports what differs from the workspace.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eventlog::UnixMs;
use protocol::PlanId;

use crate::inner::{PlansInner, blocking};
use crate::{
    Entry, Known, Manifest, Plan, PlanError, Plans, ReadBounds, RelPath, Sandbox, Tree, store, workspaces,
};

/// How long taking a base may have taken. Only used for plans that were opened before that was recorded.
const TAKING_TIME: Duration = Duration::from_secs(60);

/// How much earlier a file's mtime may be than the actual write: file systems use a clock that ticks a hundred times a
/// second or more.
const FILE_CLOCK_TICK: Duration = Duration::from_millis(100);

/// What differs from a base; `None` for deleted entries.
type Since = BTreeMap<RelPath, Option<Entry>>;

/// A sandbox at the moment when the view was opened. It stays open as long as this is held; files are read in their
/// current state.
#[derive(Clone, Debug)]
pub struct SandboxView {
    plan: Plan,
    sandbox: Arc<dyn Sandbox>,
    base: Arc<Manifest>,
    since: Arc<Since>,
    /// Everything that the plans above it have ever changed: its base may have those changes when the
    /// workspace doesn't.
    above: Arc<BTreeSet<RelPath>>,
    taken_at: SystemTime,
}

impl SandboxView {
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.plan.record.facts.root
    }

    /// The files. Reading them blocks.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        self.sandbox.tree()
    }

    /// A workspace file that was last changed before this moment, by its times, is the same in the sandbox, except for
    /// those in [`changed`](Self::changed).
    #[must_use]
    pub fn taken_at(&self) -> SystemTime {
        self.taken_at
    }

    /// The paths that may differ from the workspace because of changes in the plan, or in one above it, in order.
    /// Includes unrecorded changes.
    pub fn changed(&self) -> impl Iterator<Item = &RelPath> {
        let files = self
            .since
            .iter()
            .filter(|(_, entry)| !matches!(entry, Some(Entry::Directory)));
        let changed: BTreeSet<&RelPath> = files.map(|(path, _)| path).chain(self.above.iter()).collect();
        changed.into_iter()
    }

    /// The files that the sandbox has and the workspace has lost since the base was taken. It blocks: it checks every
    /// directory of the workspace, and the files of those that have changed.
    #[must_use]
    pub fn lost_in_workspace(&self) -> Vec<RelPath> {
        let root = self.root();
        // Removing an entry sets a directory's mtime.
        let has_moved = |directory: &Path| {
            let modified = directory.metadata().and_then(|found| found.modified());
            modified.map_or(true, |modified| modified >= self.taken_at)
        };
        let directories = self
            .base
            .iter()
            .filter(|(path, entry)| entry.is_directory() && has_moved(&root.join(path.as_path())));
        let mut moved: HashSet<Option<RelPath>> = directories.map(|(path, _)| Some(path.clone())).collect();
        if has_moved(root) {
            moved.insert(None);
        }
        if moved.is_empty() {
            return Vec::new();
        }
        let suspects = self.files().filter(|path| moved.contains(&path.parent()));
        let lost = suspects.filter(|path| root.join(path.as_path()).symlink_metadata().is_err());
        lost.cloned().collect()
    }

    /// The files that count, in no particular order: no ignored files, symlinks or directories.
    pub fn files(&self) -> impl Iterator<Item = &RelPath> {
        let untouched = self
            .base
            .iter()
            .filter(|(path, _)| !self.since.contains_key(path));
        let touched = self.since.iter();
        let touched = touched.filter_map(|(path, entry)| Some((path, entry.as_ref()?)));
        let all = untouched.chain(touched);
        all.filter(|(_, entry)| matches!(entry, Entry::File { .. }))
            .map(|(path, _)| path)
    }
}

impl Plans {
    /// Opens a view of the whole sandbox, for many threads at once. It includes what its actor has written but hasn't
    /// been recorded yet.
    pub async fn look(&self, id: PlanId) -> Result<SandboxView, PlanError> {
        let inner = &self.inner;
        let looked = inner.at_plan(id, |worker| Box::pin(worker.look_at_all()));
        let (plan, sandbox, known) = looked.await?;
        let (above, opened_at) = above(inner, &plan).await?;
        let taken_at = match plan.record.base_taken_at {
            Some(taken) => taken.to_system_time() - FILE_CLOCK_TICK,
            None => opened_at.to_system_time() - TAKING_TIME,
        };
        let capturing = Arc::clone(&sandbox);
        let bounds = ReadBounds {
            scope: inner.scope.clone(),
            max_file_bytes: inner.settings.max_file_bytes,
        };
        let captured = blocking(move || capture(&*capturing, known, &bounds)).await?;
        let (base, since) = captured.map_err(PlanError::io("looking at the sandbox"))?;
        Ok(SandboxView {
            plan,
            sandbox,
            base,
            since: Arc::new(since),
            above: Arc::new(above),
            taken_at,
        })
    }

    /// The root of the tree that contains a directory, for read-only use: a workspace, a git repository, or the
    /// directory itself. Nothing is registered, and of nested roots the innermost is used.
    pub async fn root_of(&self, directory: PathBuf) -> Result<PathBuf, PlanError> {
        let known = workspaces::roots(&self.inner).await?;
        let own = self.inner.directory.clone();
        blocking(move || workspaces::root_to_look_at(&directory, &known, &own)).await?
    }
}

/// What is known about a sandbox, plus what its actor did in the meantime.
fn capture(sandbox: &dyn Sandbox, known: Known, bounds: &ReadBounds) -> io::Result<(Arc<Manifest>, Since)> {
    let mut since = BTreeMap::clone(&known.since);
    for change in sandbox.capture(&known, bounds)?.changes {
        since.extend(change.from.map(|from| (from, None)));
        since.insert(change.path, change.after);
    }
    Ok((known.base, since))
}

/// The paths that the plans above a plan have ever changed, and when the topmost was opened. Which of those changes
/// existed when the plan was opened isn't recorded, so all are included.
async fn above(inner: &PlansInner, plan: &Plan) -> Result<(BTreeSet<RelPath>, UnixMs), PlanError> {
    let (mut paths, mut next) = (BTreeSet::new(), plan.record.facts.parent);
    let mut opened_at = plan.record.facts.opened_at;
    while let Some(id) = next {
        paths.extend(store::touched(&inner.log, id).await?);
        let facts = store::plan(&inner.log, id).await?.record.facts;
        (next, opened_at) = (facts.parent, facts.opened_at);
    }
    Ok((paths, opened_at))
}
