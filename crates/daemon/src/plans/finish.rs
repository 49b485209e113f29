//! Finishes a plan when a command or a turn in it has ended: seals, applies or discards it.
//!
//! This is a job. For a command, it is submitted with the command's own job; for a turn, by the commit that ends the
//! turn. So it runs no matter who is connected, and the next daemon does what this one couldn't. It acts on the current
//! state of the plan: a plan that was applied before the daemon died isn't applied again.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::{LogError, Sequence, Write};
use jobs::{
    AttemptOutcome, AttemptVerdict, Handler, Job, Jobs, NewJob, Output, OutputItem, Pool, Priority,
    Requested, RetryPolicy, State, Work,
};
use kernel::Scope;
use plans::{Actor, ApplyRequest, Plan, PlanError, Repair, Run, Unapplied};
use protocol::{
    CheckState, FinishOutcome, FinishThen, HomeId, JobChannel, JobId, JobIfInterrupted, OutcomeKind,
    PlanFinish, PlanId, PlanState, TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sessions::{FinishError, FinishOrder, PlanFinisher};

use super::checks::{CheckError, Which, run_checks, settle_plan};
use super::jobs_slot::Watch;
use super::killing::KillPoints;
use super::wire::path_to_wire;

pub(crate) const FINISH: &str = "finish";

/// How often to retry while the log doesn't accept the result: for about a quarter of an hour.
const RETRIES: u16 = 20;
/// How many of the applied paths to store: as many as people are shown.
const KEPT_PATHS: usize = 30;
/// How many notes of an apply to store.
const KEPT_NOTES: usize = 20;
/// The longest note to store, in characters.
const NOTE_CHARACTERS: usize = 300;
/// How much of the command's title to include in the title of the job.
const TITLE_CHARACTERS: usize = 180;

/// What to do, as stored in the job. It is in the log, so fields can only be added.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct FinishPayload {
    plan: String,
    #[serde(flatten)]
    order: protocol::FinishPlan,
    /// The number of entries in the plan before the command ran.
    entries: u64,
    files: u64,
    /// The turn that ended, if it wasn't a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
}

/// The job that finishes a plan after the job of a command in it.
pub(crate) fn follower(
    plan: &Plan,
    order: protocol::FinishPlan,
    (by, title): (&str, &str),
    home: HomeId,
) -> NewJob {
    let payload = FinishPayload {
        plan: plan.id.to_string(),
        order,
        entries: plan.record.entries,
        files: plan.record.files,
        turn: None,
    };
    new_job(&payload, by, title, home)
}

/// Finishes the plans of turns.
#[derive(Clone, Debug)]
pub(crate) struct TurnFinisher {
    pub(crate) jobs: Jobs,
    pub(crate) home: HomeId,
}

#[async_trait]
impl PlanFinisher for TurnFinisher {
    fn submission(&self, order: &FinishOrder) -> Result<(JobId, Write), FinishError> {
        let payload = FinishPayload {
            plan: order.plan.to_string(),
            order: order.finish.clone(),
            entries: 0,
            files: 0,
            turn: Some(order.turn),
        };
        let new = new_job(&payload, &order.by, &order.title, self.home);
        let id = new.id;
        match self.jobs.submission(new) {
            Ok(write) => Ok((id, write)),
            Err(error) => Err(FinishError {
                text: error.to_string(),
            }),
        }
    }

    async fn start(&self, job: JobId) -> Result<(), LogError> {
        self.jobs.start_submitted(job).await
    }
}

fn new_job(payload: &FinishPayload, by: &str, title: &str, home: HomeId) -> NewJob {
    let title: String = title.chars().take(TITLE_CHARACTERS).collect();
    // A struct of strings and numbers always serializes.
    let payload = json!(payload).to_string().into_bytes();
    let mut new = NewJob::new(FINISH, &format!("finish: {title}"), payload, by);
    new.facts.home = Some(home.to_string().into());
    new.facts.priority = Priority::HIGHEST;
    new.facts.pool = Pool::Foreground;
    new.facts.if_interrupted = JobIfInterrupted::Repeat;
    new.facts.retry = RetryPolicy {
        max_retries: RETRIES,
        ..RetryPolicy::default()
    };
    new
}

/// The outcome for the plan, from the result of the job that finished it.
pub(crate) fn finished_of(result: &serde_json::Value) -> Option<PlanFinish> {
    PlanFinish::deserialize(result.get(FINISH)?).ok()
}

#[derive(Debug)]
pub(crate) struct FinishHandler {
    watch: Watch,
    home_id: HomeId,
    kill: KillPoints,
}

impl FinishHandler {
    pub(crate) fn new(watch: Watch, home_id: HomeId, kill: KillPoints) -> Self {
        Self { watch, home_id, kill }
    }
}

#[async_trait]
impl Handler for FinishHandler {
    async fn run(&self, work: Work) -> AttemptOutcome {
        self.kill.reached("Finishing");
        let Ok(payload) = serde_json::from_slice::<FinishPayload>(&work.payload) else {
            return stopped(
                AttemptVerdict::FailedPermanently,
                "what is to be done cannot be read",
            );
        };
        let (Some(jobs), Ok(plan)) = (self.watch.jobs(), payload.plan.parse::<PlanId>()) else {
            return stopped(AttemptVerdict::Stopped, "the daemon is stopping");
        };
        let finishing = Finishing {
            watch: &self.watch,
            home_id: self.home_id,
            jobs,
            plan,
            command: work.after.first().copied(),
            by: Actor::from(work.submitted_by.as_str()),
            payload,
            scope: work.scope,
            output: work.output,
        };
        match finishing.run().await {
            Ok(finish) => ended(&finish),
            Err(Unfinished::Stopped) => stopped(AttemptVerdict::Stopped, "it was stopped"),
            Err(Unfinished::Plan(PlanError::Closing)) => {
                stopped(AttemptVerdict::Stopped, "the daemon is stopping")
            }
            Err(Unfinished::Plan(error)) => stopped(AttemptVerdict::Failed, &chain(&error)),
        }
    }
}

/// Why the plan couldn't be finished.
#[derive(Debug)]
enum Unfinished {
    Stopped,
    Plan(PlanError),
}

impl From<PlanError> for Unfinished {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

/// What to do with a plan, given its state and the end of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Decision {
    /// It is already applied, undone or discarded.
    Nothing(PlanState),
    /// The command changed nothing.
    Unchanged,
    /// The command's changes couldn't be recorded.
    NotRecorded,
    /// The command changed only files that a plan doesn't carry.
    NotCarried,
    Keep,
    Seal,
    Apply,
    /// It is sealed but not applied, for this reason.
    NotApplied(&'static str),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CommandEnd {
    Succeeded,
    /// It succeeded, but the client that sent its input disconnected before the end.
    InputCut,
    NotSucceeded,
}

impl CommandEnd {
    fn of(job: Option<&Job>) -> Self {
        match job.map(|job| &job.record.state) {
            Some(State::Succeeded { ending }) if ending.result["input_cut"] == true => Self::InputCut,
            Some(State::Succeeded { .. }) => Self::Succeeded,
            _ => Self::NotSucceeded,
        }
    }
}

fn decide(payload: &FinishPayload, plan: &Plan, command: CommandEnd) -> Decision {
    let record = &plan.record;
    if record.state.is_over() {
        return Decision::Nothing(record.state);
    }
    if record.unrecorded.is_some() {
        return Decision::NotRecorded;
    }
    let is_unchanged = match payload.turn {
        // The session's plan is finished as a whole, including the changes of earlier turns.
        Some(_) => record.files == 0,
        None => record.entries == payload.entries && record.files == payload.files,
    };
    if is_unchanged {
        let was_opened_for_it = payload.order.discard_unchanged || payload.turn.is_some();
        let is_kept = was_opened_for_it && !record.uncarried_notes(plan.id).is_empty();
        return if is_kept {
            Decision::NotCarried
        } else {
            Decision::Unchanged
        };
    }
    match (payload.order.then, command) {
        (FinishThen::Keep, _) => Decision::Keep,
        (FinishThen::Seal, _) => Decision::Seal,
        (FinishThen::Apply, CommandEnd::Succeeded) => Decision::Apply,
        (FinishThen::Apply, CommandEnd::InputCut) => Decision::NotApplied("input_cut"),
        (FinishThen::Apply, CommandEnd::NotSucceeded) => Decision::NotApplied("command_failed"),
    }
}

struct Finishing<'a> {
    watch: &'a Watch,
    home_id: HomeId,
    jobs: Jobs,
    plan: PlanId,
    command: Option<JobId>,
    by: Actor,
    payload: FinishPayload,
    scope: Scope,
    output: Output,
}

impl Finishing<'_> {
    async fn run(&self) -> Result<PlanFinish, Unfinished> {
        let command = match self.command {
            Some(job) => self.jobs.get(job).await.map_err(PlanError::from)?,
            None => None,
        };
        let plan = self.settled(self.left().await?).await?;
        let end = match self.payload.turn {
            // This job exists only for turns that are done.
            Some(_) => CommandEnd::Succeeded,
            None => CommandEnd::of(command.as_ref()),
        };
        match decide(&self.payload, &plan, end) {
            Decision::Nothing(state) => Ok(self.over(&plan, state)),
            Decision::Unchanged => self.unchanged().await,
            Decision::NotRecorded => Ok(PlanFinish {
                why: Some("not_recorded".to_owned()),
                text: plan.record.unrecorded.map(|failed| failed.why),
                ..finish(FinishOutcome::Open)
            }),
            Decision::NotCarried => Ok(PlanFinish {
                why: (self.payload.order.then == FinishThen::Apply).then(|| "not_carried".to_owned()),
                text: Some(plan.record.uncarried_notes(plan.id).join("; ")),
                ..finish(FinishOutcome::Open)
            }),
            Decision::Keep => Ok(finish(FinishOutcome::Open)),
            Decision::Seal => self.sealed(None).await,
            Decision::NotApplied(why) => self.sealed(Some(why)).await,
            Decision::Apply => match self.sealed(None).await? {
                sealed if sealed.outcome == FinishOutcome::Sealed => self.apply().await,
                open => Ok(open),
            },
        }
    }

    /// The plan once the command has left it. Changes that an earlier daemon left unrecorded are recorded first.
    async fn left(&self) -> Result<Plan, Unfinished> {
        let job = self.command.map(|job| job.to_string());
        let mut moves = self.watch.plans.moves();
        loop {
            let plan = self.watch.plans.get(self.plan).await?;
            if job.is_none() || plan.record.running.iter().all(|running| running.job != job) {
                return Ok(plan);
            }
            let moved = moves.next(kernel::Deadline::never(), &self.scope).await;
            moved.map_err(|_| Unfinished::Stopped)?;
        }
    }

    /// The plan once no apply of it is unfinished. If the log failed during an earlier attempt, an apply may be left
    /// half done, and only finishing it shows whether the plan is applied.
    async fn settled(&self, plan: Plan) -> Result<Plan, Unfinished> {
        if plan.record.landing.is_none() {
            return Ok(plan);
        }
        let plans = &self.watch.plans;
        plans
            .repair_workspace(plan.record.facts.workspace, Repair::Recover)
            .await?;
        Ok(plans.get(self.plan).await?)
    }

    /// The plan is finished. If that was the goal, an earlier daemon got that far.
    fn over(&self, plan: &Plan, state: PlanState) -> PlanFinish {
        let wanted = (self.payload.order.then, self.payload.order.discard_unchanged);
        match (state, wanted) {
            (PlanState::Applied, (FinishThen::Apply, _)) => {
                let commit = plan
                    .record
                    .landed
                    .as_ref()
                    .and_then(|landed| landed.commit.clone());
                let landed = plan.record.landed.as_ref();
                let is_on_its_way = landed.is_some_and(|landed| landed.commit_wanted.is_some());
                let is_missed = self.payload.order.commit.is_some() && commit.is_none() && !is_on_its_way;
                let why = "the daemon was restarted after the changes were applied";
                PlanFinish {
                    files: Some(plan.record.files),
                    commit,
                    commit_failed: is_missed.then(|| why.to_owned()),
                    ..finish(FinishOutcome::Done)
                }
            }
            (PlanState::Discarded, (_, true)) => finish(FinishOutcome::Unchanged),
            _ => PlanFinish {
                text: Some(format!("it was {} before", state.as_str())),
                ..finish(FinishOutcome::Over)
            },
        }
    }

    /// Discards a plan that was opened for the command.
    async fn unchanged(&self) -> Result<PlanFinish, Unfinished> {
        let unchanged = finish(FinishOutcome::Unchanged);
        if !self.payload.order.discard_unchanged {
            return Ok(unchanged);
        }
        let discarded = self
            .watch
            .plans
            .discard(self.plan, Arc::clone(&self.by), None, Unapplied::Keep);
        match discarded.await {
            Ok(_) => Ok(unchanged),
            // It did change something that wasn't recorded when it ended.
            Err(PlanError::HasWork { .. }) => self.sealed(None).await,
            Err(error) => Ok(PlanFinish {
                text: Some(refusal(error)?),
                ..unchanged
            }),
        }
    }

    /// Seals the plan. If that fails, the plan stays open, and the result says so.
    async fn sealed(&self, not_applied: Option<&str>) -> Result<PlanFinish, Unfinished> {
        match self.watch.plans.seal(self.plan, Arc::clone(&self.by), None).await {
            Ok(_) => Ok(match not_applied {
                None => finish(FinishOutcome::Sealed),
                Some(why) => because(why, None),
            }),
            Err(error) => Ok(PlanFinish {
                why: not_applied.map(str::to_owned),
                text: Some(refusal(error)?),
                ..finish(FinishOutcome::Open)
            }),
        }
    }

    /// Runs the checks, and applies the plan if they pass.
    async fn apply(&self) -> Result<PlanFinish, Unfinished> {
        if let Some(not_applied) = self.check().await? {
            return Ok(not_applied);
        }
        let order = ApplyRequest {
            plans: vec![self.plan],
            seen: Vec::new(),
            by: Arc::clone(&self.by),
            run: Run::Real,
            commit: self.payload.order.commit.clone(),
        };
        let outcome = match self.watch.plans.apply(order).await {
            Ok(outcome) => outcome,
            Err(error) => return Ok(because("refused", Some(refusal(error)?))),
        };
        tracing::info!(plan = %self.plan, outcome = ?outcome.kind, "a plan was to be applied at the end of its command or turn");
        let kind = match outcome.kind {
            OutcomeKind::Conflicted => FinishOutcome::Conflicted,
            OutcomeKind::Done | OutcomeKind::WouldBeDone => FinishOutcome::Done,
        };
        let notes = outcome.notes.iter().take(KEPT_NOTES);
        Ok(PlanFinish {
            files: Some(outcome.paths.len() as u64),
            paths: outcome.paths.iter().take(KEPT_PATHS).map(path_to_wire).collect(),
            commit: outcome.commit,
            commit_failed: outcome.commit_failed,
            notes: notes
                .map(|note| note.chars().take(NOTE_CHARACTERS).collect())
                .collect(),
            ..finish(kind)
        })
    }

    /// Runs the checks that haven't passed. If they fail, returns why the plan won't be applied.
    async fn check(&self) -> Result<Option<PlanFinish>, Unfinished> {
        let by = (Arc::clone(&self.by), self.home_id);
        let plan = match run_checks(self.watch, self.plan, by, Which::NotPassed).await {
            Ok(plan) => plan,
            Err(CheckError::Plan(error)) => return Ok(Some(because("refused", Some(refusal(error)?)))),
            Err(CheckError::Submit(error)) => return Ok(Some(because("refused", Some(error.to_string())))),
            Err(CheckError::Encode(error)) => return Ok(Some(because("refused", Some(error.to_string())))),
            Err(CheckError::Closing) => return Err(Unfinished::Stopped),
        };
        for check in &plan.record.checks {
            let run = check.run.as_ref().filter(|run| run.ended.is_none());
            let Some(job) = run.and_then(|run| run.job.parse::<JobId>().ok()) else {
                continue;
            };
            self.say(JobChannel::Note, format!("check: {}", check.command).as_bytes())
                .await;
            self.see_through(job).await?;
        }
        let plan = settle_plan(self.watch, self.watch.plans.get(self.plan).await?).await?;
        let fingerprint = plan.record.fingerprint;
        let mut checks = plan.record.checks.iter();
        let have_passed = checks.all(|check| check.state(fingerprint) == CheckState::Passed);
        Ok((!have_passed).then(|| because("checks", None)))
    }

    /// Follows the job of a check to its end, and forwards its output. If this is stopped, so is the check.
    async fn see_through(&self, job: JobId) -> Result<(), Unfinished> {
        let mut said = self.jobs.follow(job, Sequence::START, &self.scope);
        loop {
            match said.next().await {
                Ok(OutputItem::Piece(piece)) if piece.channel != JobChannel::Note => {
                    // Standard output is reserved for the command.
                    self.say(JobChannel::Stderr, &piece.bytes).await;
                }
                Ok(OutputItem::End(..)) => return Ok(()),
                Ok(OutputItem::Piece(_) | OutputItem::Progress { .. } | OutputItem::Resync { .. }) => {}
                Err(_) => {
                    let request = Requested {
                        by: self.by.to_string(),
                        why: "the plan is not to be applied any more".to_owned(),
                    };
                    if let Err(error) = self.jobs.cancel(job, request).await {
                        tracing::debug!(%error, %job, "a check could not be cancelled");
                    }
                    return Err(Unfinished::Stopped);
                }
            }
        }
    }

    /// If the output can't be stored here, it is still in the job of the check.
    async fn say(&self, channel: JobChannel, text: &[u8]) {
        if let Err(error) = self.output.write(channel, text).await {
            tracing::debug!(%error, "what a check said could not be repeated");
        }
    }
}

pub(crate) fn finish(outcome: FinishOutcome) -> PlanFinish {
    PlanFinish {
        outcome,
        why: None,
        text: None,
        files: None,
        paths: Vec::new(),
        commit: None,
        commit_failed: None,
        notes: Vec::new(),
    }
}

pub(crate) fn because(why: &str, text: Option<String>) -> PlanFinish {
    PlanFinish {
        why: Some(why.to_owned()),
        text,
        ..finish(FinishOutcome::NotApplied)
    }
}

/// Why the plan refused. Errors that say nothing about the plan are left to the next daemon or the next attempt.
fn refusal(error: PlanError) -> Result<String, Unfinished> {
    match error {
        PlanError::Closing | PlanError::Log(_) | PlanError::Commit(_) => Err(Unfinished::Plan(error)),
        error => Ok(chain(&error)),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn ended(finish: &PlanFinish) -> AttemptOutcome {
    let text = match (finish.outcome, &finish.text) {
        (FinishOutcome::NotApplied, Some(text)) => format!("the plan was not applied: {text}"),
        (FinishOutcome::NotApplied, None) => "the plan was not applied".to_owned(),
        (FinishOutcome::Conflicted, _) => "the plan was not applied: there are conflicts".to_owned(),
        _ => String::new(),
    };
    AttemptOutcome {
        verdict: AttemptVerdict::Succeeded,
        text,
        result: json!({ FINISH: finish }),
    }
}

fn stopped(verdict: AttemptVerdict, text: &str) -> AttemptOutcome {
    AttemptOutcome {
        verdict,
        text: text.to_owned(),
        result: json!({ FINISH: because("interrupted", Some(text.to_owned())) }),
    }
}
