//! Moving an open plan to the workspace's current state: a new sandbox on a new base, with the plan's changes merged
//! in.

use std::collections::HashSet;
use std::sync::Arc;

use eventlog::UnixMs;
use protocol::{OutcomeKind, PlanId};

use super::begin::LandingRequest;
use super::outcome::outcome_paths;
use super::{LandingQueue, TRIES};
use crate::attributes::Attributes;
use crate::inner::blocking;
use crate::plan_worker::{Snapshot, sandbox_spec};
use crate::{
    Actor, Attempt, Base, Change, Effect, Entry, LandingOutcome, Manifest, MergeDriver, Merged, Ours, Plan,
    PlanError, RelPath, Run, Sandbox, SandboxSpec, Taken, Tree, log_contents, merge_changes, state, store,
};

impl LandingQueue {
    pub(crate) async fn refresh(
        &mut self,
        plan: PlanId,
        by: Actor,
        seen: Option<u64>,
    ) -> Result<LandingOutcome, PlanError> {
        for _ in 0..TRIES {
            let snapshot = self.snapshot(plan).await?;
            let record = &snapshot.plan.record;
            let actual = snapshot.plan.version.get();
            if seen.is_some_and(|seen| seen != actual) {
                return Err(PlanError::Stale { plan, actual });
            }
            state::may_land(plan, record, Attempt::Refresh)?;
            if record.facts.parent.is_some() {
                return Err(PlanError::Busy {
                    plan,
                    by: "it begins with its parent, and cannot be moved to the workspace".to_owned(),
                });
            }
            let began = self.inner.time.now();
            let taken = self.take_base().await?;
            let merged = self.onto(&taken.base, &snapshot).await?;
            if !merged.conflicts.is_empty() {
                let wanted = LandingRequest {
                    what: Attempt::Refresh,
                    by,
                    run: Run::Real,
                    commit: None,
                    snapshots: vec![snapshot],
                    lists: Vec::new(),
                    changeset: None,
                    attributes: Vec::new(),
                };
                let conflicts = merged.conflicts;
                let plan = self.keep_refusal(plan, &wanted, conflicts.clone()).await?;
                return Ok(LandingOutcome {
                    conflicts,
                    ..LandingOutcome::new(OutcomeKind::Conflicted, vec![plan])
                });
            }
            if let Some(outcome) = self.move_to(&by, &snapshot, taken, began, merged).await? {
                return Ok(outcome);
            }
        }
        Err(PlanError::moving(plan))
    }

    /// The plan's changes, merged onto a new base.
    async fn onto(&self, base: &Base, snapshot: &Snapshot) -> Result<Merged, PlanError> {
        let (manifest, changes) = (Arc::clone(&base.manifest), Arc::clone(&snapshot.changes));
        let contents = self.inner.contents.clone();
        self.keep_base_contents(base, &changes).await?;
        let files = base.tree.clone();
        let merged = blocking(move || {
            let tree = Tree::open(&files)?;
            let ours = ManifestOurs {
                manifest: &manifest,
                attributes: Attributes::of(&tree),
            };
            merge_changes(&changes, &ours, &contents)
        });
        merged.await?.map_err(PlanError::io("merging"))
    }

    /// Stores contents of the new base in the log. The merge reads contents from there, and some may be missing.
    async fn keep_base_contents(&self, base: &Base, changes: &[Change]) -> Result<(), PlanError> {
        let paths = changes
            .iter()
            .flat_map(|change| [Some(&change.path), change.from.as_ref()])
            .flatten();
        let wanted: Vec<_> = paths
            .filter_map(|path| Some((path.clone(), base.manifest.get(path)?.content()?)))
            .collect();
        let source = |(path, content): (RelPath, eventlog::BlobId)| {
            let file = base.tree.join(path.as_path());
            let open = move || std::fs::File::open(file).map_err(PlanError::io("reading the base"));
            (Some(content), log_contents::Source::File(Box::new(open)))
        };
        let sources = wanted.into_iter().map(source).collect();
        log_contents::put_all(&self.inner.log, sources).await?;
        Ok(())
    }

    /// Makes the new sandbox and moves the plan to it. `None` if the plan has changed in the meantime.
    async fn move_to(
        &self,
        by: &Actor,
        snapshot: &Snapshot,
        taken: Taken,
        began: UnixMs,
        merged: Merged,
    ) -> Result<Option<LandingOutcome>, PlanError> {
        let old = &snapshot.plan;
        let mut record = old.record.clone();
        record.sandbox += 1;
        record.base = taken.base.id;
        record.base_taken_at = Some(began);
        record.ignored = taken.ignored;
        let next = Plan {
            record,
            ..old.clone()
        };
        let made = merged
            .made
            .values()
            .cloned()
            .map(|content| (None, log_contents::Source::Bytes(content)));
        log_contents::put_all(&self.inner.log, made.collect()).await?;
        let strategy = self.inner.strategies.get(next.record.facts.strategy);
        let spec = sandbox_spec(&self.inner, &next, taken.base.clone());
        let number = next.record.sandbox;
        // The plan has no sandbox with this number. An attempt with an unknown outcome may have left one.
        strategy.remove(&spec).await?;
        strategy.create(&spec).await?;
        let filled = self.fill(&*strategy, &spec, &merged.effects).await;
        let changes: Vec<Change> = merged.effects.iter().map(Change::from).collect();
        let moved = match filled {
            Ok(()) => {
                self.inner
                    .at_plan(old.id, {
                        let (by, next, changes, seen) =
                            (Arc::clone(by), next.record.clone(), changes, old.version);
                        move |worker| Box::pin(worker.refreshed(by, seen, next, changes))
                    })
                    .await
            }
            Err(error) => Err(error),
        };
        let plan = match moved {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                strategy.remove(&spec).await?;
                return Ok(None);
            }
            Err(error) => {
                // Once the plan has moved, or may have, it owns the sandbox, whatever failed.
                let actual = store::plan(&self.inner.log, old.id).await;
                if !error.may_be_done() && actual.is_ok_and(|actual| actual.record.sandbox < number) {
                    strategy.remove(&spec).await?;
                }
                return Err(error);
            }
        };
        let old_base = self.inner.base(old.record.base).await?.unwrap_or(taken.base);
        strategy.remove(&sandbox_spec(&self.inner, old, old_base)).await?;
        let combined: HashSet<RelPath> = merged.combined.into_iter().collect();
        Ok(Some(LandingOutcome {
            paths: outcome_paths(&merged.effects, &combined),
            ..LandingOutcome::new(OutcomeKind::Done, vec![plan])
        }))
    }

    /// Writes the plan's changes into a new sandbox, which nothing else uses yet.
    async fn fill(
        &self,
        strategy: &dyn crate::sandbox::Strategy,
        spec: &SandboxSpec,
        effects: &[Effect],
    ) -> Result<(), PlanError> {
        let sandbox = strategy.open(spec).await?;
        let (effects, contents) = (effects.to_vec(), self.inner.contents.clone());
        let written = blocking(move || write_all(&*sandbox, &effects, &contents)).await?;
        written.map_err(PlanError::io("filling the new sandbox"))
    }
}

/// Removals first, innermost first; then additions, outermost first.
fn write_all(
    sandbox: &dyn Sandbox,
    effects: &[Effect],
    contents: &dyn crate::contents::Contents,
) -> std::io::Result<()> {
    let tree = sandbox.tree();
    let replaces = |effect: &&Effect| {
        let directory = |entry: &Option<Entry>| entry.as_ref().map(Entry::is_directory);
        effect.before.is_some()
            && (effect.after.is_none() || directory(&effect.before) != directory(&effect.after))
    };
    for effect in effects.iter().rev().filter(replaces) {
        tree.remove(&effect.path)?;
    }
    for effect in effects {
        match &effect.after {
            None => {}
            Some(Entry::Directory) => tree.make_directories(&effect.path)?,
            Some(Entry::Symlink { target }) => {
                if tree.stat(&effect.path)?.is_some() {
                    tree.remove(&effect.path)?;
                }
                tree.symlink(&effect.path, target)?;
            }
            Some(Entry::File { hash, mode, .. }) => {
                tree.write_by(&effect.path, *mode, |to| contents.copy_to(*hash, to))?;
            }
        }
    }
    Ok(())
}

struct ManifestOurs<'a> {
    manifest: &'a Manifest,
    attributes: Attributes<'a>,
}

impl Ours for ManifestOurs<'_> {
    fn at(&self, path: &RelPath) -> std::io::Result<Option<Entry>> {
        Ok(self.manifest.get(path).cloned())
    }

    fn has_others(&self, directory: &RelPath, beside: &dyn Fn(&RelPath) -> bool) -> std::io::Result<bool> {
        Ok(self.manifest.below(directory).any(|(path, _)| !beside(path)))
    }

    fn merge_driver(&self, path: &RelPath) -> MergeDriver {
        self.attributes.merge_driver(path)
    }

    fn find(&self, content: eventlog::BlobId) -> Option<RelPath> {
        let mut entries = self.manifest.iter();
        entries
            .find(|(_, entry)| entry.content() == Some(content))
            .map(|(path, _)| path.clone())
    }
}
