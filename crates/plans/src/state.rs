//! What may happen to a plan: pure steps from one record to the next, or a refusal.
//!
//! `open → sealed → applied | discarded`, `applied → undone → applied`. Working on a sealed plan reopens it. A refused
//! attempt leaves the plan's state unchanged.

use std::sync::Arc;

use eventlog::UnixMs;
use protocol::{ChangesetId, CheckState, PlanId, PlanState};

use crate::PlanEvent;
use crate::{
    Actor, Attempt, Check, CheckEnd, CheckRun, Landed, ManifestId, OpenChangeset, PlanError, PlanRecord,
    Refused, Running, Unapplied, Unrecorded,
};

/// The next record, and the events that go with it.
pub(crate) type Step = Result<(PlanRecord, Vec<PlanEvent>), PlanError>;

/// The maximum number of conflicts kept with a plan. The answer to the attempt has all of them.
const KEPT_CONFLICTS: usize = 50;
/// The maximum number of open changesets. Each is one that its actor hasn't closed.
const OPEN_CHANGESETS_LIMIT: usize = 256;
pub(crate) const CHECK_TOOL: &str = "check";
const CHECKS_LIMIT: usize = 64;

/// The plan can't change while it is being landed.
fn not_landing(plan: PlanId, record: &PlanRecord) -> Result<(), PlanError> {
    match &record.landing {
        None => Ok(()),
        Some(_) => Err(PlanError::Busy {
            plan,
            by: "it is being applied or taken back".to_owned(),
        }),
    }
}

fn nothing_runs(plan: PlanId, record: &PlanRecord) -> Result<(), PlanError> {
    match record.running.first() {
        None => Ok(()),
        Some(running) => Err(PlanError::Busy {
            plan,
            by: format!("`{}` of {} runs in it", running.reason, running.actor),
        }),
    }
}

fn wrong(plan: PlanId, record: &PlanRecord) -> PlanError {
    PlanError::WrongState {
        plan,
        state: record.state,
    }
}

/// The record in a state that can be worked on: open, or sealed and then reopened.
fn workable(plan: PlanId, record: &PlanRecord, by: &Actor, now: UnixMs) -> Step {
    not_landing(plan, record)?;
    let mut next = record.clone();
    next.changed_at = now;
    match record.state {
        PlanState::Open => Ok((next, Vec::new())),
        PlanState::Sealed => {
            next.state = PlanState::Open;
            Ok((
                next,
                vec![PlanEvent::new("reopened", by, "it is being worked on again")],
            ))
        }
        PlanState::Applied | PlanState::Undone | PlanState::Discarded => Err(wrong(plan, record)),
    }
}

pub(crate) fn may_work(plan: PlanId, record: &PlanRecord) -> Result<(), PlanError> {
    not_landing(plan, record)?;
    match record.state {
        PlanState::Open | PlanState::Sealed => Ok(()),
        PlanState::Applied | PlanState::Undone | PlanState::Discarded => Err(wrong(plan, record)),
    }
}

/// Starts a changeset: published and current in one step.
pub(crate) fn start_changeset(
    plan: PlanId,
    record: &PlanRecord,
    id: ChangesetId,
    actor: &Actor,
    reason: &str,
    now: UnixMs,
) -> Step {
    let (mut next, mut events) = workable(plan, record, actor, now)?;
    if next.open_changesets.len() >= OPEN_CHANGESETS_LIMIT {
        return Err(PlanError::Busy {
            plan,
            by: format!("{OPEN_CHANGESETS_LIMIT} changesets are open; close some"),
        });
    }
    next.changesets += 1;
    next.open_changesets.push(OpenChangeset {
        id,
        actor: Arc::clone(actor),
    });
    events.push(PlanEvent::new("changeset_started", actor, reason));
    Ok((next, events))
}

pub(crate) fn close_changeset(
    record: &PlanRecord,
    id: ChangesetId,
    now: UnixMs,
) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    let Some(at) = next.open_changesets.iter().position(|open| open.id == id) else {
        return (next, Vec::new());
    };
    let closed = next.open_changesets.remove(at);
    next.changed_at = now;
    (next, vec![PlanEvent::new("changeset_closed", &closed.actor, "")])
}

/// The changeset for an actor's changes: the last one that it started and hasn't closed.
pub(crate) fn current_changeset(record: &PlanRecord, actor: &Actor) -> Option<ChangesetId> {
    let mut mine = record
        .open_changesets
        .iter()
        .rev()
        .filter(|open| open.actor == *actor);
    mine.next().map(|open| open.id)
}

/// The size of a plan's net changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Extent {
    pub(crate) files: u64,
    pub(crate) fingerprint: ManifestId,
}

pub(crate) fn record(
    plan: PlanId,
    record: &PlanRecord,
    by: &Actor,
    count: u64,
    extent: Extent,
    now: UnixMs,
) -> Step {
    let (mut next, mut events) = workable(plan, record, by, now)?;
    next.entries += count;
    next.files = extent.files;
    next.fingerprint = extent.fingerprint;
    let s = if count == 1 { "" } else { "s" };
    events.push(PlanEvent::new("changed", by, format!("{count} change{s}")));
    Ok((next, events))
}

/// A command is about to run in the sandbox.
pub(crate) fn command_started(plan: PlanId, record: &PlanRecord, running: Running, now: UnixMs) -> Step {
    // A check only reads; the plan stays sealed unless the check changes something after all.
    let (mut next, mut events) = if running.tool == CHECK_TOOL && record.state == PlanState::Sealed {
        not_landing(plan, record)?;
        (record.clone(), Vec::new())
    } else {
        workable(plan, record, &running.actor, now)?
    };
    next.changed_at = now;
    events.push(PlanEvent::new(
        "command_started",
        &running.actor,
        running.reason.clone(),
    ));
    next.running.push(running);
    Ok((next, events))
}

/// None of its processes are running. Its changes are recorded, or the plan says why not.
pub(crate) fn command_ended(
    record: &PlanRecord,
    run_id: &str,
    recorded: Result<(), String>,
    now: UnixMs,
) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    let Some(at) = next.running.iter().position(|running| running.id == run_id) else {
        return (next, Vec::new());
    };
    let gone = next.running.remove(at);
    next.changed_at = now;
    let mut events = vec![PlanEvent::new("command_ended", &gone.actor, gone.reason.clone())];
    match recorded {
        // The sandbox is recorded as a whole, so nothing remains of earlier failures.
        Ok(()) => next.unrecorded = None,
        Err(why) => {
            events.push(PlanEvent::new("not_recorded", &gone.actor, why.clone()));
            next.unrecorded = Some(Unrecorded::new((&gone).into(), why));
        }
    }
    (next, events)
}

/// The sandbox's changes are recorded, or the plan says why not.
pub(crate) fn looked_at(
    record: &PlanRecord,
    recorded: Result<(), Unrecorded>,
    now: UnixMs,
) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    next.unrecorded = recorded.err();
    if next.unrecorded == record.unrecorded {
        return (next, Vec::new());
    }
    next.changed_at = now;
    let events = next
        .unrecorded
        .as_ref()
        .map(|failed| PlanEvent::new("not_recorded", &failed.actor, failed.why.clone()));
    (next, events.into_iter().collect())
}

pub(crate) fn seal(plan: PlanId, record: &PlanRecord, by: &Actor, now: UnixMs) -> Step {
    not_landing(plan, record)?;
    nothing_runs(plan, record)?;
    match record.state {
        PlanState::Sealed => Ok((record.clone(), Vec::new())),
        PlanState::Open => {
            let mut next = record.clone();
            next.state = PlanState::Sealed;
            next.open_changesets.clear();
            next.changed_at = now;
            Ok((next, vec![PlanEvent::new("sealed", by, "")]))
        }
        PlanState::Applied | PlanState::Undone | PlanState::Discarded => Err(wrong(plan, record)),
    }
}

pub(crate) fn discard(plan: PlanId, record: &PlanRecord, by: &Actor, work: Unapplied, now: UnixMs) -> Step {
    not_landing(plan, record)?;
    nothing_runs(plan, record)?;
    match record.state {
        PlanState::Discarded => return Ok((record.clone(), Vec::new())),
        PlanState::Applied => return Err(PlanError::AlreadyApplied { plan }),
        PlanState::Open | PlanState::Sealed if record.files > 0 && work == Unapplied::Keep => {
            let files = record.files;
            return Err(PlanError::HasWork { plan, files });
        }
        PlanState::Open | PlanState::Sealed if record.has_uncarried_work() && work == Unapplied::Keep => {
            return Err(PlanError::HasUncarriedWork {
                plan,
                what: uncarried_text(plan, record),
            });
        }
        PlanState::Open | PlanState::Sealed | PlanState::Undone => {}
    }
    let mut next = record.clone();
    next.state = PlanState::Discarded;
    next.open_changesets.clear();
    next.changed_at = now;
    Ok((next, vec![PlanEvent::new("discarded", by, "")]))
}

/// It is about to be forgotten for good. Until nothing of it is left, it is a discarded plan.
pub(crate) fn forget(plan: PlanId, record: &PlanRecord, by: &Actor, now: UnixMs) -> Step {
    not_landing(plan, record)?;
    nothing_runs(plan, record)?;
    if matches!(record.state, PlanState::Open | PlanState::Sealed) {
        let state = record.state;
        return Err(PlanError::NotOver { plan, state });
    }
    let mut next = record.clone();
    next.state = PlanState::Discarded;
    next.landed = None;
    next.changed_at = now;
    Ok((next, vec![PlanEvent::new("forgotten", by, "")]))
}

/// What a plan has but doesn't carry, in sentences.
fn uncarried_text(plan: PlanId, record: &PlanRecord) -> String {
    let mut notes = record.uncarried_notes(plan);
    notes.extend(
        record
            .unrecorded
            .as_ref()
            .map(|failed| format!("what `{}` changed is not recorded: {}", failed.reason, failed.why)),
    );
    notes.join("; ")
}

/// Whether an attempt may be made at all. Fails closed: a check that hasn't passed for the plan's current content
/// blocks it.
pub(crate) fn may_land(plan: PlanId, record: &PlanRecord, what: Attempt) -> Result<(), PlanError> {
    not_landing(plan, record)?;
    nothing_runs(plan, record)?;
    match (what, record.state) {
        (Attempt::Apply, PlanState::Open | PlanState::Sealed | PlanState::Undone) => {
            let pending = record.checks.iter().filter_map(|check| {
                let state = check.state(record.fingerprint);
                (state != CheckState::Passed).then(|| (check.command.clone(), state))
            });
            let checks: Vec<_> = pending.collect();
            if checks.is_empty() {
                Ok(())
            } else {
                Err(PlanError::ChecksNotPassed { plan, checks })
            }
        }
        (Attempt::Undo, PlanState::Applied) | (Attempt::Refresh, PlanState::Open | PlanState::Sealed) => {
            Ok(())
        }
        _ => Err(wrong(plan, record)),
    }
}

pub(crate) fn begin_landing(
    plan: PlanId,
    record: &PlanRecord,
    what: Attempt,
    landing: &str,
    now: UnixMs,
) -> Result<PlanRecord, PlanError> {
    may_land(plan, record, what)?;
    let mut next = record.clone();
    if next.state == PlanState::Open {
        next.state = PlanState::Sealed;
    }
    next.open_changesets.clear();
    next.landing = Some(landing.to_owned());
    next.changed_at = now;
    Ok(next)
}

pub(crate) fn landed(
    record: &PlanRecord,
    what: Attempt,
    by: &Actor,
    state: PlanState,
    landed: Landed,
    text: String,
    now: UnixMs,
) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    next.state = state;
    next.landing = None;
    next.landed = Some(landed);
    next.refused = None;
    next.changed_at = now;
    let event = match what {
        Attempt::Apply => "applied",
        Attempt::Undo => "undone",
        Attempt::Refresh => "refreshed",
    };
    (next, vec![PlanEvent::new(event, by, text)])
}

/// It wasn't carried out, and the attempt changed nothing.
pub(crate) fn refused(record: &PlanRecord, refused: Refused, now: UnixMs) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    let count = refused.conflicts.len();
    let s = if count == 1 { "" } else { "s" };
    let events = PlanEvent::new("refused", &refused.by, format!("{count} conflict{s}"));
    next.landing = None;
    next.changed_at = now;
    let conflicts = refused.conflicts.into_iter().take(KEPT_CONFLICTS).collect();
    next.refused = Some(Refused { conflicts, ..refused });
    (next, vec![events])
}

/// It could be neither carried out nor rolled back, and was abandoned. The plan is in the state before the attempt; the
/// workspace may not be.
pub(crate) fn set_aside(
    record: &PlanRecord,
    what: Option<Attempt>,
    by: &Actor,
    why: &str,
    now: UnixMs,
) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    next.landing = None;
    next.running.retain(|running| running.tool != "merge");
    next.changed_at = now;
    let what = match what {
        Some(Attempt::Undo) => "undo",
        _ => "apply",
    };
    let events = PlanEvent::new(
        "set_aside",
        by,
        format!("the {what} was given up half-way: {why}"),
    );
    (next, vec![events])
}

pub(crate) fn add_checks(plan: PlanId, record: &PlanRecord, commands: Vec<String>, now: UnixMs) -> Step {
    let mut next = record.clone();
    for command in commands {
        if !next.checks.iter().any(|check| check.command == command) {
            next.checks.push(Check { command, run: None });
        }
    }
    if next.checks.len() > CHECKS_LIMIT {
        return Err(PlanError::Busy {
            plan,
            by: format!("it has {CHECKS_LIMIT} checks, and takes no more"),
        });
    }
    next.changed_at = now;
    Ok((next, Vec::new()))
}

pub(crate) fn check_started(
    plan: PlanId,
    record: &PlanRecord,
    command: &str,
    job: &str,
    by: &Actor,
    now: UnixMs,
) -> Step {
    not_landing(plan, record)?;
    if !matches!(
        record.state,
        PlanState::Open | PlanState::Sealed | PlanState::Undone
    ) {
        return Err(wrong(plan, record));
    }
    let is_known =
        |check: &Check| check.command == command && check.run.as_ref().is_some_and(|run| run.job == job);
    if record.checks.iter().any(is_known) {
        return Ok((record.clone(), Vec::new()));
    }
    let mut next = record.clone();
    let fingerprint = record.fingerprint;
    if let Some(check) = next.checks.iter_mut().find(|check| check.command == command) {
        check.run = Some(CheckRun {
            job: job.to_owned(),
            fingerprint,
            ended: None,
        });
    }
    next.changed_at = now;
    Ok((next, vec![PlanEvent::new("check_started", by, command)]))
}

/// A check has ended. If it isn't the last run of its command, nothing happens.
pub(crate) fn check_ended(
    record: &PlanRecord,
    command: &str,
    job: &str,
    end: CheckEnd,
    by: &Actor,
    now: UnixMs,
) -> (PlanRecord, Vec<PlanEvent>) {
    let mut next = record.clone();
    let runs = next.checks.iter_mut().filter(|check| check.command == command);
    let mut running = runs.filter_map(|check| check.run.as_mut());
    let Some(run) = running.find(|run| run.job == job && run.ended.is_none()) else {
        return (next, Vec::new());
    };
    let verdict = if end.passed { "passed" } else { "failed" };
    let events = PlanEvent::new("check_ended", by, format!("{command}: {verdict}"));
    run.ended = Some(end);
    next.changed_at = now;
    (next, vec![events])
}
