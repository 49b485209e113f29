//! The manager under thousands of schedules: who runs next, what servers do, what callers want and when they give up
//! is decided by a seed. What must hold is looked at after every single poll, and once more when all is at rest.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use kernel::Deadline;
use lifecycle::{
    ClientLease, ExpectedProcess, LifecycleError, LifecycleManager, Patience, ServerGeneration, ServerKey,
    ServerState, StoppedBy,
};

use crate::{
    stage::{Stage, key},
    subjects::scripted::{self, AtHandshake, AtStop, Manners, POLITE, Process, Scripted, WhenCancelled},
};

/// How many schedules are tried. Each takes about a millisecond.
const SCHEDULES: u64 = 2_000;
const STEPS: usize = 250;
const NAMES: [&str; 2] = ["ruff", "ty"];

/// A small generator (SplitMix64), so that a seed is all there is to a schedule.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// What callers tell of, in the order in which it happened.
#[derive(Default)]
struct Record {
    leases: BTreeMap<ServerKey, Vec<ClientLease<Scripted>>>,
    /// Whether the last explicit wish for a key was a stop.
    stays_down: BTreeMap<ServerKey, bool>,
    /// How often each kind of answer was given.
    answers: BTreeMap<&'static str, usize>,
    /// Calls that have not been answered.
    under_way: BTreeMap<u64, &'static str>,
}

/// One schedule.
struct Play {
    stage: Stage,
    dice: Dice,
    /// Guards what the callers tell.
    record: Arc<Mutex<Record>>,
    tasks: Vec<(u64, u64)>,
    calls: u64,
    generations: BTreeMap<ServerKey, ServerGeneration>,
}

/// A caller: notes what it gets, and that it is gone when it is dropped.
struct Caller {
    record: Arc<Mutex<Record>>,
    call: u64,
}

impl Caller {
    fn note(&self, answer: &'static str) {
        *self.record.lock().unwrap().answers.entry(answer).or_default() += 1;
    }

    fn note_error(&self, error: &LifecycleError) {
        self.note(match error {
            LifecycleError::ServerRestarting { .. } => "restarting",
            LifecycleError::ServerFailed { .. } => "failed",
            LifecycleError::ServerStopped => "stopped",
            LifecycleError::RequestTimeout { .. } => "timeout",
            LifecycleError::ServerMoved { .. } => "moved",
            other => panic!("a configured server answered {other:?}"),
        });
    }
}

fn newest(manager: &LifecycleManager<Scripted>, key: &ServerKey) -> ServerGeneration {
    let all = manager.list().into_iter();
    let mut of_key = all.filter(|status| status.key == *key);
    of_key.next().map(|status| status.generation).unwrap_or_default()
}

/// What comes of a wish, looked up where nobody can come in between the look and the wish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expected {
    Heard,
    Moved {
        seen: ServerGeneration,
        newest: ServerGeneration,
    },
}

impl Expected {
    fn of(manager: &LifecycleManager<Scripted>, key: &ServerKey, seen: ExpectedProcess) -> Self {
        let newest = newest(manager, key);
        match seen {
            ExpectedProcess::Exactly(seen) if seen != newest => Self::Moved { seen, newest },
            ExpectedProcess::Exactly(_) | ExpectedProcess::Any => Self::Heard,
        }
    }

    fn check<T: std::fmt::Debug>(self, result: &Result<T, LifecycleError>) {
        let found = match result {
            Err(LifecycleError::ServerMoved { seen, current }) => Self::Moved {
                seen: *seen,
                newest: current.generation,
            },
            _ => Self::Heard,
        };
        assert_eq!(found, self, "{result:?}");
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.record.lock().unwrap().under_way.remove(&self.call);
    }
}

impl Play {
    fn new(seed: u64) -> Self {
        Self {
            stage: Stage::new(),
            dice: Dice(seed),
            record: Arc::default(),
            tasks: Vec::new(),
            calls: 0,
            generations: BTreeMap::new(),
        }
    }

    fn any_key(&mut self) -> ServerKey {
        let name: &&str = self.dice.pick(&NAMES);
        key(name)
    }

    fn deadline(&mut self) -> Deadline {
        if self.dice.one_in(2) {
            Deadline::never()
        } else {
            let seconds = self.dice.below(40) as u64;
            self.stage.deadline(seconds)
        }
    }

    /// What a caller saw who now goes and asks for something: none in particular, the newest process, or the one before.
    fn seen(&mut self, key: &ServerKey) -> ExpectedProcess {
        match self.dice.below(4) {
            0 | 1 => ExpectedProcess::Any,
            back => {
                let newest = newest(&self.stage.manager, key).get();
                ExpectedProcess::Exactly(ServerGeneration::from_u64(newest.saturating_sub(back as u64 - 2)))
            }
        }
    }

    fn caller(&mut self, name: &'static str) -> Caller {
        self.calls += 1;
        self.record.lock().unwrap().under_way.insert(self.calls, name);
        Caller {
            record: Arc::clone(&self.record),
            call: self.calls,
        }
    }

    fn call(&mut self) {
        let (key, deadline, scope) = (self.any_key(), self.deadline(), self.stage.scope());
        let (manager, script) = (self.stage.manager.clone(), self.stage.script.clone());
        let kind = self.dice.below(10);
        let task: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = match kind {
            0..=2 => {
                let (caller, is_start) = (self.caller("start"), kind == 0);
                let seen = self.seen(&key);
                Box::pin(async move {
                    let expected = Expected::of(&manager, &key, seen);
                    let is_heard = {
                        let mut record = caller.record.lock().unwrap();
                        let is_down = record.stays_down.get(&key) == Some(&true);
                        let is_heard = expected == Expected::Heard
                            && (is_start || seen == ExpectedProcess::Any || !is_down);
                        if is_heard {
                            record.stays_down.insert(key.clone(), false);
                        }
                        is_heard
                    };
                    let result = if is_start {
                        manager.start_server_if(&key, seen, &deadline, &scope).await
                    } else {
                        manager.restart_server_if(&key, seen, &deadline, &scope).await
                    };
                    expected.check(&result);
                    assert!(is_heard || result.is_err(), "{seen:?} was heard");
                    match result {
                        Ok(_) => caller.note("started"),
                        Err(error) => caller.note_error(&error),
                    }
                })
            }
            3 => {
                let (caller, seen) = (self.caller("stop"), self.seen(&key));
                Box::pin(async move {
                    let expected = Expected::of(&manager, &key, seen);
                    if expected == Expected::Heard {
                        caller.record.lock().unwrap().stays_down.insert(key.clone(), true);
                    }
                    let mut targets = script.alive();
                    targets.retain(|process| process.key == key);
                    let result = manager.stop_server_if(&key, seen, &deadline, &scope).await;
                    expected.check(&result);
                    match result {
                        Ok(()) => {
                            assert!(targets.iter().all(Process::is_gone), "stopped, and yet alive");
                            caller.note("was stopped");
                        }
                        Err(error) => caller.note_error(&error),
                    }
                })
            }
            4 if self.dice.one_in(4) => {
                let caller = self.caller("stop all");
                Box::pin(async move {
                    // One that nobody has wanted so far is not stopped by it.
                    for status in manager.list() {
                        let mut record = caller.record.lock().unwrap();
                        record.stays_down.insert(status.key, true);
                    }
                    let all = manager.stop_all(&deadline, &scope).await.unwrap();
                    let late = !all.still_stopping.is_empty();
                    caller.note(if late { "timeout" } else { "was stopped" });
                })
            }
            _ => {
                let caller = self.caller("client");
                let patience = match self.dice.below(3) {
                    0 => Patience::NoWait,
                    _ => Patience::Wait(deadline),
                };
                Box::pin(async move {
                    match manager.get_client(&key, &patience, &scope).await {
                        Ok(lease) => {
                            let current = lease.server(&Patience::NoWait, &scope).await;
                            if let Ok(current) = current {
                                assert!(!current.server.is_gone(), "a server that is gone was handed out");
                            }
                            caller.note("client");
                            let mut record = caller.record.lock().unwrap();
                            record.leases.entry(key).or_default().push(lease);
                        }
                        Err(error) => caller.note_error(&error),
                    }
                })
            }
        };
        let id = self.stage.scheduler.add(task);
        self.tasks.push((id, self.calls));
    }

    fn direct(&mut self) {
        let processes = self.stage.script.alive();
        if processes.is_empty() {
            return;
        }
        let process = self.dice.pick(&processes).clone();
        match self.dice.below(8) {
            0..=2 => drop(process.answer().then_some(())),
            3 => drop(process.refuse("told to").then_some(())),
            4 => drop(process.crash("told to").then_some(())),
            _ => drop(process.let_go().then_some(())),
        }
    }

    fn manners(&mut self) -> Manners {
        let at_handshake = match self.dice.below(12) {
            0 => AtHandshake::Panics,
            1..=5 => AtHandshake::Answers,
            _ => AtHandshake::Hangs,
        };
        Manners {
            at_handshake,
            when_cancelled: *self.dice.pick(&[WhenCancelled::Goes, WhenCancelled::Ignores]),
            at_stop: *self.dice.pick(&[AtStop::Goes, AtStop::Hangs]),
            ..POLITE
        }
    }

    fn drop_lease(&mut self) {
        let key = self.any_key();
        let lease = {
            let mut record = self.record.lock().unwrap();
            let leases = record.leases.entry(key).or_default();
            let index = self.dice.below(leases.len().max(1));
            (index < leases.len()).then(|| leases.swap_remove(index))
        };
        drop(lease);
    }

    /// A caller goes away in the middle of its call.
    fn drop_caller(&mut self) {
        let Self { record, tasks, .. } = self;
        tasks.retain(|(_, call)| record.lock().unwrap().under_way.contains_key(call));
        if !self.tasks.is_empty() {
            let index = self.dice.below(self.tasks.len());
            self.stage.scheduler.drop_task(self.tasks.swap_remove(index).0);
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0 | 1 => self.call(),
            2..=4 => self.direct(),
            5 => {
                let manners = self.manners();
                self.stage.script.behave(manners);
            }
            6 => self.drop_lease(),
            7 if self.dice.one_in(4) => self.drop_caller(),
            8 => {
                let long = self.dice.one_in(10);
                let time = Duration::from_millis(self.dice.next() % if long { 700_000 } else { 3_000 });
                self.stage.clock.advance(time);
            }
            _ => {
                let dice = &mut self.dice;
                self.stage.scheduler.step(|ready| dice.below(ready));
            }
        }
    }

    fn check(&mut self) {
        assert!(self.stage.script.most_at_once() <= 1, "two processes of one key");
        for status in self.stage.manager.list() {
            let held = self
                .record
                .lock()
                .unwrap()
                .leases
                .get(&status.key)
                .map_or(0, Vec::len);
            assert!(status.leases >= held, "{held} leases are out, {status:?}");
            let before = self.generations.insert(status.key.clone(), status.generation);
            assert!(before.is_none_or(|before| before <= status.generation));
            let launched = self.stage.script.processes();
            let of_key = launched.iter().filter(|process| process.key == status.key);
            let generations: Vec<u64> = of_key.map(|process| process.generation.get()).collect();
            assert!(
                generations.is_sorted_by(|one, next| one < next),
                "{generations:?}"
            );
            // A launch that has just been decided is not on the stage yet, and one that was stopped before it
            // began never comes there.
            let launches = generations.len() as u64;
            assert!(
                (launches..=launches + 1).contains(&status.generation.get()),
                "{status:?}"
            );
        }
    }

    /// Everybody gets an answer, and all that is under way comes to its end.
    fn come_to_rest(&mut self) {
        self.stage.script.behave(POLITE);
        for _ in 0..200 {
            self.stage.scheduler.run();
            self.check();
            let mut has_moved = false;
            for process in self.stage.script.alive() {
                has_moved |= process.answer();
                // One that is up has nothing to wait for.
                has_moved |= process.let_go();
            }
            if !has_moved && self.record.lock().unwrap().under_way.is_empty() {
                break;
            }
            // Pauses are over after this, and nobody has become idle.
            self.stage.clock.advance(Duration::from_secs(1));
        }
        self.stage.clock.advance(Duration::from_secs(30));
        self.stage.scheduler.run();
        let record = self.record.lock().unwrap();
        assert_eq!(record.under_way, BTreeMap::new(), "left behind");
        let (mut up, mut unused) = (0, 0);
        for status in self.stage.manager.list() {
            let held = record.leases.get(&status.key).map_or(0, Vec::len);
            assert_eq!(status.leases, held, "leases are exact: {status:?}");
            let is_up = status.state == ServerState::Ready;
            up += usize::from(is_up);
            unused += usize::from(is_up && held == 0);
            if record.stays_down.get(&status.key) == Some(&true) {
                let by = StoppedBy::Request;
                assert_eq!(status.state, ServerState::Stopped { by }, "a stop wins");
            }
            let is_at_rest = matches!(
                status.state,
                ServerState::Ready | ServerState::Stopped { .. } | ServerState::Failed { .. }
            );
            assert!(is_at_rest, "{status:?}");
        }
        let alive = self.stage.script.alive();
        assert!(
            alive
                .iter()
                .all(|process| process.stage() == scripted::Stage::Answered)
        );
        // One watch per server that is up: nothing else is left. It has an alarm where the server is idle, or was.
        let (tasks, alarms) = (self.stage.scheduler.tasks(), self.stage.clock.pending_alarms());
        assert_eq!((alive.len(), tasks), (up, up));
        assert!(
            (unused..=up).contains(&alarms),
            "{alarms} alarms, {unused} of {up} unused"
        );
    }
}

fn play(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut play = Play::new(seed);
    for _ in 0..STEPS {
        play.step();
        play.check();
    }
    play.come_to_rest();
    let answers = std::mem::take(&mut play.record.lock().unwrap().answers);
    // The leases go outside the lock, since their end is seen by others.
    let leases = std::mem::take(&mut play.record.lock().unwrap().leases);
    drop(leases);
    answers
}

#[test]
fn every_schedule_keeps_one_process_answers_everybody_and_counts_exactly() {
    let mut answers: BTreeMap<&'static str, usize> = BTreeMap::new();
    for seed in 0..SCHEDULES {
        let played = std::panic::catch_unwind(|| play(seed));
        match played {
            Ok(counts) => counts
                .into_iter()
                .for_each(|(answer, count)| *answers.entry(answer).or_default() += count),
            Err(panic) => {
                eprintln!("the schedule of seed {seed} has failed");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // Schedules in which nothing happens would prove nothing.
    for answer in [
        "client",
        "failed",
        "moved",
        "restarting",
        "started",
        "stopped",
        "timeout",
        "was stopped",
    ] {
        let count = answers.get(answer).copied().unwrap_or_default();
        assert!(
            count > SCHEDULES as usize / 20,
            "{answer:?} was answered {count} times: {answers:?}"
        );
    }
}
