//! Converts sessions for the wire, for the HTTP API and the page.
//!
//! Most of a session or turn is sent as stored. This module converts the rest: times to RFC 3339 instead of
//! milliseconds, the machine instead of its home, and only the open questions instead of all.

mod attachments;

use eventlog::{Event, LogError, UnixMs};
use jobs::{Job, Jobs, State};
use machines::{Machines, Presence};
use protocol::{FinishOutcome, TurnState};
use sessions::{
    Accepted, ActiveTurn, AgentInfo, Happening, Readiness, Session, SessionError, SessionQuery, Sessions,
    Started, Turn, TurnRecord,
};

pub(crate) use attachments::attachments_of;

use crate::durable::machine_to_wire;
use crate::plans::{because, finish, finished_of};
use crate::times::rfc3339_ms;

/// A page of sessions, newest first.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn list(
    sessions: &Sessions,
    machines: &Machines,
    query: SessionQuery,
) -> Result<protocol::SessionList, SessionError> {
    // Fetch one more than requested to see whether there are more.
    let page = query.limit as usize;
    let limit = query.limit.saturating_add(1);
    let mut found = sessions.list(SessionQuery { limit, ..query }).await?;
    let has_more = found.len() > page;
    found.truncate(page);
    let shown: Vec<protocol::Session> = found
        .iter()
        .map(|session| shown(sessions, machines, session))
        .collect();
    Ok(protocol::SessionList {
        next: shown.last().filter(|_| has_more).map(|oldest| oldest.id.clone()),
        sessions: shown,
    })
}

/// A session, with its machine and the machine that it waits for.
pub(crate) fn shown(sessions: &Sessions, machines: &Machines, session: &Session) -> protocol::Session {
    let awaited = sessions.awaited(session).map(|awaited| protocol::AwaitedMachine {
        home: awaited.home.to_string(),
        name: machines.of(awaited.home).name,
        running: awaited.presence == Presence::Running,
    });
    let home = session.record.home.or_else(|| {
        let active = session.record.active.as_ref()?;
        Some(active.owner.home)
    });
    let machine = home.map_or_else(|| machines.own(), |home| machines.of(home));
    protocol::Session {
        machine: Some(machine_to_wire(machine)),
        waits_for: awaited,
        ..to_wire(session)
    }
}

/// A session on its own.
pub(crate) fn to_wire(session: &Session) -> protocol::Session {
    let record = &session.record;
    protocol::Session {
        id: session.id.to_string(),
        state: record.state(),
        version: session.version.get(),
        title: record.title.clone(),
        directory: record.facts.directory.display().to_string(),
        machine: None,
        waits_for: None,
        agent: record.agent.clone(),
        opened_by: record.facts.opened_by.to_string(),
        opened_at: written(record.facts.opened_at),
        changed_at: written(record.changed_at),
        plan: record.plan.map(|plan| plan.to_string()),
        active: record.active.as_ref().map(active_to_wire),
        queue: record.queue.iter().map(ToString::to_string).collect(),
        last_turn: record.last_turn.map(|turn| turn.to_string()),
        last_state: record.last_state,
        prompts: record.prompts,
        archived: record.archived,
        forked_from: record
            .facts
            .forked_from
            .as_ref()
            .map(|fork| protocol::ForkSession {
                session: Some(fork.session.to_string()),
                turn: Some(fork.turn.to_string()),
            }),
        forks: record.forks,
        rules: record.rules.clone(),
    }
}

fn active_to_wire(active: &ActiveTurn) -> protocol::ActiveTurn {
    let open = active.asked.iter().filter(|asked| asked.answer.is_none());
    protocol::ActiveTurn {
        turn: active.turn.to_string(),
        prompt: active.prompt.clone(),
        attachments: active.attachments.clone(),
        started_at: written(active.started_at),
        boot: active.owner.boot.to_string(),
        home: active.owner.home.to_string(),
        stop: active.stop.as_ref().map(|stop| protocol::StopRequest {
            by: stop.by.to_string(),
            why: stop.why.clone(),
            at: written(stop.at),
        }),
        asking: open
            .map(|asked| protocol::WaitingPermission {
                permission: asked.id.to_string(),
                tool: asked.tool.clone(),
                subject: asked.subject.clone(),
            })
            .collect(),
    }
}

/// A turn, with the outcome for its plan.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn turn_shown(jobs: &Jobs, turn: &Turn) -> Result<protocol::Turn, LogError> {
    let mut shown = turn_to_wire(turn);
    if let Some(id) = turn.record.finish_job {
        shown.finished = jobs.get(id).await?.and_then(|job| finish_of(&job));
    }
    Ok(shown)
}

/// Turns in order, with the outcome for their plans.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn turns_shown(jobs: &Jobs, turns: &[Turn]) -> Result<Vec<protocol::Turn>, LogError> {
    let mut shown = Vec::with_capacity(turns.len());
    for turn in turns {
        shown.push(turn_shown(jobs, turn).await?);
    }
    Ok(shown)
}

/// The result of a job that finishes a plan; `None` until it has ended.
fn finish_of(job: &Job) -> Option<protocol::PlanFinish> {
    let ending = match &job.record.state {
        State::Queued { .. } | State::Running { .. } => return None,
        State::Succeeded { ending } => Some(ending),
        State::Failed { ending, .. } | State::Cancelled { ending } => ending.as_ref(),
    };
    let finished = ending.and_then(|ending| finished_of(&ending.result));
    Some(finished.unwrap_or_else(|| because("interrupted", None)))
}

/// The outcome for the plan of a turn that needs no job to finish it.
fn finished_without_job(record: &TurnRecord) -> Option<protocol::PlanFinish> {
    record.finish.as_ref()?;
    match record.state {
        TurnState::Queued | TurnState::Running => None,
        TurnState::Done if record.finish_job.is_some() => None,
        TurnState::Done => Some(finish(FinishOutcome::Unchanged)),
        TurnState::Failed | TurnState::Cancelled | TurnState::Interrupted => {
            Some(because("turn_not_done", None))
        }
    }
}

/// A turn on its own.
pub(crate) fn turn_to_wire(turn: &Turn) -> protocol::Turn {
    let record = &turn.record;
    let attachments = record.prompt.attachments.iter();
    protocol::Turn {
        id: turn.id.to_string(),
        state: record.state,
        session: record.session.to_string(),
        number: record.number,
        prompt: record.prompt.text.clone(),
        attachments: attachments.map(|attachment| attachment.about.clone()).collect(),
        agent: record.agent.clone(),
        by: record.by.to_string(),
        accepted_at: written(record.accepted_at),
        started_at: record.started_at.map(written),
        ended_at: record.ended_at.map(written),
        plan: record.plan.map(|plan| plan.to_string()),
        usage: record.usage,
        error: record.error.clone(),
        finish: record.finish.clone(),
        finish_job: record.finish_job.map(|job| job.to_string()),
        finished: finished_without_job(record),
        last_sequence: turn.last_sequence.get(),
    }
}

/// A prompt that was accepted.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn accepted_to_wire(
    sessions: &Sessions,
    machines: &Machines,
    jobs: &Jobs,
    accepted: &Accepted,
) -> Result<protocol::TurnAccepted, LogError> {
    Ok(protocol::TurnAccepted {
        session: shown(sessions, machines, &accepted.session),
        turn: turn_shown(jobs, &accepted.turn).await?,
        new: accepted.started == Started::New,
    })
}

/// An event of a session. If it can't be read, it still has its position, time and name.
pub(crate) fn moment_to_wire(event: &Event) -> protocol::SessionMoment {
    let happening: Option<Happening> = serde_json::from_slice(&event.body).ok();
    let (actor, turn, text) = happening
        .map(|happening| (happening.actor, happening.turn, happening.text))
        .unwrap_or_default();
    protocol::SessionMoment {
        sequence: event.sequence.get(),
        at: rfc3339_ms(event.at_ms),
        event: event.kind.to_string(),
        actor,
        turn: turn.map(|turn| turn.to_string()),
        text,
    }
}

/// The agents, by name.
pub(crate) fn agents_to_wire(sessions: &Sessions) -> protocol::AgentList {
    let default = sessions.default_agent();
    let agents = sessions.agents();
    protocol::AgentList {
        agents: agents.iter().map(|info| agent_to_wire(info, default)).collect(),
    }
}

fn agent_to_wire(info: &AgentInfo, default: &str) -> protocol::Agent {
    let (state, missing) = match &info.readiness {
        Readiness::Ready => ("ready", None),
        Readiness::Missing(missing) => ("missing", Some(missing.clone())),
    };
    protocol::Agent {
        id: info.name.clone(),
        state: state.to_owned(),
        kind: info.kind,
        description: info.description.clone(),
        missing,
        default: info.name == default,
    }
}

fn written(moment: UnixMs) -> String {
    rfc3339_ms(i64::try_from(moment.0).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
