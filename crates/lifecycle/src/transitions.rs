//! The decisions: how an event changes a server. What callers want stands in `wishes.rs`, what is reported about
//! processes in `reports.rs`, and here is what both are made of. The invariants stand in `state.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Seen, ServerGeneration,
    state::{
        Answer, Effect, Entry, Episode, EpisodeNumber, Event, Kind, Leaving, Now, Origin, Outcome, Phase,
        REMEMBERED_OUTCOMES, Refusal, Step, Then,
    },
};

/// A setting that means 'for ever' must not overflow the clock.
const LONGEST_PAUSE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl<S: Clone> Entry<S> {
    /// Takes in an event.
    pub(crate) fn step(&self, event: &Event<S>, now: Now<'_>) -> Step<S> {
        let mut moving = Moving {
            entry: self.clone(),
            effects: Vec::new(),
            has_changed: false,
            now,
        };
        let answer = moving.take_in(event);
        Step {
            next: moving.has_changed.then_some(moving.entry),
            effects: moving.effects,
            answer,
        }
    }
}

/// An entry in the middle of a step.
pub(crate) struct Moving<'a, S> {
    pub(crate) entry: Entry<S>,
    pub(crate) effects: Vec<Effect<S>>,
    pub(crate) has_changed: bool,
    pub(crate) now: Now<'a>,
}

impl<S: Clone> Moving<'_, S> {
    fn take_in(&mut self, event: &Event<S>) -> Answer<S> {
        if let Some(seen) = event.seen().other_than(self.entry.generation) {
            let current = Box::new(self.entry.clone());
            return Answer::Moved { seen, current };
        }
        match event {
            Event::Start { .. } => self.ask(Kind::Start),
            Event::Restart {
                seen: Seen::Exactly(_),
            } if self.entry.phase.is_stopped_by_request() => Answer::Refused(Refusal::Stopped),
            Event::Restart { .. } => self.ask(Kind::Restart),
            Event::Stop { .. } => self.stop(),
            Event::Rest => self.rest(),
            Event::Lease => self.lease(),
            Event::LeaseReturned => self.lease_returned(),
            Event::Want => self.want(),
            Event::Launched { generation, server } => self.launched(*generation, server),
            Event::LaunchFailed { generation, reason } => self.launch_failed(*generation, reason),
            Event::Ended { generation, reason } => self.ended(*generation, reason),
            Event::StopFinished { generation } => self.stop_finished(*generation),
            Event::PauseOver { episode } => self.pause_over(*episode),
            Event::IdleTime { generation } => self.idle_time(*generation),
            Event::ProbeAnswered { generation } => self.probe_answered(*generation),
            Event::ProbeFailed { generation, reason } => self.probe_failed(*generation, reason),
        }
    }

    pub(crate) fn begin(&mut self, kind: Kind, origin: Origin) -> Episode {
        self.entry.episodes += 1;
        Episode {
            number: EpisodeNumber(self.entry.episodes),
            kind,
            origin,
            failures: usize::from(origin == Origin::Crash),
        }
    }

    /// Settles the episode that is under way, if there is one. The caller leaves the way up in the same step
    /// (invariant 3).
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        let Some(episode) = self.entry.episode() else {
            return;
        };
        let outcomes = Arc::make_mut(&mut self.entry.outcomes);
        if outcomes.len() == REMEMBERED_OUTCOMES {
            outcomes.pop_front();
        }
        outcomes.push_back((episode.number, outcome));
    }

    /// Launches the next process. The caller knows that there is none: the phase has none, or its end was reported
    /// just now (invariant 1).
    pub(crate) fn launch(&mut self, episode: Episode) {
        let generation = self.entry.generation.next();
        self.entry.generation = generation;
        self.enter(Phase::Launching { generation, episode });
        self.effects.push(Effect::Launch { generation });
    }

    pub(crate) fn pause(&mut self, episode: Episode, until: Instant) {
        self.enter(Phase::Pausing { until, episode });
        self.effects.push(Effect::Pause {
            episode: episode.number,
            until,
        });
    }

    pub(crate) fn end(&mut self, generation: ServerGeneration, server: S, then: Then) {
        self.enter(Phase::Ending {
            generation,
            what: Leaving::Server,
            then,
        });
        self.effects.push(Effect::Stop { generation, server });
    }

    pub(crate) fn later(&self, pause: Duration) -> Instant {
        self.now.time + pause.min(LONGEST_PAUSE)
    }

    pub(crate) fn enter(&mut self, phase: Phase<S>) {
        let before = self.entry.state();
        self.entry.phase = phase;
        if self.entry.state() != before {
            self.entry.since = Some(self.now.time);
        }
        self.has_changed = true;
    }

    pub(crate) fn mark_idleness(&mut self) {
        let (leases, now) = (self.entry.leases, self.now.time);
        if let Phase::Ready { idle_since, .. } = &mut self.entry.phase {
            *idle_since = (leases == 0).then_some(now);
        }
    }

    pub(crate) fn join(&self) -> Answer<S> {
        let episode = self.entry.episode();
        assert!(episode.is_some(), "whoever joins has something to join");
        episode.map_or(Answer::Late, |episode| Answer::Join(episode.number))
    }

    pub(crate) fn late(&mut self) -> Answer<S> {
        self.entry.late_events += 1;
        self.has_changed = true;
        Answer::Late
    }
}
