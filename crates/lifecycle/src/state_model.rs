//! Random histories of one server, with a world around it that is too simple to be wrong: which launches, stops and
//! pauses are under way, which processes are alive, who waits and who holds a lease.

mod actions;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use self::actions::{Action, LateKind, actions};
use crate::{
    ExpectedProcess, Failure, LifecycleSettings, ServerGeneration, ServerState,
    state::{
        Answer, Effect, Entry, EpisodeNumber, EpisodeOutcome, EpisodeProgress, Event, Now, Phase, Refusal,
    },
};

fn settings() -> LifecycleSettings {
    LifecycleSettings {
        jitter: 0.0,
        restart_after_failed_probes: std::num::NonZeroU32::new(3),
        ..LifecycleSettings::default()
    }
}

/// What somebody waits for, and what may have come of it.
#[derive(Debug)]
struct Waiter {
    episode: EpisodeNumber,
    /// Whether somebody has asked for a stop since.
    was_stopped: bool,
    /// The last failure since.
    failure: Option<Arc<Failure>>,
}

#[derive(Debug)]
struct World {
    settings: LifecycleSettings,
    now: Instant,
    entry: Entry<u64>,
    launching: Option<ServerGeneration>,
    /// The process that is up and was not told to stop.
    up: Option<ServerGeneration>,
    stopping: Option<ServerGeneration>,
    pauses: Vec<(EpisodeNumber, Instant)>,
    waiters: Vec<Waiter>,
    leases: usize,
    /// Somebody has asked for a stop, and nobody for a start since.
    stays_down: bool,
    /// Failures since somebody asked, with their times.
    failures: Vec<Instant>,
    /// Failures since the crash that is being recovered from; none if somebody has asked since.
    since_crash: Option<usize>,
    idle_since: Option<Instant>,
    late: u64,
}

impl World {
    fn new() -> Self {
        Self {
            settings: settings(),
            now: Instant::now(),
            entry: Entry::new(ServerGeneration::default()),
            launching: None,
            up: None,
            stopping: None,
            pauses: Vec::new(),
            waiters: Vec::new(),
            leases: 0,
            stays_down: false,
            failures: Vec::new(),
            since_crash: None,
            idle_since: None,
            late: 0,
        }
    }

    fn processes(&self) -> Vec<ServerGeneration> {
        [self.launching, self.up, self.stopping]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Takes one event through the machine, and holds what it says against the world.
    fn step(&mut self, event: Event<u64>) -> Answer<u64> {
        let now = Now {
            time: self.now,
            settings: &self.settings,
            fraction: 0.0,
        };
        let step = self.entry.step(&event, now);
        if let Answer::Late = step.answer {
            let next = step.next.as_ref().expect("a late event is counted");
            let as_before = Entry {
                late_events: self.entry.late_events,
                ..next.clone()
            };
            assert_eq!(format!("{as_before:?}"), format!("{:?}", self.entry));
            self.late += 1;
        }
        if let Some(next) = step.next {
            self.entry = next;
        }
        let is_lease_event = matches!(event, Event::LeaseReturned);
        assert!(
            !is_lease_event || step.effects.is_empty(),
            "a lease is dropped anywhere, also where nothing can be spawned"
        );
        for effect in step.effects {
            self.spawn_effect(effect);
        }
        self.check();
        step.answer
    }

    fn spawn_effect(&mut self, effect: Effect<u64>) {
        match effect {
            Effect::Launch { generation } => {
                assert_eq!(self.processes(), [], "a second process is launched");
                assert!(!self.stays_down, "launched after a stop that nobody took back");
                self.launching = Some(generation);
            }
            Effect::Watch { generation, server } => {
                assert_eq!((self.up, server), (Some(generation), generation.get()));
            }
            Effect::Stop { generation, server } => {
                assert_eq!(server, generation.get());
                assert_eq!((self.up.take(), self.stopping), (Some(generation), None));
                self.stopping = Some(generation);
            }
            Effect::Pause { episode, until } => {
                assert!(until > self.now, "a pause without end or length");
                self.pauses.push((episode, until));
            }
        }
    }

    /// What holds at any time.
    fn check(&mut self) {
        let processes = self.processes();
        assert!(processes.len() <= 1, "{processes:?} are alive at once");
        assert_eq!(self.entry.live(), processes.first().copied());
        assert_eq!(self.entry.leases, self.leases);
        assert_eq!(self.entry.late_events, self.late);
        if self.stays_down {
            let state = self.entry.state();
            assert!(
                matches!(state, ServerState::Stopping | ServerState::Stopped { .. }),
                "stopped, and yet {state:?}"
            );
        }
        // Whoever waits is waited for: a launch, a stop or a pause is under way that will end the wait.
        if let Some(episode) = self.entry.episode() {
            let pause = |(number, _): &(EpisodeNumber, Instant)| *number == episode.number;
            assert!(
                self.launching.is_some() || self.stopping.is_some() || self.pauses.iter().any(pause),
                "{episode:?} is left behind"
            );
        }
        let entry = &self.entry;
        self.waiters
            .retain(|waiter| match entry.progress(waiter.episode) {
                EpisodeProgress::UnderWay => true,
                EpisodeProgress::Forgotten => {
                    panic!("{waiter:?} was looked after at each step, and is forgotten")
                }
                EpisodeProgress::Settled(outcome) => {
                    match outcome {
                        EpisodeOutcome::Ready(generation) => {
                            assert!(entry.is_ready(generation), "{waiter:?}")
                        }
                        EpisodeOutcome::Stopped => assert!(waiter.was_stopped, "{waiter:?}"),
                        EpisodeOutcome::Failed(failed) => {
                            assert_eq!(Some(&failed.reason), waiter.failure.as_ref());
                            assert!(matches!(entry.phase, Phase::Failed(_)), "{waiter:?}");
                        }
                    }
                    false
                }
            });
    }

    fn note_answer(&mut self, answer: &Answer<u64>) {
        match answer {
            Answer::Ready { generation, server } => {
                assert_eq!((Some(*generation), *server), (self.up, generation.get()));
            }
            Answer::Join(episode) => self.waiters.push(Waiter {
                episode: *episode,
                was_stopped: false,
                // One that joins the end of a crash that was one too many learns of that crash.
                failure: self.entry.last_error.clone(),
            }),
            Answer::Refused(Refusal::Stopped) => assert!(self.stays_down),
            Answer::Refused(Refusal::Failed(failed)) => {
                assert!(failed.retry_at > self.now);
                assert!(matches!(self.entry.phase, Phase::Failed(_)));
            }
            Answer::Done | Answer::Late | Answer::Leaving(_) | Answer::Moved { .. } => {
                panic!("no answer to a wish: {answer:?}")
            }
        }
    }

    /// A wish that names another process than the newest changes nothing. Returns whether that is so.
    fn is_refused(&mut self, event: &Event<u64>) -> bool {
        let newest = self.entry.generation;
        let (Event::Start { seen } | Event::Restart { seen } | Event::Stop { seen }) = event else {
            panic!("no wish: {event:?}");
        };
        let stale = match seen {
            ExpectedProcess::Exactly(seen) if *seen != newest => *seen,
            ExpectedProcess::Exactly(_) | ExpectedProcess::Any => return false,
        };
        let before = format!("{:?}", self.entry);
        match self.step(event.clone()) {
            Answer::Moved { seen, current } => {
                assert_eq!(seen, stale);
                assert_eq!(format!("{current:?}"), before, "the caller gets what there is");
                assert_eq!(format!("{:?}", self.entry), before, "nothing was changed");
            }
            other => panic!("generation {stale} was seen, it is {newest}, and the answer is {other:?}"),
        }
        true
    }

    fn ask(&mut self, event: Event<u64>) {
        if self.is_refused(&event) {
            return;
        }
        let names_one = matches!(
            event,
            Event::Restart {
                seen: ExpectedProcess::Exactly(_)
            }
        );
        if names_one && self.stays_down {
            let answer = self.step(event);
            assert!(matches!(answer, Answer::Refused(Refusal::Stopped)), "{answer:?}");
            return;
        }
        self.stays_down = false;
        let was_up = self.up;
        let is_start = matches!(event, Event::Start { .. });
        let answer = self.step(event);
        match &answer {
            Answer::Ready { .. } => assert!(is_start && was_up.is_some()),
            Answer::Join(_) => {
                self.failures.clear();
                self.since_crash = None;
            }
            other => panic!("an explicit wish is never refused: {other:?}"),
        }
        self.note_answer(&answer);
    }

    fn fail(&mut self, reason: &Arc<Failure>) -> usize {
        let (now, window) = (self.now, self.settings.failure_window);
        self.failures.push(now);
        self.failures
            .retain(|failed| now.duration_since(*failed) < window);
        for waiter in &mut self.waiters {
            waiter.failure = Some(Arc::clone(reason));
        }
        self.failures.len()
    }

    fn crash(&mut self, generation: ServerGeneration, event: Event<u64>, reason: &Arc<Failure>) {
        let failures = self.fail(reason);
        self.since_crash = Some(1);
        let crashes = self.entry.crashes;
        self.step(event);
        assert_eq!(self.entry.crashes, crashes + 1);
        assert_eq!(self.stopping, Some(generation), "a broken server is stopped too");
        let gives_up = self.entry.state() == ServerState::Stopping;
        assert_eq!(
            gives_up,
            failures > self.settings.max_failures,
            "{failures} failures"
        );
    }

    fn act(&mut self, action: Action) {
        let reason = Arc::new(Failure::new(format!("{action:?} of {}", self.entry.generation)));
        match action {
            Action::Start(saw) => self.ask(Event::Start {
                seen: saw.of(self.entry.generation),
            }),
            Action::Restart(saw) => self.ask(Event::Restart {
                seen: saw.of(self.entry.generation),
            }),
            Action::Stop(saw) => {
                let event = Event::Stop {
                    seen: saw.of(self.entry.generation),
                };
                if self.is_refused(&event) {
                    return;
                }
                self.stays_down = true;
                for waiter in &mut self.waiters {
                    waiter.was_stopped = true;
                }
                let answer = self.step(event);
                let Answer::Leaving(leaving) = answer else {
                    panic!("a stop is never refused: {answer:?}");
                };
                assert_eq!(leaving, self.processes().first().copied());
                assert!(self.waiters.is_empty(), "a stop wakes everybody");
            }
            Action::StopIfUnused => {
                let is_used = self.leases > 0;
                for waiter in self.waiters.iter_mut().filter(|_| !is_used) {
                    waiter.was_stopped = true;
                }
                let answer = self.step(Event::StopIfUnused);
                let Answer::Leaving(leaving) = answer else {
                    panic!("a rest is never refused: {answer:?}");
                };
                let process = self.processes().first().copied();
                assert_eq!(leaving, process.filter(|_| !is_used));
                assert!(is_used || self.up.is_none(), "it is up, and nobody uses it");
                if self.entry.episode().is_none() {
                    self.since_crash = None;
                }
            }
            Action::Lease => {
                // The count is compared within the step, so it is foretold here.
                let refused = self.would_refuse();
                self.leases += usize::from(!refused);
                self.idle_since = if refused { self.idle_since } else { None };
                let answer = self.step(Event::Lease);
                assert_eq!(matches!(answer, Answer::Refused(_)), refused);
                self.note_answer(&answer);
            }
            Action::ReturnLease if self.leases > 0 => {
                self.leases -= 1;
                self.idle_since = (self.leases == 0 && self.up.is_some()).then_some(self.now);
                self.step(Event::LeaseReturned);
            }
            Action::Want => {
                let answer = self.step(Event::Want);
                self.note_answer(&answer);
            }
            Action::Launched => self.launched(),
            Action::LaunchFails => self.launch_fails(&reason),
            Action::Crash => {
                if let Some(generation) = self.up {
                    let event = Event::Ended {
                        generation,
                        reason: Arc::clone(&reason),
                    };
                    self.crash(generation, event, &reason);
                }
            }
            Action::ProbeFails => self.probe_fails(&reason),
            Action::ProbeAnswers => {
                if let Some(generation) = self.up {
                    self.step(Event::ProbeAnswered { generation });
                    assert_eq!(self.entry.failed_probes, 0);
                }
            }
            Action::StopFinishes => {
                if let Some(generation) = self.stopping.take() {
                    self.step(Event::StopFinished { generation });
                }
            }
            Action::Pass(time) => self.pass(time),
            Action::IdleTime => {
                if let Some(generation) = self.up {
                    let idle_for = self.idle_since.map(|since| self.now.duration_since(since));
                    let is_over = idle_for.is_some_and(|time| time >= self.settings.idle_after);
                    self.step(Event::IdleTime { generation });
                    assert_eq!(self.stopping.is_some(), is_over, "idle for {idle_for:?}");
                }
            }
            Action::EarlyPauseOver => {
                if let Phase::Pausing { episode, .. } = self.entry.phase {
                    self.step(Event::PauseOver {
                        episode: episode.number,
                    });
                    assert_eq!(self.launching, None, "the pause is cut short");
                }
            }
            Action::Late(kind, back) => self.late(kind, back, reason),
            Action::ReturnLease => {}
        }
    }

    fn would_refuse(&self) -> bool {
        let too_early = matches!(&self.entry.phase, Phase::Failed(failed) if failed.retry_at > self.now);
        self.stays_down || too_early
    }

    fn launched(&mut self) {
        let Some(generation) = self.launching.take() else {
            return;
        };
        self.up = Some(generation);
        self.since_crash = None;
        self.idle_since = (self.leases == 0).then_some(self.now);
        self.step(Event::Launched {
            generation,
            server: generation.get(),
        });
        // Ready, or stopped at once because nobody wants it any more.
        assert!(self.entry.is_ready(generation) || self.stopping == Some(generation));
    }

    fn launch_fails(&mut self, reason: &Arc<Failure>) {
        let Some(generation) = self.launching.take() else {
            return;
        };
        let is_wanted = self.entry.wants_launch(generation);
        let mut ends_here = self.since_crash.is_none();
        if is_wanted {
            let of_late = self.fail(reason);
            if let Some(failures) = &mut self.since_crash {
                *failures += 1;
                ends_here = of_late.max(*failures) > self.settings.max_failures;
            }
        }
        self.step(Event::LaunchFailed {
            generation,
            reason: Arc::clone(reason),
        });
        if is_wanted {
            let has_ended = matches!(self.entry.phase, Phase::Failed(_));
            assert_eq!(has_ended, ends_here, "{:?}", self.entry);
        }
    }

    fn probe_fails(&mut self, reason: &Arc<Failure>) {
        let Some(generation) = self.up else {
            return;
        };
        let event = Event::ProbeFailed {
            generation,
            reason: Arc::clone(reason),
        };
        if self.entry.failed_probes < 2 {
            self.step(event);
            assert!(self.entry.is_ready(generation));
            assert_eq!(self.entry.last_error.as_ref(), Some(reason));
        } else {
            self.crash(generation, event, reason);
        }
    }

    /// Time passes, and the pauses that are over report.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        let (due, pending) = self.pauses.iter().partition(|(_, until)| *until <= self.now);
        self.pauses = pending;
        let due: Vec<(EpisodeNumber, Instant)> = due;
        for (index, (episode, until)) in due.iter().enumerate() {
            let is_current = matches!(
                &self.entry.phase,
                Phase::Pausing { episode: current, until: end } if current.number == *episode && end == until
            );
            // The check within looks for what a waiter can hope for; those that are due still count.
            self.pauses.extend(&due[index + 1..]);
            self.step(Event::PauseOver { episode: *episode });
            self.pauses.retain(|pause| !due.contains(pause));
            assert!(!is_current || self.launching.is_some(), "the pause is over");
        }
    }

    fn late(&mut self, kind: LateKind, back: u64, reason: Arc<Failure>) {
        let Some(number) = self.entry.generation.get().checked_sub(back) else {
            return;
        };
        let generation = ServerGeneration::from_u64(number);
        let event = match kind {
            LateKind::LaunchFailed => Event::LaunchFailed { generation, reason },
            LateKind::Ended => Event::Ended { generation, reason },
            LateKind::StopFinished => Event::StopFinished { generation },
            LateKind::IdleTime => Event::IdleTime { generation },
            LateKind::ProbeFailed => Event::ProbeFailed { generation, reason },
            LateKind::PauseOver => {
                let Some(number) = self.entry.episodes.checked_sub(back) else {
                    return;
                };
                let episode = EpisodeNumber(number);
                Event::PauseOver { episode }
            }
        };
        let answer = self.step(event);
        assert!(matches!(answer, Answer::Late), "{answer:?}");
    }

    /// Lets everything that is under way come to its end. Servers that are up stay up.
    fn come_to_rest(&mut self) {
        for _ in 0..100 {
            if self.launching.is_none() && self.stopping.is_none() && self.pauses.is_empty() {
                assert!(self.waiters.is_empty(), "left behind: {:?}", self.waiters);
                assert!(self.entry.episode().is_none());
                return;
            }
            self.act(Action::StopFinishes);
            self.act(Action::LaunchFails);
            self.act(Action::Pass(Duration::from_secs(30)));
        }
        panic!("it does not come to rest: {self:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_one_process_and_leaves_no_waiter_behind(actions in actions()) {
        let mut world = World::new();
        for action in actions {
            let before = world.entry.generation;
            world.act(action);
            let launched = world.entry.generation.get() - before.get();
            prop_assert!(launched <= 1, "{launched} launches in one step");
        }
        world.come_to_rest();
    }
}
