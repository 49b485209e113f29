//! From what is wanted to what is done: merged, written down, staged, begun, carried out.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use eventlog::{BlobId, Commit, CommitError, Write};
use protocol::{ChangesetId, CommitPlans};
use rustix::io::Errno;

use super::LandingQueue;
use super::outcome::would;
use super::remerge::LandingRemerge;
use super::stored::{self, KnownAttributes, LandingEffects, StoredLanding};
use super::target::{ContentFinder, LandingTarget, TreeOurs};
use crate::attributes::Attributes;
use crate::inner::{Hold, blocking};
use crate::landing::{self, LandError, Landing, LandingEnd, LandingId, LandingSite, Staged, StepKind};
use crate::landings::{LandingRecord, LandingState};
use crate::log_contents::{self, Source};
use crate::plan_worker::{Snapshot, new_run_id};
use crate::{
    Actor, Attempt, Change, Contents, Effect, Entry, FileAttributes, LandingOutcome, MergedAll, Plan,
    PlanError, RelPath, Run, Running, TreeError, Workspace, git_commit, merge_all, state, store, streams,
};

#[derive(Debug)]
pub(super) struct LandingRequest {
    pub(super) what: Attempt,
    pub(super) by: Actor,
    pub(super) run: Run,
    pub(super) commit: Option<CommitPlans>,
    /// The plans, as they were seen.
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) lists: Vec<Vec<Change>>,
    /// The one changeset that is taken back.
    pub(super) changeset: Option<ChangesetId>,
    /// What files had beside their content that come back.
    pub(super) attributes: KnownAttributes,
}

/// A landing that has begun: files may change from now on.
#[derive(Debug)]
pub(super) struct ActiveLanding {
    pub(super) landing: Landing,
    /// What was staged; `None` if that was in an earlier life.
    pub(super) staged: Option<Staged>,
    pub(super) written: StoredLanding,
    pub(super) done: LandingEffects,
    pub(super) place: LandingTarget,
    /// The command run in the sandbox of the parent, if it happens there.
    pub(super) run_id: Option<String>,
    /// Paths that both sides had changed.
    pub(super) combined: HashSet<RelPath>,
    /// Where the workspace is, for people.
    pub(super) root: String,
    /// The workers of everybody who takes part. Nothing is written to their sandboxes that could not be recorded.
    pub(super) holds: Vec<Hold>,
}

impl LandingQueue {
    /// Lands, or tells why not. `None` means that something has moved and that it is to be decided again.
    pub(super) async fn land(&mut self, wanted: LandingRequest) -> Result<Option<LandingOutcome>, PlanError> {
        let workspace = self.workspace().await?;
        let workspace = self.settle(&workspace).await?;
        let place = self.place(&workspace, &wanted).await?;
        if wanted.commit.is_some() {
            must_have_git(&workspace, &place).await?;
        }
        let Some(merged) = self.merge(&place, &workspace, &wanted).await? else {
            return Ok(None);
        };
        if !merged.conflicts.is_empty() {
            return self.refuse(&wanted, merged).await.map(Some);
        }
        if wanted.run == Run::Dry {
            return Ok(Some(would(&wanted, merged)));
        }
        let Some(begun) = self.begin(&workspace, &wanted, place, merged).await? else {
            return Ok(None);
        };
        let id = begun.landing.id.clone();
        let ended = match self.carry_out(begun).await {
            Ok(ended) => ended,
            Err(error) => return Err(self.stuck(&workspace, id.as_str(), error).await),
        };
        self.end(&workspace, ended).await.map(Some)
    }

    async fn place(
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
                        worker.look().await
                    })
                });
                Ok(LandingTarget::Parent(parent, sandbox.await?))
            }
        }
    }

    /// Merges. `None` if a file was saved meanwhile.
    async fn merge(
        &self,
        place: &LandingTarget,
        workspace: &Workspace,
        wanted: &LandingRequest,
    ) -> Result<Option<MergedAll>, PlanError> {
        let (place, lists) = (place.clone(), wanted.lists.clone());
        let contents = self.inner.contents.clone();
        let whereabouts = ContentFinder {
            bases: self.inner.bases.clone(),
            root: workspace.record.root.clone(),
            cache: self.inner.stat_cache(self.id),
            scope: self.inner.scope.clone(),
            found: OnceLock::new(),
        };
        let merged = blocking(move || {
            place.with_tree(|tree| {
                let moved = |content: BlobId| match &place {
                    LandingTarget::Workspace(_) => whereabouts.of(content),
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

    /// Writes the landing down, stages it, and begins it.
    async fn begin(
        &self,
        workspace: &Workspace,
        wanted: &LandingRequest,
        place: LandingTarget,
        merged: MergedAll,
    ) -> Result<Option<ActiveLanding>, PlanError> {
        let (had, given) = self.attributes(&place, wanted, &merged.effects).await?;
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
        if !self.keep_old(&place, &landing, &wanted.lists).await? {
            return Ok(None);
        }
        let record = LandingRecord {
            state: LandingState::Written,
            what: wanted.what,
            by: Arc::clone(&wanted.by),
            at: self.inner.time.now(),
            workspace: self.id,
            parent: match &place {
                LandingTarget::Workspace(_) => None,
                LandingTarget::Parent(parent, _) => Some(*parent),
            },
            plans: wanted.snapshots.iter().map(|snapshot| snapshot.plan.id).collect(),
            changeset: wanted.changeset,
            commit: wanted.commit.as_ref().map(|commit| {
                let title = |snapshot: &Snapshot| snapshot.plan.record.facts.title.clone();
                let titles = || wanted.snapshots.iter().map(title).collect::<Vec<_>>().join("\n");
                commit.message.clone().unwrap_or_else(titles)
            }),
            home: self.inner.home_id,
            effects: landing.effects.len() as u64,
        };
        let written = stored::write(&self.inner.log, landing.id.as_str(), record, &done).await?;
        let staged = self.stage(&place, &landing).await?;
        let run_id = match &place {
            LandingTarget::Workspace(_) => None,
            LandingTarget::Parent(..) => Some(new_run_id()),
        };
        run_id
            .iter()
            .for_each(|run_id| self.inner.command_runs.begin(run_id));
        let mut holds = Vec::new();
        for plan in wanted
            .snapshots
            .iter()
            .map(|snapshot| snapshot.plan.id)
            .chain(match &place {
                LandingTarget::Workspace(_) => None,
                LandingTarget::Parent(parent, _) => Some(*parent),
            })
        {
            holds.push(self.inner.hold(plan).await?);
        }
        let mut begun = ActiveLanding {
            root: workspace.record.root.display().to_string(),
            holds,
            landing,
            staged: Some(staged),
            written,
            done,
            place,
            run_id,
            combined: merged.combined.into_iter().collect(),
        };
        let committed = self.commit_begin(workspace, wanted, &mut begun).await;
        if committed.is_err() {
            begun
                .run_id
                .iter()
                .for_each(|run_id| self.inner.command_runs.end(run_id));
        }
        match committed {
            Ok(()) => Ok(Some(begun)),
            Err(PlanError::Commit(CommitError::Conflict { .. })) => {
                self.discard(&begun).await?;
                Ok(None)
            }
            // It may have begun. Whoever comes next to this workspace brings it to its end.
            Err(error) if error.may_be_done() => Err(error),
            Err(error) => {
                self.discard(&begun).await?;
                Err(error)
            }
        }
    }

    /// What files have beside their content that go, and what those are given that come.
    async fn attributes(
        &self,
        place: &LandingTarget,
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
        let place = place.clone();
        let had = blocking(move || {
            place.with_tree(|tree| {
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
        // What is renamed takes along what it has.
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

    /// Puts what the tree holds now into the log, so that it can be brought back. Says whether it is still that.
    async fn keep_old(
        &self,
        place: &LandingTarget,
        landing: &Landing,
        lists: &[Vec<Change>],
    ) -> Result<bool, PlanError> {
        // What a plan has found and what it has made is in the log: its records refer to it. Where nobody else has
        // changed the tree, that is everything, and the log need not be asked for each.
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
            .map(|(path, _)| (None, place.source(path.clone())))
            .collect();
        let put = match log_contents::put_all(&self.inner.log, sources).await {
            // A file that is no longer there has moved since the merge.
            Err(PlanError::FileRefused { .. }) => return Ok(false),
            put => put?,
        };
        Ok(put
            .iter()
            .zip(&missing)
            .all(|((id, _), (_, expected))| id == expected))
    }

    async fn stage(&self, place: &LandingTarget, landing: &Landing) -> Result<Staged, PlanError> {
        let (inner, place, landing) = (Arc::clone(&self.inner), place.clone(), landing.clone());
        let staged = blocking(move || {
            let contents = inner.contents.clone();
            let again = LandingRemerge::new(&landing.effects, &contents, &place);
            place.with_tree(|tree| {
                let staging = inner.staging();
                let ground = ground(tree, &staging, (&contents, &again), &*inner.steps.0);
                ground.stage(&landing, &inner.scope)
            })
        });
        staged.await??.map_err(land_error)
    }

    /// From here on, files may change.
    async fn commit_begin(
        &self,
        workspace: &Workspace,
        wanted: &LandingRequest,
        begun: &mut ActiveLanding,
    ) -> Result<(), PlanError> {
        let now = self.inner.time.now();
        let id = begun.landing.id.as_str();
        let mut record = begun.written.record.clone();
        record.state = LandingState::Begun;
        let mut writes = vec![Write {
            stream: streams::landing_stream(id)?,
            expected: begun.written.version,
            head: Some(streams::landing_head(&record)?),
            events: Vec::new(),
        }];
        let mut held = workspace.record.clone();
        held.landing = Some(id.to_owned());
        writes.push(Write {
            stream: streams::workspace_stream(self.id)?,
            expected: workspace.version,
            head: Some(streams::workspace_head(&held)?),
            events: Vec::new(),
        });
        for Snapshot { plan, .. } in &wanted.snapshots {
            let next = state::begin_landing(plan.id, &plan.record, wanted.what, id, now)?;
            writes.push(plan_write(plan, &next, Vec::new())?);
        }
        if let (LandingTarget::Parent(parent, _), Some(run_id)) = (&begun.place, &begun.run_id) {
            let parent = store::plan(&self.inner.log, *parent).await?;
            let running = Running {
                id: run_id.clone(),
                job: None,
                actor: Arc::clone(&wanted.by),
                tool: "merge".to_owned(),
                reason: merge_reason(wanted),
                since: now,
            };
            let (mut next, events) = state::command_started(parent.id, &parent.record, running, now)?;
            next.landing = Some(id.to_owned());
            writes.push(plan_write(&parent, &next, events)?);
        }
        let committed = self.inner.log.commit(Commit::all(writes)).await?;
        if let Some(committed) = committed.first() {
            begun.written.version = committed.version;
            begun.written.record = record;
        }
        self.inner.reached(StepKind::Begun);
        Ok(())
    }

    pub(super) async fn carry_out(
        &self,
        mut begun: ActiveLanding,
    ) -> Result<(ActiveLanding, LandingEnd), PlanError> {
        let inner = Arc::clone(&self.inner);
        let done = blocking(move || {
            let (contents, staged) = (inner.contents.clone(), begun.staged.take());
            let again = LandingRemerge::new(&begun.landing.effects, &contents, &begun.place);
            let outcome = begun.place.with_tree(|tree| {
                let staging = inner.staging();
                let ground = ground(tree, &staging, (&contents, &again), &*inner.steps.0);
                match staged {
                    Some(staged) => ground.carry_out(staged),
                    None => ground.recover(&begun.landing),
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

    /// Takes away what was staged and written down of a landing that was not begun.
    pub(super) async fn discard(&self, begun: &ActiveLanding) -> Result<(), PlanError> {
        self.remove_staged(begun).await?;
        stored::forget(&self.inner.log, &begun.written).await
    }

    pub(super) async fn remove_staged(&self, begun: &ActiveLanding) -> Result<(), PlanError> {
        let (inner, place, id) = (
            Arc::clone(&self.inner),
            begun.place.clone(),
            begun.landing.id.clone(),
        );
        let discarded = blocking(move || {
            let (contents, staging) = (inner.contents.clone(), inner.staging());
            place.with_tree(|tree| {
                let again = landing::NoRemerge;
                ground(tree, &staging, (&contents, &again), &*inner.steps.0).discard(&id)
            })
        });
        discarded.await??.map_err(land_error)
    }
}

/// What a child's merge is, in one line.
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

pub(super) fn plan_write(
    plan: &Plan,
    next: &crate::plan::Record,
    events: Vec<crate::streams::PlanEvent>,
) -> Result<Write, PlanError> {
    Ok(Write {
        stream: streams::plan_stream(plan.id)?,
        expected: plan.version,
        head: Some(streams::plan_head(next)?),
        events: events
            .iter()
            .map(crate::streams::PlanEvent::to_event)
            .collect::<Result<_, _>>()?,
    })
}

pub(super) fn ground<'a>(
    tree: &'a crate::tree::Tree,
    staging: &'a Path,
    (contents, remerge): (&'a dyn Contents, &'a dyn landing::Remerge),
    steps: &'a dyn landing::Steps,
) -> LandingSite<'a> {
    LandingSite {
        tree,
        staging,
        contents,
        remerge,
        steps,
    }
}

/// Why a landing was not carried out, for whoever asked for it.
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
                source: std::io::Error::other(in_one_line(&error)),
            }
        }
    }
}

/// Why something could not be done to a path of the workspace.
pub(super) fn tree_error(error: TreeError) -> PlanError {
    match error {
        TreeError::Io { what, path, source } => of_system(what, path, source),
        TreeError::Root { path, source } => of_system("open", path, source),
        TreeError::Source { path, source } => content_error(path, &source),
        TreeError::NotAFile { path } => PlanError::SpecialFile { path },
        error => PlanError::Io {
            what: "carrying the changes out".to_owned(),
            source: std::io::Error::other(in_one_line(&error)),
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
        why: in_one_line(source),
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

pub(super) fn in_one_line(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

/// Refuses, before anything is changed, what could not be committed afterwards.
async fn must_have_git(workspace: &Workspace, place: &LandingTarget) -> Result<(), PlanError> {
    match place {
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
