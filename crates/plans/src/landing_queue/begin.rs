//! The start of a landing: it is merged, stored, staged, begun and carried out.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use eventlog::{BlobId, Commit, MaybeConflict};
use protocol::{ChangesetId, CommitPlans};
use rustix::io::Errno;

use super::LandingQueue;
use super::outcome::would;
use super::remerge::LandingRemerge;
use super::stored::{self, KnownAttributes, LandingEffects, StoredLanding};
use super::target::{ContentFinder, LandingTarget, TreeOurs};
use crate::attributes::Attributes;
use crate::inner::{Hold, PlansInner, blocking, with_causes};
use crate::landing::{LandError, Landing, LandingEnd, LandingId, LandingSite, NoRemerge, Staged, StepKind};
use crate::landings::{LandingRecord, LandingState};
use crate::log_contents::{self, Source};
use crate::plan_worker::{Snapshot, new_run_id};
use crate::{
    Actor, Attempt, Change, Effect, Entry, FileAttributes, LandingOutcome, MergedAll, Plan, PlanError,
    RelPath, Run, Running, TreeError, Workspace, git_commit, merge_all, state, store,
};

#[derive(Debug)]
pub(super) struct LandingRequest {
    pub(super) what: Attempt,
    pub(super) by: Actor,
    pub(super) run: Run,
    pub(super) commit: Option<CommitPlans>,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) lists: Vec<Vec<Change>>,
    pub(super) changeset: Option<ChangesetId>,
    /// The metadata of files that come back.
    pub(super) attributes: KnownAttributes,
}

/// A landing that has begun: from now on, files may change.
#[derive(Debug)]
pub(super) struct ActiveLanding {
    pub(super) landing: Landing,
    /// The staged files; `None` if an earlier daemon staged them.
    pub(super) staged: Option<Staged>,
    pub(super) stored: StoredLanding,
    pub(super) done: LandingEffects,
    pub(super) target: LandingTarget,
    /// The command run in the parent's sandbox, if the landing happens there.
    pub(super) run_id: Option<String>,
    /// Paths that both sides had changed.
    pub(super) combined: HashSet<RelPath>,
    /// The path of the workspace, for people.
    pub(super) root: String,
    /// Holds on the workers of all participants, so that nothing is written to their sandboxes that couldn't be
    /// recorded.
    pub(super) holds: Vec<Hold>,
}

impl LandingQueue {
    /// Lands, or reports why not. `None` means that something has changed and the decision has to be made again.
    pub(super) async fn land(&mut self, wanted: LandingRequest) -> Result<Option<LandingOutcome>, PlanError> {
        let workspace = self.workspace().await?;
        let workspace = self.settle(&workspace).await?;
        let target = self.target(&workspace, &wanted).await?;
        if wanted.commit.is_some() {
            must_have_git(&workspace, &target).await?;
        }
        let Some(merged) = self.merge(&target, &workspace, &wanted).await? else {
            return Ok(None);
        };
        if !merged.conflicts.is_empty() {
            return self.refuse(&wanted, merged).await.map(Some);
        }
        if wanted.run == Run::Dry {
            return Ok(Some(would(&wanted, merged)));
        }
        let Some(begun) = self.begin(&workspace, &wanted, target, merged).await? else {
            return Ok(None);
        };
        let id = begun.landing.id.clone();
        match self.carry_out(begun).await {
            Ok((begun, outcome)) => self.end(&workspace, begun, outcome).await.map(Some),
            Err(error) => Err(self.stuck(&workspace, id.as_str(), error).await),
        }
    }

    async fn target(
        &self,
        workspace: &Workspace,
        wanted: &LandingRequest,
    ) -> Result<LandingTarget, PlanError> {
        let mut grounds = wanted.snapshots.iter().map(|snapshot| {
            let facts = &snapshot.plan.record.facts;
            (facts.workspace, facts.parent)
        });
        let first = grounds.next().ok_or(PlanError::NotTogether)?;
        if first.0 != self.id || grounds.any(|ground| ground != first) {
            return Err(PlanError::NotTogether);
        }
        match first.1 {
            None => Ok(LandingTarget::Workspace(workspace.record.root.clone())),
            Some(parent) => {
                let sandbox = self.inner.at_plan(parent, |worker| {
                    Box::pin(async move {
                        worker.catch_up().await?;
                        worker.sandbox().await
                    })
                });
                Ok(LandingTarget::Parent(parent, sandbox.await?))
            }
        }
    }

    /// Merges. `None` if a file was saved in the meantime.
    async fn merge(
        &self,
        target: &LandingTarget,
        workspace: &Workspace,
        wanted: &LandingRequest,
    ) -> Result<Option<MergedAll>, PlanError> {
        let (target, lists) = (target.clone(), wanted.lists.clone());
        let contents = self.inner.contents.clone();
        let finder = ContentFinder {
            bases: self.inner.bases.clone(),
            root: workspace.record.root.clone(),
            cache: self.inner.stat_cache(self.id),
            scope: self.inner.scope.clone(),
            found: OnceLock::new(),
        };
        let merged = blocking(move || {
            target.with_tree(|tree| {
                let moved = |content: BlobId| match &target {
                    LandingTarget::Workspace(_) => finder.of(content),
                    LandingTarget::Parent(..) => None,
                };
                let ours = TreeOurs {
                    tree,
                    contents: &contents,
                    seen: Mutex::default(),
                    moved: &moved,
                    attributes: Attributes::of(tree),
                };
                let lists: Vec<&[Change]> = lists.iter().map(Vec::as_slice).collect();
                merge_all(&lists, &ours, &ours)
            })
        });
        match merged.await?? {
            Ok(merged) => Ok(Some(merged)),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(merge_error(error)),
        }
    }

    /// Records the landing, stages it, and begins it.
    async fn begin(
        &self,
        workspace: &Workspace,
        wanted: &LandingRequest,
        target: LandingTarget,
        merged: MergedAll,
    ) -> Result<Option<ActiveLanding>, PlanError> {
        let (had, given) = self.attributes(&target, wanted, &merged.effects).await?;
        let landing = Landing {
            id: LandingId::generate(),
            effects: merged.effects,
            attributes: given.clone(),
        };
        let done = LandingEffects {
            effects: landing.effects.clone(),
            each: merged.each,
            had,
            given,
        };
        let made = merged
            .made
            .into_values()
            .map(|content| (None, Source::Bytes(content)));
        log_contents::put_all(&self.inner.log, made.collect()).await?;
        if !self.keep_old(&target, &landing, &wanted.lists).await? {
            return Ok(None);
        }
        let titles = || {
            let titles = wanted
                .snapshots
                .iter()
                .map(|snapshot| &*snapshot.plan.record.facts.title);
            titles.collect::<Vec<_>>().join("\n")
        };
        let record = LandingRecord {
            state: LandingState::Written,
            what: wanted.what,
            by: Arc::clone(&wanted.by),
            at: self.inner.time.now(),
            workspace: self.id,
            parent: target.parent(),
            plans: wanted.snapshots.iter().map(|snapshot| snapshot.plan.id).collect(),
            changeset: wanted.changeset,
            commit: wanted
                .commit
                .as_ref()
                .map(|commit| commit.message.clone().unwrap_or_else(titles)),
            home: self.inner.home_id,
            effects: landing.effects.len() as u64,
        };
        let stored = stored::write(&self.inner.log, landing.id.to_string(), record, &done).await?;
        let staged = self.stage(&target, &landing).await?;
        let run_id = target.parent().map(|_| new_run_id());
        if let Some(run_id) = &run_id {
            self.inner.command_runs.begin(run_id);
        }
        let mut holds = Vec::new();
        for plan in stored.record.plans.iter().copied().chain(target.parent()) {
            holds.push(self.inner.hold(plan).await?);
        }
        let mut begun = ActiveLanding {
            root: workspace.record.root.display().to_string(),
            holds,
            landing,
            staged: Some(staged),
            stored,
            done,
            target,
            run_id,
            combined: merged.combined.into_iter().collect(),
        };
        let committed = self.commit_begin(workspace, wanted, &mut begun).await;
        if let (Err(_), Some(run_id)) = (&committed, &begun.run_id) {
            self.inner.command_runs.end(run_id);
        }
        match committed {
            Ok(()) => Ok(Some(begun)),
            // It may have begun. The next request for this workspace finishes it.
            Err(error) if error.may_be_done() => Err(error),
            Err(error) => {
                self.discard(&begun).await?;
                if error.is_conflict() { Ok(None) } else { Err(error) }
            }
        }
    }

    /// The metadata of files that are removed, and the metadata that new files get.
    async fn attributes(
        &self,
        target: &LandingTarget,
        wanted: &LandingRequest,
        effects: &[Effect],
    ) -> Result<(KnownAttributes, KnownAttributes), PlanError> {
        let is_file = |entry: &Option<Entry>| matches!(entry, Some(Entry::File { .. }));
        let goes = effects
            .iter()
            .filter(|effect| is_file(&effect.before) && !is_file(&effect.after));
        let goes: Vec<RelPath> = goes.map(|effect| effect.path.clone()).collect();
        let comes: HashSet<&RelPath> = effects
            .iter()
            .filter(|effect| is_file(&effect.after) && !is_file(&effect.before))
            .map(|effect| &effect.path)
            .collect();
        let target = target.clone();
        let had = blocking(move || {
            target.with_tree(|tree| {
                let mut had = KnownAttributes::new();
                for path in goes {
                    if let Some(attributes) = tree.attributes(&path)?.filter(FileAttributes::is_special) {
                        had.push((path, attributes));
                    }
                }
                Ok::<_, TreeError>(had)
            })
        });
        let had = had.await??.map_err(tree_error)?;
        let mut given: KnownAttributes = wanted
            .attributes
            .iter()
            .filter(|(path, _)| comes.contains(path))
            .cloned()
            .collect();
        // A renamed file keeps its metadata.
        for change in wanted.lists.iter().flatten() {
            let from = change.from.as_ref();
            if let Some((_, attributes)) = had.iter().find(|(path, _)| Some(path) == from)
                && comes.contains(&change.path)
            {
                given.push((change.path.clone(), attributes.clone()));
            }
        }
        Ok((had, given))
    }

    /// Stores what the tree holds now in the log, so that it can be restored. Returns whether the tree is still
    /// in that state.
    async fn keep_old(
        &self,
        target: &LandingTarget,
        landing: &Landing,
        lists: &[Vec<Change>],
    ) -> Result<bool, PlanError> {
        // Everything that a plan has found or made is in the log: its records refer to it. If no one else has
        // changed the tree, that is everything, and there is no need to query the log for each content.
        let recorded: HashSet<BlobId> = lists.iter().flatten().flat_map(Change::contents).collect();
        let old = landing.effects.iter().filter_map(|effect| {
            let content = effect.before.as_ref().and_then(Entry::content)?;
            (!recorded.contains(&content)).then(|| (effect.path.clone(), content))
        });
        let old: Vec<(RelPath, BlobId)> = old.collect();
        let mut missing = Vec::new();
        for (path, content) in old {
            if self.inner.log.blob_info(content).await?.is_none() {
                missing.push((path, content));
            }
        }
        let sources = missing
            .iter()
            .map(|(path, _)| (None, target.source(path.clone())))
            .collect();
        let put = match log_contents::put_all(&self.inner.log, sources).await {
            // A file that no longer exists has changed since the merge.
            Err(PlanError::FileRefused { .. }) => return Ok(false),
            put => put?,
        };
        Ok(put
            .iter()
            .zip(&missing)
            .all(|((id, _), (_, expected))| id == expected))
    }

    async fn stage(&self, target: &LandingTarget, landing: &Landing) -> Result<Staged, PlanError> {
        let (inner, target, landing) = (Arc::clone(&self.inner), target.clone(), landing.clone());
        let staged = blocking(move || {
            let contents = &inner.contents;
            let remerge = &LandingRemerge::new(&landing.effects, contents, &target);
            target.with_tree(|tree| {
                let (staging, steps) = (&inner.staging(), &*inner.steps.0);
                let site = LandingSite {
                    tree,
                    staging,
                    contents,
                    remerge,
                    steps,
                };
                site.stage(&landing, &inner.scope)
            })
        });
        staged.await??.map_err(land_error)
    }

    async fn commit_begin(
        &self,
        workspace: &Workspace,
        wanted: &LandingRequest,
        begun: &mut ActiveLanding,
    ) -> Result<(), PlanError> {
        let now = self.inner.time.now();
        let id = begun.landing.id.as_str();
        let mut next = begun.stored.clone();
        next.record.state = LandingState::Begun;
        let mut writes = vec![
            next.write(&[])?,
            workspace.with_landing(Some(id.to_owned())).write(&[])?,
        ];
        for Snapshot { plan, .. } in &wanted.snapshots {
            let record = state::begin_landing(plan.id, &plan.record, wanted.what, id, now)?;
            writes.push(
                Plan {
                    record,
                    ..plan.clone()
                }
                .write(&[])?,
            );
        }
        if let (Some(parent), Some(run_id)) = (begun.target.parent(), &begun.run_id) {
            let mut parent = store::plan(&self.inner.log, parent).await?;
            let running = Running {
                id: run_id.clone(),
                job: None,
                actor: Arc::clone(&wanted.by),
                tool: "merge".to_owned(),
                reason: merge_reason(wanted),
                since: now,
            };
            let (record, events) = state::command_started(parent.id, &parent.record, running, now)?;
            parent.record = record;
            parent.record.landing = Some(id.to_owned());
            writes.push(parent.write(&events)?);
        }
        next.commit(&self.inner.log, Commit::all(writes)).await?;
        begun.stored = next;
        self.inner.reached(StepKind::Begun);
        Ok(())
    }

    pub(super) async fn carry_out(
        &self,
        mut begun: ActiveLanding,
    ) -> Result<(ActiveLanding, LandingEnd), PlanError> {
        let inner = Arc::clone(&self.inner);
        let done = blocking(move || {
            let (contents, staged) = (&inner.contents, begun.staged.take());
            let remerge = &LandingRemerge::new(&begun.landing.effects, contents, &begun.target);
            let outcome = begun.target.with_tree(|tree| {
                let (staging, steps) = (&inner.staging(), &*inner.steps.0);
                let site = LandingSite {
                    tree,
                    staging,
                    contents,
                    remerge,
                    steps,
                };
                match staged {
                    Some(staged) => site.carry_out(staged),
                    None => site.recover(&begun.landing),
                }
            });
            (begun, outcome)
        });
        let (begun, outcome) = done.await?;
        match outcome? {
            Ok(outcome) => Ok((begun, outcome)),
            Err(error) => Err(land_error(error)),
        }
    }

    /// Removes what was staged and recorded of a landing that wasn't begun.
    pub(super) async fn discard(&self, begun: &ActiveLanding) -> Result<(), PlanError> {
        self.remove_staged(begun).await?;
        stored::forget(&self.inner.log, &begun.stored).await
    }

    /// Removes the staged files, whatever they are.
    pub(super) async fn remove_staged(&self, begun: &ActiveLanding) -> Result<(), PlanError> {
        let id = begun.landing.id.clone();
        let discarded = self
            .at_site(&begun.target, move |_, site| site.discard(&id))
            .await?;
        discarded.map_err(land_error)
    }

    /// Runs blocking `work` on the tree of a target. Nothing is merged again there.
    pub(super) async fn at_site<R: Send + 'static>(
        &self,
        target: &LandingTarget,
        work: impl FnOnce(&PlansInner, &LandingSite<'_>) -> R + Send + 'static,
    ) -> Result<R, PlanError> {
        let (inner, target) = (Arc::clone(&self.inner), target.clone());
        let worked = blocking(move || {
            target.with_tree(|tree| {
                let site = LandingSite {
                    tree,
                    staging: &inner.staging(),
                    contents: &inner.contents,
                    remerge: &NoRemerge,
                    steps: &*inner.steps.0,
                };
                work(&inner, &site)
            })
        });
        worked.await?
    }
}

/// A one-line description of a child's merge.
fn merge_reason(wanted: &LandingRequest) -> String {
    let titles: Vec<&str> = wanted
        .snapshots
        .iter()
        .map(|snapshot| snapshot.plan.record.facts.title.as_str())
        .collect();
    match wanted.what {
        Attempt::Undo => format!("undo of {}", titles.join(", ")),
        Attempt::Apply | Attempt::Refresh => format!("merge of {}", titles.join(", ")),
    }
}

/// Why a landing wasn't carried out, for the caller.
pub(super) fn land_error(error: LandError) -> PlanError {
    match error {
        LandError::Cancelled => PlanError::Closing,
        LandError::Content { path, source } => content_error(path, &source),
        LandError::Staging { place, source } => match tree_error(source) {
            PlanError::NotPermitted { path } => PlanError::NotPermitted {
                path: format!("{place}/{path}"),
            },
            PlanError::ReadOnly { path } => PlanError::ReadOnly {
                path: format!("{place}/{path}"),
            },
            error => error,
        },
        LandError::Stuck { source } => tree_error(source),
        LandError::Keeping { path, source } => of_system("keep what was written to", path, source),
        error @ (LandError::Twice { .. } | LandError::StagedAlready | LandError::Note { .. }) => {
            PlanError::Io {
                what: "carrying the changes out".to_owned(),
                source: std::io::Error::other(with_causes(&error)),
            }
        }
    }
}

/// Why an operation on a path of the workspace failed.
pub(super) fn tree_error(error: TreeError) -> PlanError {
    match error {
        TreeError::Io { what, path, source } => of_system(what, path, source),
        TreeError::Root { path, source } => of_system("open", path, source),
        TreeError::Source { path, source } => content_error(path, &source),
        TreeError::NotAFile { path } => PlanError::SpecialFile { path },
        error => PlanError::Io {
            what: "carrying the changes out".to_owned(),
            source: std::io::Error::other(with_causes(&error)),
        },
    }
}

fn merge_error(error: std::io::Error) -> PlanError {
    match error.downcast::<TreeError>() {
        Ok(error) => tree_error(error),
        Err(source) => of_system("read", String::new(), source),
    }
}

fn content_error(path: String, source: &std::io::Error) -> PlanError {
    PlanError::ContentDamaged {
        path,
        why: with_causes(source),
    }
}

fn of_system(what: &str, path: String, source: std::io::Error) -> PlanError {
    match Errno::from_io_error(&source) {
        Some(Errno::ACCESS | Errno::PERM) => PlanError::NotPermitted { path },
        Some(Errno::ROFS) => PlanError::ReadOnly { path },
        Some(Errno::NOSPC | Errno::DQUOT) => PlanError::DiskFull { path },
        _ => PlanError::Io {
            what: format!("{what} {path}"),
            source,
        },
    }
}

/// Refuses, before anything changes, what couldn't be committed to git afterwards.
async fn must_have_git(workspace: &Workspace, target: &LandingTarget) -> Result<(), PlanError> {
    match target {
        LandingTarget::Parent(..) => Err(PlanError::NoGitCommit {
            why: "the plan is merged into its parent, not into the workspace".to_owned(),
        }),
        LandingTarget::Workspace(_) if !workspace.is_git => Err(PlanError::NoGitCommit {
            why: "the workspace is not a git repository".to_owned(),
        }),
        LandingTarget::Workspace(root) => {
            let root = root.clone();
            let checked = blocking(move || git_commit::may_commit(&root)).await?;
            checked.map_err(|error| PlanError::NoGitCommit {
                why: error.to_string(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn each_trouble_with_a_path_is_told_apart_and_names_the_path() {
        let io = |errno: Errno| TreeError::Io {
            what: "rename to",
            path: "a/b".to_owned(),
            source: errno.into(),
        };
        let place = |source| LandError::Staging {
            place: "/w".to_owned(),
            source,
        };
        let missing = LandError::Content {
            path: "a".to_owned(),
            source: io::Error::other("it is not there"),
        };
        let pipe = TreeError::NotAFile { path: "a".to_owned() };
        for (error, expected) in [
            (tree_error(io(Errno::ACCESS)), "permission denied: `a/b`"),
            (tree_error(io(Errno::PERM)), "permission denied: `a/b`"),
            (tree_error(io(Errno::ROFS)), "`a/b` is on a read-only file system"),
            (
                land_error(place(io(Errno::ROFS))),
                "`/w/a/b` is on a read-only file system",
            ),
            (
                land_error(LandError::Stuck {
                    source: io(Errno::NOSPC),
                }),
                "no space is left on the disk, or the quota is used up; it was needed for `a/b`",
            ),
            (
                merge_error(pipe.into()),
                "`a` is a pipe, a socket or a device, and can be neither merged nor replaced",
            ),
            (
                land_error(missing),
                "the stored content of `a` cannot be read: it is not there",
            ),
            (tree_error(io(Errno::IO)), "rename to a/b failed"),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
