//! The end of a landing: the outcome is committed, and then the staged files are removed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use eventlog::{Commit, UnixMs};
use protocol::{OutcomeKind, PlanState};

use super::LandingQueue;
use super::begin::{ActiveLanding, tree_error};
use super::outcome::outcome_paths;
use super::recover::Recovered;
use super::rescue::{rescued_events, rescued_note};
use super::stored;
use crate::inner::blocking;
use crate::landing::{LandingEnd, Leftover, StepKind, WhyRolledBack};
use crate::landings::LandingState;
use crate::log_contents::{self, Source};
use crate::overlaps::Tell;
use crate::{
    Attempt, Conflict, Effect, Entry, Landed, LandingOutcome, Plan, PlanError, PlanEvent, PlanRecord,
    Refused, RelPath, Rescued, Workspace, git_commit, state, store,
};

/// The plans of a finished landing, and what it had to keep.
struct EndReport {
    plans: Vec<Plan>,
    rescued: Vec<Rescued>,
}

impl LandingQueue {
    /// Ends a landing with a known outcome, and returns the answer.
    pub(super) async fn end(
        &self,
        workspace: &Workspace,
        begun: ActiveLanding,
        outcome: LandingEnd,
    ) -> Result<LandingOutcome, PlanError> {
        let combined = begun.combined.clone();
        match outcome {
            LandingEnd::Landed { effects, kept } => {
                let message = begun.stored.record.commit.clone();
                let ended = self.end_landed(begun, &effects, kept).await?;
                let mut answer = LandingOutcome {
                    paths: outcome_paths(&effects, &combined),
                    notes: ended.rescued.iter().map(rescued_note).collect(),
                    ..LandingOutcome::new(OutcomeKind::Done, ended.plans)
                };
                if let Some(message) = message {
                    self.commit_to_git(workspace, message, &effects, &mut answer)
                        .await?;
                }
                Ok(answer)
            }
            LandingEnd::TakenBack { why, kept } => {
                let conflicts = conflicts(&why);
                let ended = self.end_rolled_back(begun, conflicts.clone(), kept).await?;
                if let WhyRolledBack::Failed(error) = why {
                    return Err(tree_error(error));
                }
                Ok(LandingOutcome {
                    conflicts,
                    notes: ended.rescued.iter().map(rescued_note).collect(),
                    ..LandingOutcome::new(OutcomeKind::Conflicted, ended.plans)
                })
            }
        }
    }

    /// Ends a landing that an earlier daemon left, and describes its outcome.
    pub(super) async fn end_recovered(
        &self,
        begun: ActiveLanding,
        outcome: LandingEnd,
    ) -> Result<Recovered, PlanError> {
        let (state, ended) = match outcome {
            LandingEnd::Landed { effects, kept } => {
                (LandingState::Done, self.end_landed(begun, &effects, kept).await?)
            }
            LandingEnd::TakenBack { why, kept } => {
                let ended = self.end_rolled_back(begun, conflicts(&why), kept).await?;
                (LandingState::TakenBack, ended)
            }
        };
        Ok(Recovered {
            state,
            rescued: ended.rescued,
        })
    }

    async fn end_landed(
        &self,
        mut begun: ActiveLanding,
        effects: &[Effect],
        kept: Vec<Leftover>,
    ) -> Result<EndReport, PlanError> {
        self.correct(&mut begun, effects).await?;
        let record = begun.stored.record.clone();
        let (state, what) = match (record.what, record.changeset) {
            (Attempt::Apply | Attempt::Refresh, _) => (PlanState::Applied, "applied"),
            // The rest of the plan is still in the workspace.
            (Attempt::Undo, Some(_)) => (PlanState::Applied, "a changeset taken back"),
            (Attempt::Undo, None) => (PlanState::Undone, "taken back"),
        };
        let count = outcome_paths(effects, &HashSet::new()).len();
        let s = if count == 1 { "" } else { "s" };
        let text = format!("{what}: {count} file{s}");
        let landing = begun.landing.id.to_string();
        let step = |number, plan: &Plan, now| {
            let landed = match (&record.changeset, &plan.record.landed) {
                // An undo of the plan reverts the effects of the whole apply.
                (Some(_), Some(landed)) => landed.clone(),
                _ => Landed {
                    landing: landing.clone(),
                    number,
                    commit: None,
                    commit_wanted: record.commit.clone(),
                },
            };
            let text = text.clone();
            state::landed(&plan.record, record.what, &record.by, state, landed, text, now)
        };
        self.end_as(begun, LandingState::Done, kept, step).await
    }

    async fn end_rolled_back(
        &self,
        begun: ActiveLanding,
        conflicts: Vec<Conflict>,
        kept: Vec<Leftover>,
    ) -> Result<EndReport, PlanError> {
        let record = begun.stored.record.clone();
        let step = |_, plan: &Plan, now| {
            let refused = Refused {
                what: record.what,
                by: Arc::clone(&record.by),
                at: now,
                conflicts: conflicts.clone(),
            };
            state::refused(&plan.record, refused, now)
        };
        self.end_as(begun, LandingState::TakenBack, kept, step).await
    }

    /// Keeps what can't be put in the tree, commits the end, and cleans up.
    async fn end_as(
        &self,
        mut begun: ActiveLanding,
        end: LandingState,
        kept: Vec<Leftover>,
        step: impl Fn(u32, &Plan, UnixMs) -> (PlanRecord, Vec<PlanEvent>) + Send + Sync,
    ) -> Result<EndReport, PlanError> {
        let mut rescued = self.save_kept(&begun, &kept).await?;
        let of_rescue = rescued_events(&begun, &rescued);
        let with_rescue = |number, plan: &Plan, now| {
            let (next, mut events) = step(number, plan, now);
            events.extend(of_rescue.clone());
            (next, events)
        };
        let plans = self.commit_end(&begun, end, with_rescue).await?;
        begun.holds.clear();
        rescued.extend(self.finish(&begun, kept).await?);
        Ok(EndReport { plans, rescued })
    }

    /// Records effects that were carried out differently than planned.
    async fn correct(&self, begun: &mut ActiveLanding, effects: &[Effect]) -> Result<(), PlanError> {
        let planned = begun.done.effects.iter().map(|effect| (&effect.path, effect));
        let planned: HashMap<&RelPath, &Effect> = planned.collect();
        let other: Vec<Effect> = effects
            .iter()
            .filter(|effect| planned.get(&effect.path) != Some(effect))
            .cloned()
            .collect();
        if other.is_empty() {
            return Ok(());
        }
        self.keep_contents_of(begun, &other).await?;
        stored::correct(&self.inner.log, &mut begun.stored, None, &other).await?;
        if begun.done.each.len() > 1 {
            for effect in &other {
                let touches = |effects: &Vec<Effect>| effects.iter().any(|known| known.path == effect.path);
                if let Some(plan) = begun.done.each.iter().rposition(touches) {
                    let plan = u32::try_from(plan).unwrap_or(u32::MAX);
                    stored::correct(
                        &self.inner.log,
                        &mut begun.stored,
                        Some(plan),
                        std::slice::from_ref(effect),
                    )
                    .await?;
                }
            }
        }
        Ok(())
    }

    /// Stores contents in the log that were merged during the landing, or saved by others before.
    async fn keep_contents_of(&self, begun: &ActiveLanding, effects: &[Effect]) -> Result<(), PlanError> {
        let files: Vec<RelPath> = effects
            .iter()
            .filter(|effect| effect.after.as_ref().and_then(Entry::content).is_some())
            .map(|effect| effect.path.clone())
            .collect();
        // Opens only as many files at a time as are stored together.
        for some in files.chunks(log_contents::PUT_TOGETHER) {
            let (target, paths) = (begun.target.clone(), some.to_vec());
            let opened = blocking(move || {
                target.with_tree(|tree| {
                    let open = |path| tree.open_file(path).ok();
                    paths.iter().filter_map(open).collect::<Vec<_>>()
                })
            });
            let sources = opened.await??.into_iter().map(|file| {
                let open = move || Ok(file);
                (None, Source::File(Box::new(open)))
            });
            log_contents::put_all(&self.inner.log, sources.collect()).await?;
        }
        Ok(())
    }

    /// One commit for the landing, the workspace, the plans and the parent.
    async fn commit_end(
        &self,
        begun: &ActiveLanding,
        end: LandingState,
        step: impl Fn(u32, &Plan, UnixMs) -> (PlanRecord, Vec<PlanEvent>),
    ) -> Result<Vec<Plan>, PlanError> {
        self.inner.reached(StepKind::Ending);
        let now = self.inner.time.now();
        let mut landing = begun.stored.clone();
        landing.record.state = end;
        // During the landing, nothing else writes these: each of them records that it takes part.
        let workspace = crate::workspaces::get(&self.inner, self.id).await?;
        let mut writes = vec![landing.write(&[])?, workspace.with_landing(None).write(&[])?];
        let mut plans = Vec::new();
        for (number, id) in (0..).zip(&landing.record.plans) {
            let mut plan = store::plan(&self.inner.log, *id).await?;
            let (next, events) = step(number, &plan, now);
            plan.record = next;
            writes.push(plan.write(&events)?);
            plans.push(plan);
        }
        if let Some(parent) = begun.target.parent() {
            let mut parent = store::plan(&self.inner.log, parent).await?;
            parent.record.landing = None;
            parent.record.changed_at = now;
            let merged = (end, landing.record.what) == (LandingState::Done, Attempt::Apply);
            let event = merged.then(|| PlanEvent::new("child_merged", &landing.record.by, ""));
            writes.push(parent.write(event.as_slice())?);
        }
        let committed = self.inner.log.commit(Commit::all(writes)).await?;
        self.inner.reached(StepKind::Ended);
        for (plan, made) in plans.iter_mut().zip(committed.into_iter().skip(2)) {
            plan.committed(made);
        }
        Ok(plans)
    }

    /// After the commit: the plans' workers read the log again, the parent records its changes, and the staged files
    /// are removed. Returns what had to be kept of those.
    pub(super) async fn finish(
        &self,
        begun: &ActiveLanding,
        kept: Vec<Leftover>,
    ) -> Result<Vec<Rescued>, PlanError> {
        for plan in &begun.stored.record.plans {
            // Whether it still overlaps with other plans may have changed.
            let republish = self
                .inner
                .at_plan(*plan, |worker| Box::pin(worker.republish(Tell::Both)));
            republish.await?;
        }
        if let (Some(parent), Some(run_id)) = (begun.target.parent(), begun.run_id.clone()) {
            let recorded = self.inner.at_plan(parent, move |worker| {
                Box::pin(async move {
                    worker.snapshot().await?;
                    worker.end_command(&run_id).await
                })
            });
            recorded.await?;
        }
        self.clean(begun, kept).await
    }

    /// Makes a git commit of what was applied. If that fails although it was possible before, the apply stands and the
    /// answer says why there is no commit.
    async fn commit_to_git(
        &self,
        workspace: &Workspace,
        message: String,
        effects: &[Effect],
        answer: &mut LandingOutcome,
    ) -> Result<(), PlanError> {
        let is_file = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| !entry.is_directory());
        let paths = effects
            .iter()
            .filter(|effect| is_file(&effect.before) || is_file(&effect.after));
        let paths: Vec<RelPath> = paths.map(|effect| effect.path.clone()).collect();
        let root = workspace.record.root.clone();
        let made = blocking(move || git_commit::commit_paths(&root, &paths, &message, None)).await?;
        let mut id = None;
        match made {
            Ok(commit) => {
                let staged = commit.still_staged.iter();
                answer
                    .notes
                    .extend(staged.map(|path| format!("what you had staged of `{path}` is still staged")));
                answer.notes.extend(
                    commit
                        .index_left
                        .map(|why| format!("your index was not brought up to date: {why}")),
                );
                id = Some(commit.id);
            }
            // What was applied is already in HEAD.
            Err(error @ git_commit::GitCommitError::Nothing) => {
                answer.notes.push(format!("no git commit was made: {error}"));
            }
            Err(error) => answer.commit_failed = Some(error.to_string()),
        }
        for plan in &mut answer.plans {
            *plan = self.keep_commit(plan.id, id.clone()).await?;
        }
        answer.commit = id;
        Ok(())
    }

    /// Makes the git commits of applied plans that an earlier daemon didn't get to. Returns a sentence about each.
    pub(crate) async fn commit_left(&mut self, plans: Vec<Plan>) -> Result<Vec<String>, PlanError> {
        let workspace = self.workspace().await?;
        let mut notes = Vec::new();
        let mut by_landing: BTreeMap<String, (String, Vec<Plan>)> = BTreeMap::new();
        for plan in plans {
            let Some(landed) = plan.record.landed.clone() else {
                continue;
            };
            let Some(message) = landed.commit_wanted else {
                continue;
            };
            let (_, together) = by_landing.entry(landed.landing).or_insert((message, Vec::new()));
            together.push(plan);
        }
        for (landing, (message, plans)) in by_landing {
            let landing = stored::read(&self.inner.log, &landing).await?;
            let done = stored::effects(&self.inner.log, &landing).await?;
            let mut answer = LandingOutcome::new(OutcomeKind::Done, plans);
            self.commit_to_git(&workspace, message, &done.effects, &mut answer)
                .await?;
            let root = workspace.record.root.display();
            notes.push(match (&answer.commit, answer.commit_failed) {
                (Some(commit), _) => format!("what was applied to {root} is committed now, as {commit}"),
                (None, Some(why)) => {
                    format!("what was applied to {root} is not committed; commit it with `git commit`: {why}")
                }
                (None, None) => format!("what was applied to {root} was committed before"),
            });
        }
        Ok(notes)
    }

    /// Records which commit was made of a plan, or that there won't be one.
    async fn keep_commit(&self, plan: protocol::PlanId, commit: Option<String>) -> Result<Plan, PlanError> {
        let keep = self.inner.change_plan(plan, move |_, record, now| {
            let mut next = record.clone();
            next.changed_at = now;
            if let Some(landed) = &mut next.landed {
                landed.commit = commit.clone().or(landed.commit.take());
                landed.commit_wanted = None;
            }
            Ok((next, Vec::new()))
        });
        keep.await
    }
}

/// The conflicts of a landing that was rolled back.
fn conflicts(why: &WhyRolledBack) -> Vec<Conflict> {
    match why {
        WhyRolledBack::Conflicts(conflicts) => conflicts.clone(),
        WhyRolledBack::Failed(_) | WhyRolledBack::NeverStaged | WhyRolledBack::Unknown => Vec::new(),
    }
}
