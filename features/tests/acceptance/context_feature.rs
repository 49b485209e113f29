//! How `context_pipeline.feature` is run: on the real pipeline, and with the algorithms of the reports in it.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use context::{Answer, ParallelStrategyExecutor, Pipeline, StrategyName, StrategyOutcome};
use cucumber::{World, given, then, when};
use kernel::{BreakerSettings, CircuitBreaker, CircuitState, ManualClock, SystemClock};
use process::Tasks;

use crate::{
    context_faulty::{Fault, Faulty},
    context_kit::{Gate, LONG, MOODY, STEADY, ask, pipeline, pipeline_that_meets},
    runner::{Tally, Which, run},
    subjects::breaker::{Breaker as _, Place, Unlocked},
};

#[test]
fn context_pipeline() {
    let tally = run::<ContextWorld>("context_pipeline.feature", Which::All, |world| {
        world.fault = None;
    });
    assert_eq!(
        tally,
        Tally {
            passed: 19,
            failed: 0
        }
    );
}

#[test]
fn the_unlocked_count_and_set_of_the_report_are_caught_in_the_pipeline() {
    caught("unlocked", 6, |world| world.fault = Some(Fault::Unlocked));
}

#[test]
fn a_strategy_that_takes_the_others_with_it_is_caught() {
    caught("silent", 7, |world| world.fault = Some(Fault::Silent));
}

#[test]
fn strategies_that_look_one_by_one_are_caught() {
    caught("one-by-one", 1, |world| world.fault = Some(Fault::OneByOne));
}

/// All scenarios that must catch a fault do.
fn caught(fault: &'static str, scenarios: usize, set_up: fn(&mut ContextWorld)) {
    let which = Which::WhatCatchesThe(fault);
    let tally = run::<ContextWorld>("context_pipeline.feature", which, set_up);
    let expected = Tally {
        passed: 0,
        failed: scenarios,
    };
    assert_eq!(tally, expected);
}

#[derive(Debug, World)]
#[world(init = Self::new)]
struct ContextWorld {
    fault: Option<Fault>,
    /// The clock of the breaker. Strategies go by the real time.
    clock: Arc<ManualClock>,
    breakers: Option<CircuitBreaker>,
    unlocked: Option<NoDebug<Unlocked>>,
    /// Where the algorithm of the report is held, and how many threads meet there.
    held_at: Arc<HeldAt>,
    tasks: Tasks,
    gate: Arc<Gate>,
    failure_threshold: u32,
    pipeline: Option<Arc<Pipeline>>,
    other: Option<Arc<Pipeline>>,
    held: Option<thread::JoinHandle<Answer>>,
    /// The answers of the last step.
    answers: Vec<Answer>,
    /// How often `moody` was asked in it.
    asked: usize,
}

/// What has no way to be shown.
struct NoDebug<T>(T);

impl<T> std::fmt::Debug for NoDebug<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("…")
    }
}

/// Where the algorithm of the report is held.
#[derive(Debug, Default)]
struct HeldAt(std::sync::Mutex<Option<(Place, Arc<Barrier>)>>);

impl HeldAt {
    fn set(&self, place: Place, barrier: &Arc<Barrier>) {
        *self.0.lock().unwrap() = Some((place, Arc::clone(barrier)));
    }

    fn pass(&self, place: Place) {
        let held = self.0.lock().unwrap().clone();
        if let Some((at, barrier)) = held
            && at == place
        {
            barrier.wait();
            if place == Place::BetweenCountAndSwitch {
                // Once when it is there, and once when the other one is done.
                barrier.wait();
            }
        }
    }
}

/// How many workers there are.
const WORKERS: usize = 4;
/// The budget where it does not matter.
const BUDGET: usize = 2000;

impl ContextWorld {
    fn new() -> Self {
        Self {
            fault: None,
            clock: ManualClock::new(),
            breakers: None,
            unlocked: None,
            held_at: Arc::default(),
            tasks: Tasks::default(),
            gate: Gate::new(),
            failure_threshold: 1,
            pipeline: None,
            other: None,
            held: None,
            answers: Vec::new(),
            asked: 0,
        }
    }

    /// Makes the pipeline when it is first asked, for how much time `moody` gets depends on whether it is to hang.
    fn pipeline(&mut self, query: &str) -> Arc<Pipeline> {
        let hangs = query.starts_with("hangs");
        if self.pipeline.is_none() || hangs {
            self.pipeline = Some(self.make(hangs));
        }
        Arc::clone(self.pipeline.as_ref().unwrap())
    }

    fn make(&mut self, hangs: bool) -> Arc<Pipeline> {
        match self.fault {
            None => pipeline(self.executor(), &self.gate, hangs),
            Some(fault) => pipeline(self.faulty(fault), &self.gate, hangs),
        }
    }

    fn executor(&mut self) -> ParallelStrategyExecutor {
        let clock = Arc::clone(&self.clock);
        let settings = BreakerSettings {
            failure_threshold: self.failure_threshold,
            jitter: 0.0,
            ..BreakerSettings::default()
        };
        let breakers = self
            .breakers
            .get_or_insert_with(|| CircuitBreaker::new(settings, clock).unwrap());
        ParallelStrategyExecutor::new(
            WORKERS,
            breakers.clone(),
            self.tasks.clone(),
            SystemClock::shared(),
        )
    }

    fn faulty(&mut self, fault: Fault) -> Faulty {
        let held_at = Arc::clone(&self.held_at);
        let threshold = self.failure_threshold;
        let unlocked = self.unlocked.get_or_insert_with(|| {
            NoDebug(Unlocked::with_pause(
                threshold,
                Arc::new(move |place| held_at.pass(place)),
            ))
        });
        Faulty::new(fault, unlocked.0.clone())
    }

    /// Asks on so many threads at once, each so many times.
    fn ask_at_once(&mut self, threads: usize, each: usize, query: &str) {
        let pipeline = self.pipeline(query);
        let start = Arc::new(Barrier::new(threads));
        if self.fault.is_some() {
            // All threads have read the count before any of them writes it.
            self.held_at
                .set(Place::BetweenReadAndWrite, &Arc::new(Barrier::new(threads)));
        }
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let (pipeline, start, query) = (Arc::clone(&pipeline), Arc::clone(&start), query.to_owned());
                thread::spawn(move || {
                    start.wait();
                    (0..each)
                        .map(|_| ask(&pipeline, &query, BUDGET))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        self.answers = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        self.note_asked();
    }

    /// Asks on one thread, one question after the other.
    fn ask(&mut self, times: usize, query: &str, budget: usize) {
        let pipeline = self.pipeline(query);
        let query = query.to_owned();
        let asking = thread::spawn(move || (0..times).map(|_| ask(&pipeline, &query, budget)).collect());
        self.answers = asking.join().unwrap();
        self.note_asked();
    }

    fn note_asked(&mut self) {
        self.asked = self.gate.asked.forget_permits(usize::MAX);
    }

    fn failures(&self) -> u64 {
        match (&self.breakers, &self.unlocked) {
            (Some(breakers), _) => {
                let circuit = breakers.get(&StrategyName::new(MOODY).circuit());
                circuit.map_or(0, |circuit| circuit.failures)
            }
            (None, Some(unlocked)) => unlocked.0.failures(),
            (None, None) => 0,
        }
    }

    fn is_open(&self) -> bool {
        match (&self.breakers, &self.unlocked) {
            (Some(breakers), _) => breakers.is_open(&StrategyName::new(MOODY).circuit()),
            (None, Some(unlocked)) => unlocked.0.is_open(),
            (None, None) => false,
        }
    }
}

/// What became of a strategy.
fn outcome<'a>(answer: &'a Answer, strategy: &str) -> &'a StrategyOutcome {
    let mut reports = answer.strategies.iter();
    let report = reports.find(|report| report.strategy.as_str() == strategy);
    &report.expect("every strategy is reported").outcome
}

fn has_found(answer: &Answer, strategy: &str) -> bool {
    let file = format!("{strategy}.txt");
    let mut fragments = answer.fragments.iter();
    fragments.any(|fragment| fragment.path.as_str() == file) && answer.text.contains(&file)
}

/// Waits until something is so, and fails if it never is.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(1)); // tidy: it looks again, with a bound
    }
}

#[given(expr = "a pipeline whose circuits open after {int} failures")]
fn a_pipeline(world: &mut ContextWorld, failure_threshold: u32) {
    world.failure_threshold = failure_threshold;
}

#[given("a pipeline whose strategies find something once all of them look")]
fn a_pipeline_that_meets(world: &mut ContextWorld) {
    world.pipeline = Some(match world.fault {
        None => pipeline_that_meets(world.executor()),
        Some(fault) => pipeline_that_meets(world.faulty(fault)),
    });
}

#[given("another one with the same breaker")]
fn another(world: &mut ContextWorld) {
    world.other = Some(world.make(false));
}

#[given(expr = "{int} questions in which \"moody\" failed")]
fn questions_failed(world: &mut ContextWorld, count: usize) {
    world.ask(count, "fails", BUDGET);
}

#[given("a question in which \"moody\" is held")]
fn a_held_question(world: &mut ContextWorld) {
    let pipeline = world.pipeline("is held");
    world.held = Some(thread::spawn(move || ask(&pipeline, "is held", BUDGET)));
    let gate = Arc::clone(&world.gate);
    until("moody is asked", || gate.asked.available_permits() == 1);
}

#[when(regex = r#"^(\d+) threads ask (\d+) questions each, in which "moody" (.+), all at once$"#)]
fn many_ask(world: &mut ContextWorld, threads: usize, each: usize, does: String) {
    world.ask_at_once(threads, each, &does);
}

#[when(regex = r#"^(\d+) questions are asked in which "moody" ([^,]+)$"#)]
fn questions(world: &mut ContextWorld, count: usize, does: String) {
    world.ask(count, &does, BUDGET);
}

#[when(regex = r#"^(\d+) questions are asked in which "moody" ([^,]+), with a budget of (\d+)$"#)]
fn questions_with_budget(world: &mut ContextWorld, count: usize, does: String, budget: usize) {
    world.ask(count, &does, budget);
}

#[when(regex = r#"^a question is asked in which "moody" (\w+)$"#)]
fn a_question_in_which(world: &mut ContextWorld, does: String) {
    world.ask(1, &does, BUDGET);
}

#[when("a question is asked")]
fn a_question(world: &mut ContextWorld) {
    world.ask(1, "finds", BUDGET);
}

#[when("a question is asked of the other pipeline")]
fn a_question_of_the_other(world: &mut ContextWorld) {
    world.pipeline = world.other.take();
    world.ask(1, "finds", BUDGET);
}

#[when(regex = r#"^"moody" fails in a question and, before that is done, there is (.+)$"#)]
fn fails_and(world: &mut ContextWorld, other: String) {
    let pipeline = world.pipeline("fails");
    let barrier = Arc::new(Barrier::new(2));
    if world.fault.is_some() {
        world.held_at.set(Place::BetweenCountAndSwitch, &barrier);
    }
    let failing = {
        let (pipeline, barrier) = (Arc::clone(&pipeline), Arc::clone(&barrier));
        let is_ours = world.fault.is_none();
        thread::spawn(move || {
            if is_ours {
                // Ours has no middle in which it could be held, so that the two start together.
                barrier.wait();
            }
            ask(&pipeline, "fails", BUDGET)
        })
    };
    barrier.wait();
    let name = StrategyName::new(MOODY).circuit();
    match other.trim() {
        "a question in which it finds" => {
            let other = thread::spawn(move || ask(&pipeline, "finds", BUDGET));
            world.answers = vec![other.join().unwrap()];
        }
        "a reset of its circuit" => match (&world.breakers, &world.unlocked) {
            (Some(breakers), _) => drop(breakers.reset(&name)),
            (None, Some(unlocked)) => unlocked.0.reset(),
            (None, None) => {}
        },
        "a reset of all circuits" => match (&world.breakers, &world.unlocked) {
            (Some(breakers), _) => drop(breakers.reset_all()),
            (None, Some(unlocked)) => unlocked.0.reset_all(),
            (None, None) => {}
        },
        other => panic!("{other}?"),
    }
    if world.fault.is_some() {
        barrier.wait();
    }
    failing.join().unwrap();
}

#[when("the cooldown has passed")]
fn the_cooldown(world: &mut ContextWorld) {
    world.clock.advance(BreakerSettings::default().cooldown);
}

#[when(expr = "{int} threads ask at once, and \"moody\" is held until all others have their answers")]
fn probes(world: &mut ContextWorld, threads: usize) {
    let pipeline = world.pipeline("is held");
    let (start, done) = (Arc::new(Barrier::new(threads)), Arc::new(AtomicUsize::new(0)));
    let asking: Vec<_> = (0..threads)
        .map(|_| {
            let (pipeline, start, done) = (Arc::clone(&pipeline), Arc::clone(&start), Arc::clone(&done));
            thread::spawn(move || {
                start.wait();
                let answer = ask(&pipeline, "is held", BUDGET);
                done.fetch_add(1, Ordering::SeqCst);
                answer
            })
        })
        .collect();
    until("all but one have their answers", || {
        done.load(Ordering::SeqCst) >= threads - 1
    });
    // More than one of them would be let go as well, and counted below.
    world.gate.go.add_permits(threads);
    world.answers = asking.into_iter().map(|thread| thread.join().unwrap()).collect();
    world.note_asked();
}

#[when("\"moody\" is let go, and finds something")]
fn let_go(world: &mut ContextWorld) {
    world.gate.go.add_permits(1);
    let held = world.held.take().expect("a question is held");
    world.answers = vec![held.join().unwrap()];
}

#[when(expr = "{int} threads ask at once, with budgets from 0 to {int}")]
fn with_budgets(world: &mut ContextWorld, threads: usize, most: usize) {
    let pipeline = world.pipeline("finds");
    let start = Arc::new(Barrier::new(threads));
    let asking: Vec<_> = (0..threads)
        .map(|place| {
            let (pipeline, start) = (Arc::clone(&pipeline), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                ask(&pipeline, "finds", most * place / (threads - 1))
            })
        })
        .collect();
    world.answers = asking.into_iter().map(|thread| thread.join().unwrap()).collect();
}

#[then(expr = "{int} failures of \"moody\" are counted")]
fn failures_are_counted(world: &mut ContextWorld, count: u64) {
    assert_eq!(world.failures(), count);
}

#[then("every answer has what \"steady\" found")]
fn steady_found(world: &mut ContextWorld) {
    assert!(!world.answers.is_empty());
    for answer in &world.answers {
        assert_eq!(outcome(answer, STEADY), &StrategyOutcome::Ran { hits: 20 });
        assert!(has_found(answer, STEADY), "{answer:?}");
    }
}

#[then(regex = r#"^every answer has what "steady" found, and says that "moody" (.+)$"#)]
fn steady_found_and_moody(world: &mut ContextWorld, is_reported: String) {
    steady_found(world);
    for answer in &world.answers {
        let reported = match outcome(answer, MOODY) {
            StrategyOutcome::Failed { why } if !why.is_empty() => "failed",
            StrategyOutcome::TimedOut { .. } => "timed out",
            StrategyOutcome::NotApplicable { .. } => "does not apply",
            other => panic!("{other:?}"),
        };
        assert_eq!(reported, is_reported);
        assert!(!has_found(answer, MOODY));
    }
}

#[then("\"moody\" was not asked, and every answer says so")]
fn not_asked(world: &mut ContextWorld) {
    assert_eq!(world.asked, 0);
    for answer in &world.answers {
        assert!(
            matches!(outcome(answer, MOODY), StrategyOutcome::Open { .. }),
            "{answer:?}"
        );
    }
}

#[then(expr = "\"moody\" was asked in {int} of these questions")]
fn was_asked(world: &mut ContextWorld, count: usize) {
    assert_eq!(world.asked, count);
    let ran = world.answers.iter().filter(|answer| has_found(answer, MOODY));
    assert_eq!(ran.count(), count);
}

#[then(expr = "\"moody\" never hung more than {int} times at once")]
fn hung_at_once(world: &mut ContextWorld, count: usize) {
    assert_eq!(world.gate.most_hangs.load(Ordering::SeqCst), count);
}

#[then("the answer has what \"moody\" found")]
fn moody_found(world: &mut ContextWorld) {
    assert!(world.answers.iter().all(|answer| has_found(answer, MOODY)));
}

#[then(expr = "the circuit of \"moody\" is {word}")]
fn the_circuit_is(world: &mut ContextWorld, expected: String) {
    assert_eq!(if world.is_open() { "open" } else { "closed" }, expected);
    if let Some(breakers) = &world.breakers {
        let circuit = breakers.get(&StrategyName::new(MOODY).circuit()).unwrap();
        assert_eq!(circuit.state == CircuitState::Closed, expected == "closed");
    }
}

#[then("the circuit of \"moody\" is not open without a counted failure")]
fn not_torn(world: &mut ContextWorld) {
    assert!(
        !world.is_open() || world.failures() > 0,
        "switched off, and no failure is counted"
    );
}

#[then("every strategy of the answer has found something")]
fn all_found(world: &mut ContextWorld) {
    for answer in &world.answers {
        for report in &answer.strategies {
            assert_eq!(report.outcome, StrategyOutcome::Ran { hits: 1 }, "{answer:?}");
        }
    }
}

#[then("no task and no worker is left behind")]
fn nothing_left(world: &mut ContextWorld) {
    let tasks = world.tasks.clone();
    until("no task is left", || tasks.running() == 0);
}

#[then("every answer is empty, and says that all strategies were left out")]
fn all_empty(world: &mut ContextWorld) {
    assert_eq!(world.asked, 0);
    for answer in &world.answers {
        assert_eq!((answer.text.as_str(), answer.tokens), ("", 0));
        assert!(answer.fragments.is_empty());
        let mut reports = answer.strategies.iter();
        assert!(reports.all(|report| report.outcome == StrategyOutcome::LeftOut));
    }
}

#[then("no answer has more tokens than its budget")]
fn within_budget(world: &mut ContextWorld) {
    for answer in &world.answers {
        assert!(answer.tokens <= answer.budget_tokens, "{answer:?}");
    }
}

#[then("some answer is as full as its budget allows")]
fn as_full(world: &mut ContextWorld) {
    let is_full = |answer: &Answer| answer.tokens * 10 > answer.budget_tokens * 9;
    let mut answers = world.answers.iter().filter(|answer| answer.budget_tokens > 0);
    assert!(answers.any(is_full));
}
