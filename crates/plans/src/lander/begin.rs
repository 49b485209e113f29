//! From what is wanted to what is done: merged, written down, staged, begun, carried out.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use eventlog::{BlobId, Commit, CommitError, Write};
use kernel::ChangesetId;

use super::Lander;
use super::again::MergeAgain;
use super::place::{Place, TreeOurs, Whereabouts};
use super::telling::would;
use super::written::{self, Deeds, Written};
use crate::answers::{GitMessage, Outcome, Run};
use crate::attributes::Attributes;
use crate::contents::Contents;
use crate::desk::{Snapshot, new_stay_id};
use crate::entry::{Change, Entry};
use crate::error::PlanError;
use crate::landing::{self, Ground, Landing, LandingId, Staged, StepKind};
use crate::landings::{LandingRecord, LandingState, PlanText};
use crate::log_contents::{self, Source};
use crate::merge::{MergedAll, merge_all};
use crate::path::RelPath;
use crate::plan::{Actor, Attempt, Plan, Running};
use crate::shared::{Hold, blocking};
use crate::state;
use crate::store;
use crate::streams;
use crate::workspace::Workspace;

/// What is to land.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) what: Attempt,
    pub(super) by: Actor,
    pub(super) run: Run,
    pub(super) commit: Option<GitMessage>,
    /// The plans, as they were seen.
    pub(super) snapshots: Vec<Snapshot>,
    /// What each wants to be changed.
    pub(super) lists: Vec<Vec<Change>>,
    /// The one changeset that is taken back.
    pub(super) changeset: Option<ChangesetId>,
}

/// A landing that has begun: files may change from now on.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) landing: Landing,
    /// What was staged; `None` if that was in an earlier life.
    pub(super) staged: Option<Staged>,
    pub(super) written: Written,
    pub(super) deeds: Deeds,
    pub(super) place: Place,
    /// The stay in the sandbox of the parent, if it happens there.
    pub(super) stay: Option<String>,
    /// Paths that both sides had changed.
    pub(super) combined: HashSet<RelPath>,
    /// The desks of everybody who takes part. Nothing is written to their sandboxes that could not be recorded.
    pub(super) holds: Vec<Hold>,
}

impl Lander {
    /// Lands, or tells why not. `None` means that something has moved and that it is to be decided again.
    pub(super) async fn land(&mut self, wanted: Wanted) -> Result<Option<Outcome>, PlanError> {
        let workspace = self.workspace().await?;
        let workspace = self.settle(&workspace).await?;
        let place = self.place(&workspace, &wanted).await?;
        if wanted.commit.is_some() {
            must_have_git(&workspace, &place)?;
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
        let ended = self.carry_out(begun).await?;
        self.end(&workspace, &wanted, ended).await.map(Some)
    }

    async fn place(&self, workspace: &Workspace, wanted: &Wanted) -> Result<Place, PlanError> {
        let mut grounds = wanted.snapshots.iter().map(|snapshot| {
            let facts = &snapshot.plan.record.facts;
            (facts.workspace, facts.parent)
        });
        let first = grounds.next().ok_or(PlanError::NotTogether)?;
        if first.0 != self.id || grounds.any(|ground| ground != first) {
            return Err(PlanError::NotTogether);
        }
        match first.1 {
            None => Ok(Place::Workspace(workspace.record.root.clone())),
            Some(parent) => {
                let sandbox = self.shared.at_plan(parent, |desk| {
                    Box::pin(async move {
                        desk.catch_up().await?;
                        desk.look().await
                    })
                });
                Ok(Place::Parent(parent, sandbox.await?))
            }
        }
    }

    /// Merges. `None` if a file was saved meanwhile.
    async fn merge(
        &self,
        place: &Place,
        workspace: &Workspace,
        wanted: &Wanted,
    ) -> Result<Option<MergedAll>, PlanError> {
        let (place, lists) = (place.clone(), wanted.lists.clone());
        let contents = self.shared.contents.clone();
        let whereabouts = Whereabouts {
            bases: self.shared.bases.clone(),
            root: workspace.record.root.clone(),
            cache: self.shared.stat_cache(self.id),
            scope: self.shared.scope.clone(),
            found: OnceLock::new(),
        };
        let merged = blocking(move || {
            place.with_tree(|tree| {
                let moved = |content: BlobId| match &place {
                    Place::Workspace(_) => whereabouts.of(content),
                    Place::Parent(..) => None,
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
            Err(source) => Err(PlanError::Io {
                what: "merging".to_owned(),
                source,
            }),
        }
    }

    /// Writes the landing down, stages it, and begins it.
    async fn begin(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        place: Place,
        merged: MergedAll,
    ) -> Result<Option<Begun>, PlanError> {
        let landing = Landing {
            id: LandingId::generate(),
            effects: merged.effects,
        };
        let deeds = Deeds {
            effects: landing.effects.clone(),
            each: merged.each,
        };
        let made = merged
            .made
            .into_values()
            .map(|content| (None, Source::Bytes(content)));
        log_contents::put_all(&self.shared.log, made.collect()).await?;
        if !self.keep_old(&place, &landing, &wanted.lists).await? {
            return Ok(None);
        }
        let record = LandingRecord {
            state: LandingState::Written,
            what: wanted.what,
            by: Arc::clone(&wanted.by),
            at: self.shared.time.now(),
            workspace: self.id,
            parent: match &place {
                Place::Workspace(_) => None,
                Place::Parent(parent, _) => Some(*parent),
            },
            plans: wanted
                .snapshots
                .iter()
                .map(|snapshot| PlanText(snapshot.plan.id))
                .collect(),
            changeset: wanted.changeset,
            home: self.shared.home_id,
            effects: landing.effects.len() as u64,
        };
        let written = written::write(&self.shared.log, landing.id.as_str(), record, &deeds).await?;
        let staged = self.stage(&place, &landing).await?;
        let stay = match &place {
            Place::Workspace(_) => None,
            Place::Parent(..) => Some(new_stay_id()),
        };
        stay.iter().for_each(|stay| self.shared.stays.begin(stay));
        let mut holds = Vec::new();
        for plan in wanted
            .snapshots
            .iter()
            .map(|snapshot| snapshot.plan.id)
            .chain(match &place {
                Place::Workspace(_) => None,
                Place::Parent(parent, _) => Some(*parent),
            })
        {
            holds.push(self.shared.hold(plan).await?);
        }
        let mut begun = Begun {
            holds,
            landing,
            staged: Some(staged),
            written,
            deeds,
            place,
            stay,
            combined: merged.combined.into_iter().collect(),
        };
        let committed = self.commit_begin(workspace, wanted, &mut begun).await;
        if committed.is_err() {
            begun.stay.iter().for_each(|stay| self.shared.stays.end(stay));
        }
        match committed {
            Ok(()) => Ok(Some(begun)),
            Err(PlanError::Commit(CommitError::Conflict { .. })) => {
                self.discard(&begun).await?;
                Ok(None)
            }
            Err(error) => {
                self.discard(&begun).await?;
                Err(error)
            }
        }
    }

    /// Puts what the tree holds now into the log, so that it can be brought back. Says whether it is still that.
    async fn keep_old(
        &self,
        place: &Place,
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
            if self.shared.log.blob_info(content).await?.is_none() {
                missing.push((path, content));
            }
        }
        let sources = missing
            .iter()
            .map(|(path, _)| (None, place.source(path.clone())))
            .collect();
        let put = match log_contents::put_all(&self.shared.log, sources).await {
            // A file that is no longer there has moved since the merge.
            Err(PlanError::FileRefused { .. }) => return Ok(false),
            put => put?,
        };
        Ok(put
            .iter()
            .zip(&missing)
            .all(|((id, _), (_, expected))| id == expected))
    }

    async fn stage(&self, place: &Place, landing: &Landing) -> Result<Staged, PlanError> {
        let (shared, place, landing) = (Arc::clone(&self.shared), place.clone(), landing.clone());
        let staged = blocking(move || {
            let contents = shared.contents.clone();
            let again = MergeAgain::new(&landing.effects, &contents, &place);
            place.with_tree(|tree| {
                let staging = shared.staging();
                let ground = ground(tree, &staging, (&contents, &again), &*shared.steps.0);
                ground.stage(&landing, &shared.scope)
            })
        });
        staged.await??.map_err(|error| land_error(&error))
    }

    /// From here on, files may change.
    async fn commit_begin(
        &self,
        workspace: &Workspace,
        wanted: &Wanted,
        begun: &mut Begun,
    ) -> Result<(), PlanError> {
        let now = self.shared.time.now();
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
        if let (Place::Parent(parent, _), Some(stay)) = (&begun.place, &begun.stay) {
            let parent = store::plan(&self.shared.log, *parent).await?;
            let running = Running {
                stay: stay.clone(),
                job: None,
                actor: Arc::clone(&wanted.by),
                tool: "merge".to_owned(),
                reason: merge_reason(wanted),
                since: now,
            };
            let (mut next, said) = state::enter(parent.id, &parent.record, running, now)?;
            next.landing = Some(id.to_owned());
            writes.push(plan_write(&parent, &next, said)?);
        }
        let committed = self.shared.log.commit(Commit::all(writes)).await?;
        if let Some(committed) = committed.first() {
            begun.written.version = committed.version;
            begun.written.record = record;
        }
        self.shared.reached(StepKind::Begun);
        Ok(())
    }

    /// Carries a landing out that has begun.
    pub(super) async fn carry_out(&self, mut begun: Begun) -> Result<(Begun, landing::Outcome), PlanError> {
        let shared = Arc::clone(&self.shared);
        let done = blocking(move || {
            let (contents, staged) = (shared.contents.clone(), begun.staged.take());
            let again = MergeAgain::new(&begun.landing.effects, &contents, &begun.place);
            let outcome = begun.place.with_tree(|tree| {
                let staging = shared.staging();
                let ground = ground(tree, &staging, (&contents, &again), &*shared.steps.0);
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
            Err(error) => Err(land_error(&error)),
        }
    }

    /// Takes away what was staged and written down of a landing that was not begun.
    pub(super) async fn discard(&self, begun: &Begun) -> Result<(), PlanError> {
        let (shared, place, id) = (
            Arc::clone(&self.shared),
            begun.place.clone(),
            begun.landing.id.clone(),
        );
        let discarded = blocking(move || {
            let (contents, staging) = (shared.contents.clone(), shared.staging());
            place.with_tree(|tree| {
                let again = landing::NoRemerge;
                ground(tree, &staging, (&contents, &again), &*shared.steps.0).discard(&id)
            })
        });
        discarded.await??.map_err(|error| land_error(&error))?;
        written::forget(&self.shared.log, &begun.written).await
    }
}

/// What a child's merge is, in one line.
fn merge_reason(wanted: &Wanted) -> String {
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
    said: Vec<crate::streams::Happening>,
) -> Result<Write, PlanError> {
    Ok(Write {
        stream: streams::plan_stream(plan.id)?,
        expected: plan.version,
        head: Some(streams::plan_head(next)?),
        events: said
            .iter()
            .map(crate::streams::Happening::to_event)
            .collect::<Result<_, _>>()?,
    })
}

pub(super) fn ground<'a>(
    tree: &'a crate::tree::Tree,
    staging: &'a Path,
    (contents, remerge): (&'a dyn Contents, &'a dyn landing::Remerge),
    steps: &'a dyn landing::Steps,
) -> Ground<'a> {
    Ground {
        tree,
        staging,
        contents,
        remerge,
        steps,
    }
}

pub(super) fn land_error(error: &(dyn std::error::Error + 'static)) -> PlanError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    PlanError::Io {
        what: "carrying the changes out".to_owned(),
        source: std::io::Error::other(text),
    }
}

fn must_have_git(workspace: &Workspace, place: &Place) -> Result<(), PlanError> {
    match place {
        Place::Parent(..) => Err(PlanError::NoGitCommit {
            why: "the plan is merged into its parent, not into the workspace".to_owned(),
        }),
        Place::Workspace(_) if !workspace.is_git => Err(PlanError::NoGitCommit {
            why: "the workspace is no git repository".to_owned(),
        }),
        Place::Workspace(_) => Ok(()),
    }
}
