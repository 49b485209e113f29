//! Random histories of a plan, checked against rules too simple to be wrong.

use eventlog::UnixMs;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use protocol::{ChangesetId, CheckState, PlanId, PlanState};

use crate::state::{self, Extent, Step};
use crate::state_cases::{actor, in_state, running};
use crate::{Attempt, CheckEnd, Landed, ManifestId, PlanRecord, Refused, Unapplied};

#[derive(Clone, Debug)]
enum Try {
    Start(&'static str),
    Close(usize),
    Write(&'static str, u8),
    Enter(&'static str, &'static str),
    Leave(&'static str),
    Seal,
    Discard(bool),
    Begin(Attempt),
    Land,
    Refuse,
    AddCheck,
    StartCheck(&'static str),
    EndCheck(&'static str, bool),
}

fn any_try() -> impl Strategy<Value = Try> {
    let actor = || select(&["ann", "bob"][..]);
    let name = || select(&["one", "two"][..]);
    let attempt = select(&[Attempt::Apply, Attempt::Undo, Attempt::Refresh][..]);
    prop_oneof![
        3 => actor().prop_map(Try::Start),
        2 => (0..8_usize).prop_map(Try::Close),
        3 => (actor(), 1..4_u8).prop_map(|(by, count)| Try::Write(by, count)),
        2 => (name(), select(&["shell", "check"][..])).prop_map(|(run_id, tool)| Try::Enter(run_id, tool)),
        3 => name().prop_map(Try::Leave),
        2 => Just(Try::Seal),
        1 => any::<bool>().prop_map(Try::Discard),
        4 => attempt.prop_map(Try::Begin),
        4 => Just(Try::Land),
        1 => Just(Try::Refuse),
        1 => Just(Try::AddCheck),
        2 => name().prop_map(Try::StartCheck),
        3 => (name(), any::<bool>()).prop_map(|(job, passed)| Try::EndCheck(job, passed)),
    ]
}

/// What the model remembers of a history, in the simplest form.
#[derive(Debug, Default)]
struct Model {
    started: Vec<(ChangesetId, &'static str)>,
    closed: Vec<ChangesetId>,
    entries: u64,
    landing: Option<Attempt>,
    applied: u32,
    undone: u32,
}

impl Model {
    /// Attempts a step. `None` if it makes no sense at this point.
    fn attempt(&mut self, plan: PlanId, record: &PlanRecord, wanted: &Try, now: UnixMs) -> Option<Step> {
        let by = actor("ann");
        Some(match wanted {
            Try::Start(name) => {
                let id = ChangesetId::generate();
                let step = state::start_changeset(plan, record, id, &actor(name), "", now);
                if step.is_ok() {
                    self.started.push((id, name));
                }
                step
            }
            Try::Close(index) => {
                let (id, _) = *self.started.get(*index)?;
                self.closed.push(id);
                Ok(state::close_changeset(record, id, now))
            }
            Try::Write(name, count) => {
                let extent = Extent {
                    files: 1,
                    fingerprint: ManifestId([u8::try_from(self.entries % 7).unwrap_or_default(); 32]),
                };
                let step = state::record(plan, record, &actor(name), u64::from(*count), extent, now);
                if step.is_ok() {
                    self.entries += u64::from(*count);
                }
                step
            }
            Try::Enter(run_id, tool) => {
                if record.running.iter().any(|running| running.id == *run_id) {
                    return None;
                }
                state::command_started(plan, record, running(run_id, tool), now)
            }
            Try::Leave(run_id) => Ok(state::command_ended(record, run_id, Ok(()), now)),
            Try::Seal => state::seal(plan, record, &by, now),
            Try::Discard(give_up) => {
                let work = if *give_up {
                    Unapplied::GiveUp
                } else {
                    Unapplied::Keep
                };
                state::discard(plan, record, &by, work, now)
            }
            Try::Begin(what) => {
                let begun = state::begin_landing(plan, record, *what, "landing", now);
                if begun.is_ok() {
                    self.landing = Some(*what);
                }
                begun.map(|next| (next, Vec::new()))
            }
            Try::Land => {
                let what = self.landing.take()?;
                let state = match what {
                    Attempt::Apply => PlanState::Applied,
                    Attempt::Undo => PlanState::Undone,
                    Attempt::Refresh => record.state,
                };
                self.applied += u32::from(what == Attempt::Apply);
                self.undone += u32::from(what == Attempt::Undo);
                let landed = Landed {
                    landing: "landing".to_owned(),
                    number: 0,
                    commit: None,
                    commit_wanted: None,
                };
                Ok(state::landed(
                    record,
                    what,
                    &by,
                    state,
                    landed,
                    String::new(),
                    now,
                ))
            }
            Try::Refuse => {
                let refused = Refused {
                    what: self.landing.take()?,
                    by,
                    at: now,
                    conflicts: Vec::new(),
                };
                Ok(state::refused(record, refused, now))
            }
            Try::AddCheck => state::add_checks(plan, record, vec!["make".to_owned()], now),
            Try::StartCheck(job) => state::check_started(plan, record, "make", job, &by, now),
            Try::EndCheck(job, passed) => {
                let end = CheckEnd {
                    passed: *passed,
                    text: String::new(),
                    at: now,
                };
                Ok(state::check_ended(record, "make", job, end, &by, now))
            }
        })
    }

    fn check_step(&self, before: &PlanRecord, wanted: &Try, next: &PlanRecord) {
        if before.state == PlanState::Discarded {
            assert_eq!(next.state, PlanState::Discarded, "what was given up stays so");
            assert_eq!(
                (next.entries, next.changesets, &next.landing),
                (before.entries, before.changesets, &None)
            );
        }
        if before.state != next.state {
            let is_landing = matches!(wanted, Try::Land);
            assert_eq!(
                is_landing,
                matches!(next.state, PlanState::Applied | PlanState::Undone),
                "only a landing applies or takes back: {wanted:?}"
            );
            assert!(
                before.state != PlanState::Applied || is_landing,
                "what is applied is taken back, or stays: {wanted:?}"
            );
        }
        if before.landing.is_some() && !matches!(wanted, Try::Land | Try::Refuse) {
            let untouched = |record: &PlanRecord| {
                (
                    record.state,
                    record.entries,
                    record.changesets,
                    record.running.clone(),
                    record.landing.clone(),
                    record.fingerprint,
                )
            };
            assert_eq!(untouched(before), untouched(next), "{wanted:?} during a landing");
        }
        if let (Try::Begin(what), None, Some(_)) = (wanted, &before.landing, &next.landing) {
            assert!(before.running.is_empty());
            let mut states = before.checks.iter().map(|check| check.state(before.fingerprint));
            assert!(*what != Attempt::Apply || states.all(|state| state == CheckState::Passed));
            let is_applied = before.state == PlanState::Applied;
            assert_eq!(is_applied, *what == Attempt::Undo);
        }
    }

    fn check_record(&self, record: &PlanRecord) {
        assert_eq!(record.entries, self.entries);
        assert_eq!(record.changesets, self.started.len() as u64);
        assert_eq!(record.landing.is_some(), self.landing.is_some());
        assert!(
            record.open_changesets.is_empty() || record.state == PlanState::Open,
            "only an open plan has open changesets"
        );
        for name in ["ann", "bob"] {
            // The actor's own open changesets, in the order they were started; the last one is current.
            let mine = record.open_changesets.iter().filter(|open| *open.actor == *name);
            let mine: Vec<ChangesetId> = mine.map(|open| open.id).collect();
            let expected = self.started.iter().filter(|(id, _)| mine.contains(id));
            let expected: Vec<ChangesetId> = expected
                .filter(|(_, owner)| *owner == name)
                .map(|(id, _)| *id)
                .collect();
            assert_eq!(mine, expected);
            assert_eq!(
                state::current_changeset(record, &actor(name)),
                mine.last().copied()
            );
        }
        assert!(
            record
                .open_changesets
                .iter()
                .all(|open| !self.closed.contains(&open.id)),
            "one that was closed is never open again"
        );
        let may_be_undone = self.applied >= self.undone && self.applied - self.undone <= 1;
        assert!(may_be_undone, "an undo takes one apply back");
        assert_eq!(record.state == PlanState::Applied, self.applied > self.undone);
    }
}

#[test]
fn every_history_keeps_the_rules() {
    let config = Config {
        cases: 512,
        failure_persistence: None,
        ..Config::default()
    };
    let histories = proptest::collection::vec(any_try(), 1..60);
    let outcome = TestRunner::new(config).run(&histories, |history| {
        let plan = PlanId::generate();
        let (mut record, mut model) = (in_state(PlanState::Open), Model::default());
        for (now, wanted) in (2_000..).zip(&history) {
            let before = record.clone();
            match model.attempt(plan, &record, wanted, UnixMs(now)) {
                None | Some(Err(_)) => {}
                Some(Ok((next, said))) => {
                    assert!(
                        next != before || said.is_empty(),
                        "{wanted:?} says what it did not do"
                    );
                    model.check_step(&before, wanted, &next);
                    record = next;
                }
            }
            model.check_record(&record);
        }
        Ok(())
    });
    outcome.unwrap();
}
