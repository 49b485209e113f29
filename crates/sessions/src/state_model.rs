//! Checks random histories of a session against the invariants numbered in `state.rs`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use eventlog::UnixMs;
use proptest::prelude::*;
use protocol::{
    AgentChoice, BootId, HomeId, IfBusy, PermissionAnswer, PermissionId, SessionId, TurnError, TurnId,
    TurnState, Usage,
};

use crate::event::TurnEvent;
use crate::owner::Owner;
use crate::prompt::Prompt;
use crate::session::{Asked, SessionFacts, SessionRecord, Stop};
use crate::state::{self, Draft, End, Refused, Step};
use crate::turn::TurnRecord;

/// An action. Numbers select one of the turns or questions so far, modulo their count.
#[derive(Clone, Debug)]
enum Act {
    Accept { refuse: bool, has_runner: bool },
    Begin,
    End(TurnState),
    Stop(usize),
    Remove(usize),
    Edit(usize),
    Move(usize, usize),
    Ask,
    Answer(usize, PermissionAnswer),
}

fn act() -> impl Strategy<Value = Act> {
    let number = || 0..12_usize;
    let state = prop::sample::select(vec![
        TurnState::Done,
        TurnState::Failed,
        TurnState::Cancelled,
        TurnState::Interrupted,
    ]);
    let answer = prop::sample::select(vec![
        PermissionAnswer::Allow,
        PermissionAnswer::AllowAlways,
        PermissionAnswer::Deny,
    ]);
    prop_oneof![
        4 => (any::<bool>(), any::<bool>()).prop_map(|(refuse, has_runner)| Act::Accept { refuse, has_runner }),
        3 => Just(Act::Begin),
        3 => state.prop_map(Act::End),
        1 => number().prop_map(Act::Stop),
        1 => number().prop_map(Act::Remove),
        1 => number().prop_map(Act::Edit),
        1 => (number(), 0..5_usize).prop_map(|(turn, to)| Act::Move(turn, to)),
        2 => Just(Act::Ask),
        2 => (number(), answer).prop_map(|(question, answer)| Act::Answer(question, answer)),
    ]
}

/// The session and all its turns, as the log would store them.
struct World {
    id: SessionId,
    owner: Owner,
    session: SessionRecord,
    turns: BTreeMap<TurnId, TurnRecord>,
    /// In the order in which they were accepted.
    order: Vec<TurnId>,
    questions: Vec<PermissionId>,
    /// The order in which they should begin.
    expected: Vec<TurnId>,
    begun: Vec<TurnId>,
    now: u64,
}

fn prompt(text: &str) -> Prompt {
    Prompt {
        text: text.to_owned(),
        attachments: Vec::new(),
    }
}

impl World {
    fn new() -> Self {
        let session = SessionRecord {
            home: None,
            facts: SessionFacts {
                directory: PathBuf::from("/somewhere"),
                opened_by: "ann".into(),
                opened_at: UnixMs(0),
                forked_from: None,
            },
            title: String::new(),
            agent: AgentChoice::default(),
            rules: Vec::new(),
            learned_rules: 0,
            plan: None,
            active: None,
            queue: Vec::new(),
            last_turn: None,
            prompts: 0,
            last_state: None,
            archived: false,
            removing: false,
            forks: 0,
            changed_at: UnixMs(0),
        };
        Self {
            id: SessionId::generate(),
            owner: Owner {
                home: HomeId::generate(),
                boot: BootId::generate(),
            },
            session,
            turns: BTreeMap::new(),
            order: Vec::new(),
            questions: Vec::new(),
            expected: Vec::new(),
            begun: Vec::new(),
            now: 0,
        }
    }

    fn turn(&self, number: usize) -> Option<TurnId> {
        let count = self.order.len();
        (count > 0).then(|| self.order[number % count])
    }

    fn active(&self) -> Option<TurnId> {
        self.session.active.as_ref().map(|active| active.turn)
    }

    fn act(&mut self, act: &Act) {
        self.now += 1;
        let now = UnixMs(self.now);
        let before = self.session.clone();
        match act {
            Act::Accept { refuse, has_runner } => self.accept(*refuse, *has_runner, now),
            Act::Begin => {
                if let Some(next) = self.session.queue.first().copied() {
                    let step = state::begin(&self.session, next, &self.turns[&next], self.owner, now);
                    assert_eq!(step.is_ok(), before.active.is_none());
                    self.take(Some(next), step);
                }
            }
            Act::End(to) => {
                if let Some(turn) = self.active() {
                    let step = state::end(&self.session, turn, &self.turns[&turn], end(*to), now);
                    assert!(step.is_ok());
                    self.take(Some(turn), step);
                    assert!(self.session.active.is_none(), "the end frees the session");
                } else if let Some(turn) = self.order.first().copied() {
                    let late = state::end(&self.session, turn, &self.turns[&turn], end(*to), now);
                    assert_eq!(late.map(drop).unwrap_err(), Refused::NotActive);
                }
            }
            Act::Stop(number) => {
                if let Some(turn) = self.turn(*number) {
                    let stop = Stop {
                        by: format!("{}", self.now).into(),
                        why: String::new(),
                        at: now,
                        error: None,
                    };
                    let stopped = before.active.as_ref().and_then(|active| active.stop.clone());
                    let step = state::request_stop(&self.session, turn, stop);
                    self.take(None, step);
                    let now = self
                        .session
                        .active
                        .as_ref()
                        .and_then(|active| active.stop.clone());
                    assert!(stopped.is_none() || now == stopped, "invariant 5");
                }
            }
            Act::Remove(number) => {
                if let Some(turn) = self.turn(*number) {
                    let by = "ann".into();
                    let step = state::remove_queued(&self.session, turn, &self.turns[&turn], &by, "", now);
                    assert_eq!(step.is_ok(), before.queue.contains(&turn));
                    if step.is_ok() {
                        self.expected.retain(|waiting| *waiting != turn);
                    }
                    self.take(Some(turn), step);
                }
            }
            Act::Edit(number) => {
                if let Some(turn) = self.turn(*number) {
                    let (text, by) = (prompt("edited"), "ann".into());
                    let step = state::edit_queued(&self.session, turn, &self.turns[&turn], text, &by, now);
                    assert_eq!(step.is_ok(), before.queue.contains(&turn));
                    self.take(Some(turn), step);
                }
            }
            Act::Move(number, to) => {
                if let Some(turn) = self.turn(*number) {
                    let step = state::move_queued(&self.session, turn, *to, &"ann".into(), now);
                    self.take(None, step);
                    self.expected.clone_from(&self.session.queue);
                }
            }
            Act::Ask => {
                let turn = self.active().or_else(|| self.turn(0));
                if let Some(turn) = turn {
                    let asked = Asked {
                        id: PermissionId::generate(),
                        tool: "shell".to_owned(),
                        subject: String::new(),
                        answer: None,
                    };
                    let id = asked.id;
                    let step = state::ask(&self.session, turn, asked, now);
                    assert!(before.active.is_some() || step.is_err());
                    if step.is_ok() {
                        self.questions.push(id);
                    }
                    self.take(None, step);
                }
            }
            Act::Answer(number, answer) => {
                if let Some(id) = self.questions.get(number % self.questions.len().max(1)).copied() {
                    let answered = |session: &SessionRecord| {
                        let active = session.active.as_ref()?;
                        active.asked.iter().find(|asked| asked.id == id)?.answer.clone()
                    };
                    let first = answered(&self.session);
                    let by = format!("{}", self.now).into();
                    let step = state::answer(&self.session, id, *answer, &by, now);
                    self.take(None, step);
                    assert!(first.is_none() || answered(&self.session) == first, "invariant 5");
                }
            }
        }
    }

    fn accept(&mut self, refuse: bool, has_runner: bool, now: UnixMs) {
        let id = TurnId::generate();
        let draft = Draft {
            home: self.owner.home,
            id,
            session: self.id,
            prompt: prompt("do it"),
            agent: AgentChoice::default(),
            finish: None,
            by: "ann".into(),
        };
        let if_busy = if refuse { IfBusy::Refuse } else { IfBusy::Queue };
        let step = state::accept(
            &self.session,
            draft,
            if_busy,
            has_runner.then_some(self.owner),
            now,
        );
        let is_refused = refuse
            && self
                .session
                .active
                .as_ref()
                .is_some_and(|active| active.stop.is_none());
        assert_eq!(step.is_err(), is_refused);
        if step.is_ok() {
            self.order.push(id);
            self.expected.push(id);
        }
        self.take(Some(id), step);
    }

    /// Applies a step, as a commit would, and checks all invariants.
    fn take(&mut self, turn: Option<TurnId>, step: Result<Step, Refused>) {
        let Ok(step) = step else { return };
        assert!(!step.happened.is_empty(), "what changes is told");
        self.session = step.session;
        if let (Some(id), Some(changed)) = (turn, step.turn) {
            if let Some(before) = self.turns.get(&id) {
                assert!(!before.state.is_terminal(), "invariant 3");
            }
            let last = changed.events.iter().rev().find_map(|event| match event {
                TurnEvent::State { state, .. } => Some(*state),
                _ => None,
            });
            assert!(
                last.is_none_or(|last| last == changed.record.state),
                "the stream says what the head says"
            );
            if changed.record.state == TurnState::Running && self.begun.last() != Some(&id) {
                assert_eq!(self.expected.first(), Some(&id), "invariant 4");
                self.expected.remove(0);
                assert_eq!(changed.record.previous, self.begun.last().copied(), "invariant 2");
                self.begun.push(id);
            }
            self.turns.insert(id, changed.record);
        }
        self.check();
    }

    fn check(&self) {
        for (id, turn) in &self.turns {
            assert_eq!(
                turn.state == TurnState::Running,
                self.active() == Some(*id),
                "invariant 1"
            );
            assert_eq!(
                turn.state == TurnState::Queued,
                self.session.queue.contains(id),
                "invariant 1"
            );
        }
        assert_eq!(self.session.last_turn, self.begun.last().copied(), "invariant 2");
        assert!(
            self.active()
                .is_none_or(|turn| Some(turn) == self.session.last_turn),
            "invariant 2"
        );
        let bytes = eventlog::json_body(&self.session).unwrap();
        let again: SessionRecord = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(again, self.session, "what is written is what is read");
    }
}

fn end(state: TurnState) -> End {
    End {
        state,
        error: (state == TurnState::Failed).then(|| TurnError {
            code: "code".to_owned(),
            text: "text".to_owned(),
        }),
        usage: Usage::default(),
        plan: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_invariants_hold(acts in prop::collection::vec(act(), 1..80)) {
        let mut world = World::new();
        for act in &acts {
            world.act(act);
        }
    }
}
