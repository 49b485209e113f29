//! A read-only view of a whole sandbox, for many threads at once, that says what differs from the workspace.

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

/// How long it may have taken to take a base. It counts only for plans that were opened before that was written down.
const TAKING_TIME: Duration = Duration::from_secs(60);

/// How much earlier the time of a file may be than the moment in which it was written: file systems look at a clock that
/// ticks a hundred times a second or more.
const FILE_CLOCK_TICK: Duration = Duration::from_millis(100);

/// What is different from a base; `None` for what is gone.
type Since = BTreeMap<RelPath, Option<Entry>>;

/// A sandbox as it was when somebody began to look. It stays open as long as this is held; files are read as they are.
#[derive(Clone, Debug)]
pub struct SandboxView {
    plan: Plan,
    sandbox: Arc<dyn Sandbox>,
    base: Arc<Manifest>,
    since: Arc<Since>,
    /// What a plan above it has ever changed: its base may have that, and the workspace not.
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

    /// The files. To read them blocks.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        self.sandbox.tree()
    }

    /// A file of the workspace that was changed before this moment, by its times, is in the sandbox as it is there, but for
    /// what [`changed`](Self::changed) names.
    #[must_use]
    pub fn taken_at(&self) -> SystemTime {
        self.taken_at
    }

    /// The paths that may be different from the workspace because of what was done in the plan, or in one above it, in order.
    /// What nobody has recorded yet is among them.
    pub fn changed(&self) -> impl Iterator<Item = &RelPath> {
        let files = self
            .since
            .iter()
            .filter(|(_, entry)| !matches!(entry, Some(Entry::Directory)));
        let changed: BTreeSet<&RelPath> = files.map(|(path, _)| path).chain(self.above.iter()).collect();
        changed.into_iter()
    }

    /// The files that the sandbox has and the workspace has lost since it was taken. It blocks: it looks at every directory of
    /// the workspace, and at the files of those that have moved.
    #[must_use]
    pub fn lost_in_workspace(&self) -> Vec<RelPath> {
        let root = self.root();
        // A directory that has lost a name has the time of that moment.
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

    /// The files that count, in no order: not what git would ignore, no symlinks, no directories.
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
    /// Opens the sandbox for somebody who looks at all of it, from many threads at once. What its actor has written and
    /// nobody has recorded yet is seen too.
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

    /// The root of the tree that a directory is in, for somebody who only looks: a workspace, a git repository, or the
    /// directory itself. Nothing is registered, and of nested ones the inner one counts.
    pub async fn root_of(&self, directory: PathBuf) -> Result<PathBuf, PlanError> {
        let known = workspaces::roots(&self.inner).await?;
        let own = self.inner.directory.clone();
        blocking(move || workspaces::root_to_look_at(&directory, &known, &own)).await?
    }
}

/// What is known of a sandbox, together with what its actor did meanwhile.
fn capture(sandbox: &dyn Sandbox, known: Known, bounds: &ReadBounds) -> io::Result<(Arc<Manifest>, Since)> {
    let mut since = BTreeMap::clone(&known.since);
    for change in sandbox.capture(&known, bounds)?.changes {
        since.extend(change.from.map(|from| (from, None)));
        since.insert(change.path, change.after);
    }
    Ok((known.base, since))
}

/// The paths that the plans above a plan have ever changed, and when the uppermost was opened. Which of that was there when
/// the plan was opened is not written down, so it is all of it.
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
