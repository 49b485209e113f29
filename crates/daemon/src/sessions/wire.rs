//! Sessions in the words of the interface, for programs and for the page alike.

mod moments;
mod requests;
mod turns;
mod words;

use eventlog::UnixMs;
use machines::{Machines, Presence};
use sessions::{ActiveTurn, AgentInfo, Readiness, Session, SessionError, SessionQuery, Sessions};

pub(crate) use moments::moment_to_wire;
pub(crate) use requests::{attachments_of, choice_of, rule_of};
pub(crate) use turns::{accepted_to_wire, turn_to_wire};
pub(crate) use words::{answer_of, answer_to_wire, state_of, turn_state_to_wire};

use words::{kind_to_wire, rule_to_wire, state_to_wire};

use crate::durable::machine_to_wire;
use crate::times::rfc3339_ms;

/// A page of sessions, newest first.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn list(
    sessions: &Sessions,
    machines: &Machines,
    query: SessionQuery,
) -> Result<protocol::SessionList, SessionError> {
    // One more than was asked for tells whether there are more.
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

/// A session, with the machine that it is on, and the one that it waits for.
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

/// A session by itself.
pub(crate) fn to_wire(session: &Session) -> protocol::Session {
    let record = &session.record;
    protocol::Session {
        id: session.id.to_string(),
        state: state_to_wire(record.state()),
        version: session.version.get(),
        title: record.title.clone(),
        directory: record.facts.directory.display().to_string(),
        machine: None,
        waits_for: None,
        agent: choice_to_wire(&record.agent),
        opened_by: record.facts.opened_by.to_string(),
        opened_at: written(record.facts.opened_at),
        changed_at: written(record.changed_at),
        plan: record.plan.map(|plan| plan.to_string()),
        active: record.active.as_ref().map(active_to_wire),
        queue: record.queue.iter().map(ToString::to_string).collect(),
        last_turn: record.last_turn.map(|turn| turn.to_string()),
        last_state: record.last_state.map(turn_state_to_wire),
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
        rules: record.rules.iter().map(rule_to_wire).collect(),
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
        kind: kind_to_wire(info.kind),
        description: info.description.clone(),
        missing,
        default: info.name == default,
    }
}

pub(crate) fn counts_to_wire(sessions: &Sessions) -> protocol::SessionCounts {
    let counts = sessions.counts();
    protocol::SessionCounts {
        running: counts.running,
        waiting: counts.waiting,
    }
}

pub(crate) fn choice_to_wire(choice: &sessions::AgentChoice) -> protocol::AgentChoice {
    protocol::AgentChoice {
        name: choice.name.clone(),
        model: choice.model.clone(),
        script: choice.script.clone(),
    }
}

fn written(moment: UnixMs) -> String {
    rfc3339_ms(i64::try_from(moment.0).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
