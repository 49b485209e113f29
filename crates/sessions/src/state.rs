//! The state machine of sessions and turns: pure steps from one record to the next.
//!
//! It uses no clock, no randomness and no log. The caller commits the result, session and turn together, on the versions that
//! were read. If one of them has changed, it reads and decides again.
//!
//! Invariants, which `state_model.rs` checks on random histories:
//!
//! 1. A turn is active in its session exactly while it is `running`, and in the queue exactly while it is `queued`.
//! 2. At most one turn is active. It is the `last_turn`, and each turn names the one that was active before it.
//! 3. A terminal turn is never changed.
//! 4. Turns begin in the order of the queue.
//! 5. The first answer to a question and the first request to stop stand.

use eventlog::{CommitError, EntityEvent, NewEvent, UnixMs};
use protocol::{
    AgentChoice, FinishPlan, HomeId, IfBusy, PermissionAnswer, PermissionId, PermissionRule, PlanId,
    RulePermission, TurnError, TurnId, TurnState, Usage,
};
use serde::{Deserialize, Serialize};

use crate::event::{EVENT_VERSION, TurnEvent};
use crate::owner::Owner;
use crate::permissions::exactly;
use crate::prompt::Prompt;
use crate::session::{ActiveTurn, Actor, Asked, SessionRecord, Stop};
use crate::turn::TurnRecord;

/// How many prompts may be queued in a session. They are part of its head.
pub(crate) const QUEUE_LIMIT: usize = 256;
/// How many questions of a turn are kept along with their answers.
const ASKED_LIMIT: usize = 64;
/// The size limit for the subject of a question, which is part of the head. A longer one is truncated, and its answer
/// counts only once.
const SUBJECT_LIMIT_BYTES: usize = 2048;
/// The limits for the number and total size of the rules that a session learns from answers. Beyond them, the oldest rule is
/// dropped, and the user is asked again.
const LEARNED_RULES_LIMIT: usize = 256;
const LEARNED_RULES_LIMIT_BYTES: usize = 128 * 1024;
/// How much of a prompt is part of the head of its session.
const EXCERPT_CHARACTERS: usize = 2000;
/// How much of the first prompt becomes the title.
const TITLE_CHARACTERS: usize = 80;

/// An event of a session.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// The kind of the event, which isn't part of its body.
    #[serde(skip)]
    pub event: String,
    /// Who did it; may be empty.
    #[serde(default)]
    pub actor: String,
    /// The turn that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Details; may be empty.
    #[serde(default)]
    pub text: String,
}

impl EntityEvent for Happening {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        NewEvent::json(&self.event, self)
    }
}

impl Happening {
    pub(crate) fn new(event: &str, actor: &str, turn: Option<TurnId>, text: impl Into<String>) -> Self {
        Self {
            event: event.to_owned(),
            actor: actor.to_owned(),
            turn,
            text: text.into(),
        }
    }
}

/// What to commit.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) session: SessionRecord,
    pub(crate) happened: Vec<Happening>,
    pub(crate) turn: Option<TurnStep>,
}

#[derive(Clone, Debug)]
pub(crate) struct TurnStep {
    pub(crate) record: TurnRecord,
    pub(crate) events: Vec<TurnEvent>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refused {
    Active(TurnId),
    NotActive,
    NotQueued,
    QueueFull,
    Archived,
    /// The running turn has no such question.
    NotAsked,
    /// There is nothing to change.
    Nothing,
}

/// A prompt to start a turn with.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) id: TurnId,
    pub(crate) session: protocol::SessionId,
    pub(crate) prompt: Prompt,
    pub(crate) agent: AgentChoice,
    /// The home that runs it, and every other queued prompt of the session.
    pub(crate) home: HomeId,
    /// What to do with the plan when the turn is done.
    pub(crate) finish: Option<FinishPlan>,
    pub(crate) by: Actor,
}

/// Accepts a prompt. Its turn starts at once if no other turn is running or queued and a runner is given.
pub(crate) fn accept(
    session: &SessionRecord,
    draft: Draft,
    if_busy: IfBusy,
    runner: Option<Owner>,
    now: UnixMs,
) -> Result<Step, Refused> {
    if session.archived {
        return Err(Refused::Archived);
    }
    if let Some(active) = &session.active
        && if_busy == IfBusy::Refuse
        && active.stop.is_none()
    {
        return Err(Refused::Active(active.turn));
    }
    if session.queue.len() >= QUEUE_LIMIT {
        return Err(Refused::QueueFull);
    }
    let mut next = session.clone();
    next.changed_at = now;
    next.prompts += 1;
    let is_moved = next
        .home
        .replace(draft.home)
        .is_some_and(|home| home != draft.home);
    if next.title.is_empty() {
        next.title = first_line(&draft.prompt.text, TITLE_CHARACTERS);
    }
    let record = TurnRecord {
        session: draft.session,
        number: next.prompts,
        previous: None,
        prompt: draft.prompt.clone(),
        agent: draft.agent.clone(),
        by: draft.by.clone(),
        accepted_at: now,
        state: TurnState::Queued,
        started_at: None,
        ended_at: None,
        owner: None,
        plan: None,
        usage: Usage::default(),
        error: None,
        finish: draft.finish,
        finish_job: None,
        transcript: None,
    };
    let text = first_line(&draft.prompt.text, TITLE_CHARACTERS);
    let accepted = Happening::new("accepted", &draft.by, Some(draft.id), text);
    let event = TurnEvent::Accepted {
        v: EVENT_VERSION,
        prompt: draft.prompt,
        agent: draft.agent,
    };
    let moved = Happening::new("home_set", &draft.by, None, draft.home.to_string());
    next.queue.push(draft.id);
    let queued = Step {
        session: next,
        happened: is_moved.then_some(moved).into_iter().chain([accepted]).collect(),
        turn: Some(TurnStep {
            record: record.clone(),
            events: vec![event],
        }),
    };
    let is_free = session.active.is_none() && session.queue.is_empty();
    match runner {
        Some(owner) if is_free => Ok(chain(queued, |session| {
            begin(session, draft.id, &record, owner, now)
        })?),
        _ => Ok(queued),
    }
}

/// Begins the turn that has waited longest.
pub(crate) fn begin(
    session: &SessionRecord,
    id: TurnId,
    turn: &TurnRecord,
    owner: Owner,
    now: UnixMs,
) -> Result<Step, Refused> {
    if let Some(active) = &session.active {
        return Err(Refused::Active(active.turn));
    }
    if session.queue.first() != Some(&id) || turn.state != TurnState::Queued {
        return Err(Refused::NotQueued);
    }
    let mut next = session.clone();
    next.changed_at = now;
    next.queue.remove(0);
    let mut record = turn.clone();
    record.state = TurnState::Running;
    record.started_at = Some(now);
    record.owner = Some(owner);
    record.previous = next.last_turn.replace(id);
    next.active = Some(ActiveTurn {
        turn: id,
        prompt: cut(&turn.prompt.text, EXCERPT_CHARACTERS),
        attachments: turn
            .prompt
            .attachments
            .iter()
            .map(|attachment| attachment.about.name.clone())
            .collect(),
        started_at: now,
        owner,
        stop: None,
        asked: Vec::new(),
    });
    Ok(Step {
        session: next,
        happened: vec![Happening::new("started", "", Some(id), "")],
        turn: Some(TurnStep {
            record,
            events: vec![TurnEvent::State {
                state: TurnState::Running,
                error: None,
            }],
        }),
    })
}

/// How a turn ended, according to its runner or to the daemon that ends an abandoned turn.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) state: TurnState,
    pub(crate) error: Option<TurnError>,
    pub(crate) usage: Usage,
    pub(crate) plan: Option<PlanId>,
}

/// Ends the running turn, and frees the session.
pub(crate) fn end(
    session: &SessionRecord,
    id: TurnId,
    turn: &TurnRecord,
    end: End,
    now: UnixMs,
) -> Result<Step, Refused> {
    if session.active.as_ref().map(|active| active.turn) != Some(id) || turn.state != TurnState::Running {
        return Err(Refused::NotActive);
    }
    let mut next = session.clone();
    next.changed_at = now;
    next.active = None;
    next.last_state = Some(end.state);
    let mut record = turn.clone();
    record.state = end.state;
    record.ended_at = Some(now);
    record.error = end.error.clone();
    record.usage = end.usage;
    record.plan = end.plan;
    Ok(Step {
        session: next,
        happened: vec![Happening::new("ended", "", Some(id), end.state.name())],
        turn: Some(TurnStep {
            record,
            events: vec![TurnEvent::State {
                state: end.state,
                error: end.error,
            }],
        }),
    })
}

pub(crate) fn request_stop(session: &SessionRecord, id: TurnId, stop: Stop) -> Result<Step, Refused> {
    let mut next = session.clone();
    let active = next.active.as_mut().filter(|active| active.turn == id);
    let active = active.ok_or(Refused::NotActive)?;
    if active.stop.is_some() {
        return Err(Refused::Nothing);
    }
    let happened = Happening::new("stop_requested", &stop.by, Some(id), stop.why.clone());
    next.changed_at = stop.at;
    active.stop = Some(stop);
    Ok(alone(next, happened))
}

/// Removes a queued turn.
pub(crate) fn remove_queued(
    session: &SessionRecord,
    id: TurnId,
    turn: &TurnRecord,
    by: &Actor,
    why: &str,
    now: UnixMs,
) -> Result<Step, Refused> {
    let mut next = queued(session, id, turn, now)?;
    next.queue.retain(|waiting| *waiting != id);
    let mut record = turn.clone();
    record.state = TurnState::Cancelled;
    record.ended_at = Some(now);
    let happened = Happening::new("removed", by, Some(id), why);
    Ok(Step {
        session: next,
        happened: vec![happened],
        turn: Some(TurnStep {
            record,
            events: vec![TurnEvent::State {
                state: TurnState::Cancelled,
                error: None,
            }],
        }),
    })
}

/// Changes a queued prompt.
pub(crate) fn edit_queued(
    session: &SessionRecord,
    id: TurnId,
    turn: &TurnRecord,
    prompt: Prompt,
    by: &Actor,
    now: UnixMs,
) -> Result<Step, Refused> {
    let next = queued(session, id, turn, now)?;
    let mut record = turn.clone();
    record.prompt = prompt.clone();
    Ok(Step {
        session: next,
        happened: vec![Happening::new(
            "edited",
            by,
            Some(id),
            first_line(&prompt.text, TITLE_CHARACTERS),
        )],
        turn: Some(TurnStep {
            record,
            events: vec![TurnEvent::Edited { prompt }],
        }),
    })
}

/// Moves a queued prompt to another position in the queue.
pub(crate) fn move_queued(
    session: &SessionRecord,
    id: TurnId,
    to: usize,
    by: &Actor,
    now: UnixMs,
) -> Result<Step, Refused> {
    let from = session.queue.iter().position(|waiting| *waiting == id);
    let from = from.ok_or(Refused::NotQueued)?;
    let to = to.min(session.queue.len() - 1);
    if from == to {
        return Err(Refused::Nothing);
    }
    let mut next = session.clone();
    next.changed_at = now;
    let moved = next.queue.remove(from);
    next.queue.insert(to, moved);
    Ok(alone(
        next,
        Happening::new("moved", by, Some(id), format!("to place {to}")),
    ))
}

fn queued(
    session: &SessionRecord,
    id: TurnId,
    turn: &TurnRecord,
    now: UnixMs,
) -> Result<SessionRecord, Refused> {
    if !session.queue.contains(&id) || turn.state != TurnState::Queued {
        return Err(Refused::NotQueued);
    }
    let mut next = session.clone();
    next.changed_at = now;
    Ok(next)
}

/// What a tool wants to do, as stored in the head of its session and in a question. A truncated subject is longer than
/// the limit, which distinguishes it from a complete one.
pub(crate) fn subject_to_ask(mut subject: String) -> String {
    if subject.len() > SUBJECT_LIMIT_BYTES {
        subject.truncate(subject.floor_char_boundary(SUBJECT_LIMIT_BYTES));
        while subject.len() <= SUBJECT_LIMIT_BYTES {
            subject.push('…');
        }
    }
    subject
}

/// Asks the user a question, in the running turn.
pub(crate) fn ask(session: &SessionRecord, turn: TurnId, asked: Asked, now: UnixMs) -> Result<Step, Refused> {
    let mut next = session.clone();
    next.changed_at = now;
    let active = next.active.as_mut().filter(|active| active.turn == turn);
    let active = active.ok_or(Refused::NotActive)?;
    if active.asked.len() >= ASKED_LIMIT {
        // Drop the oldest answered question. If none is answered, more are open than anyone could handle.
        let done = active.asked.iter().position(|asked| asked.answer.is_some());
        active.asked.remove(done.ok_or(Refused::QueueFull)?);
    }
    let happened = Happening::new(
        "asked",
        "",
        Some(turn),
        format!("{}: {}", asked.tool, asked.subject),
    );
    active.asked.push(asked);
    Ok(alone(next, happened))
}

/// Answers a question. The first answer stands: a later one is refused, and its caller finds the first one in
/// the record.
pub(crate) fn answer(
    session: &SessionRecord,
    permission: PermissionId,
    answer: PermissionAnswer,
    by: &Actor,
    now: UnixMs,
) -> Result<Step, Refused> {
    let mut next = session.clone();
    next.changed_at = now;
    let active = next.active.as_mut().ok_or(Refused::NotAsked)?;
    let turn = active.turn;
    let asked = active.asked.iter_mut().find(|asked| asked.id == permission);
    let asked = asked.ok_or(Refused::NotAsked)?;
    if asked.answer.is_some() {
        return Err(Refused::Nothing);
    }
    asked.answer = Some((answer, by.clone()));
    let (tool, subject) = (asked.tool.clone(), asked.subject.clone());
    if answer == PermissionAnswer::AllowAlways && subject.len() <= SUBJECT_LIMIT_BYTES {
        // Allow exactly what was asked: a rule for everything the tool does would override the rules that
        // deny.
        let rule = PermissionRule {
            tool,
            pattern: Some(exactly(&subject)),
            permission: RulePermission::Allow,
        };
        learn(&mut next, rule);
    }
    let happened = Happening::new("answered", by, Some(turn), answer.name());
    Ok(alone(next, happened))
}

/// Adds a rule from an answer before all others, and drops the oldest ones beyond the limits.
fn learn(session: &mut SessionRecord, rule: PermissionRule) {
    let mut learned: Vec<PermissionRule> = session
        .rules
        .drain(..session.learned_rules.min(session.rules.len()))
        .collect();
    learned.retain(|known| *known != rule);
    learned.insert(0, rule);
    learned.truncate(LEARNED_RULES_LIMIT);
    let mut bytes = 0;
    let kept = learned.iter().take_while(|rule| {
        bytes += rule.tool.len() + rule.pattern.as_ref().map_or(0, String::len);
        bytes <= LEARNED_RULES_LIMIT_BYTES
    });
    let kept = kept.count();
    learned.truncate(kept);
    session.learned_rules = learned.len();
    session.rules.splice(0..0, learned);
}

pub(crate) fn alone(session: SessionRecord, happened: Happening) -> Step {
    Step {
        session,
        happened: vec![happened],
        turn: None,
    }
}

fn chain(first: Step, second: impl FnOnce(&SessionRecord) -> Result<Step, Refused>) -> Result<Step, Refused> {
    let mut both = second(&first.session)?;
    both.happened.splice(0..0, first.happened);
    if let (Some(turn), Some(before)) = (&mut both.turn, first.turn) {
        turn.events.splice(0..0, before.events);
    }
    Ok(both)
}

pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    cut(line.unwrap_or_default(), most)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(session: &SessionRecord) -> Vec<&str> {
        let patterns = session.rules.iter().map(|rule| rule.pattern.as_deref());
        patterns.map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn a_session_learns_a_bounded_number_of_rules_and_forgets_the_oldest() {
        let given = r#"{"tool": "shell", "permission": "ask"}"#;
        let record = format!(
            r#"{{"facts": {{"directory": "/d", "opened_by": "", "opened_at": 0}}, "title": "", "agent": {{"name": "a"}},
                "rules": [{given}], "prompts": 0, "changed_at": 0}}"#
        );
        let mut session: SessionRecord = serde_json::from_str(&record).unwrap();
        let allow = |session: &mut SessionRecord, pattern: String| {
            let (tool, pattern, permission) = ("shell".to_owned(), Some(pattern), RulePermission::Allow);
            learn(
                session,
                PermissionRule {
                    tool,
                    pattern,
                    permission,
                },
            );
        };
        for number in 0..LEARNED_RULES_LIMIT + 10 {
            allow(&mut session, format!("make {number}"));
        }
        // The same answer twice yields one rule.
        allow(&mut session, "make 200".to_owned());
        let rules = learned(&session);
        assert_eq!(
            (rules.len(), session.learned_rules),
            (LEARNED_RULES_LIMIT + 1, LEARNED_RULES_LIMIT)
        );
        assert_eq!(rules[..2], ["make 200", "make 265"]);
        assert_eq!(
            rules[LEARNED_RULES_LIMIT - 1..],
            ["make 10", ""],
            "what was given stays"
        );
        // Long rules push out more than one each.
        for number in 0..100 {
            allow(
                &mut session,
                format!("{number} {}", "x".repeat(SUBJECT_LIMIT_BYTES - 10)),
            );
        }
        let rules = learned(&session);
        let bytes: usize = rules.iter().map(|rule| rule.len()).sum();
        assert!(
            bytes < LEARNED_RULES_LIMIT_BYTES && rules.len() < 70,
            "{bytes} in {}",
            rules.len()
        );
        assert_eq!(rules.last(), Some(&""));
    }

    #[test]
    fn a_subject_that_was_cut_is_longer_than_one_that_is_whole() {
        for (given, is_cut) in [
            (SUBJECT_LIMIT_BYTES, false),
            (SUBJECT_LIMIT_BYTES + 1, true),
            (1 << 20, true),
        ] {
            for character in ["x", "ä", "€"] {
                let count = given.div_ceil(character.len());
                let whole = character.repeat(count);
                let asked = subject_to_ask(whole.clone());
                assert!(asked.len() <= SUBJECT_LIMIT_BYTES + 3, "{}", asked.len());
                let expected = is_cut || whole.len() > SUBJECT_LIMIT_BYTES;
                assert_eq!(
                    (asked.len() > SUBJECT_LIMIT_BYTES, asked != whole),
                    (expected, expected)
                );
            }
        }
    }
}
