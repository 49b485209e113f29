//! The decisions: how an event changes a server. This file has the parts that `requests.rs` (what callers ask
//! for) and `reports.rs` (what happens to processes) share. The invariants are in `state.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    ExpectedProcess, ServerGeneration,
    state::{
        AfterEnd, Answer, Effect, Entry, Episode, EpisodeKind, EpisodeNumber, EpisodeOrigin, EpisodeOutcome,
        Event, Leaving, Now, Phase, REMEMBERED_OUTCOMES, Refusal, Step,
    },
};

/// Caps pauses, so that a setting that means "forever" doesn't overflow the clock.
const LONGEST_PAUSE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl<S: Clone> Entry<S> {
    /// Decides what an event changes.
    pub(crate) fn step(&self, event: &Event<S>, now: Now<'_>) -> Step<S> {
        let mut transition = Transition {
            entry: self.clone(),
            effects: Vec::new(),
            has_changed: false,
            now,
        };
        let answer = transition.handle(event);
        Step {
            next: transition.has_changed.then_some(transition.entry),
            effects: transition.effects,
            answer,
        }
    }
}

/// An entry in the middle of a step.
pub(crate) struct Transition<'a, S> {
    pub(crate) entry: Entry<S>,
    pub(crate) effects: Vec<Effect<S>>,
    pub(crate) has_changed: bool,
    pub(crate) now: Now<'a>,
}

impl<S: Clone> Transition<'_, S> {
    fn handle(&mut self, event: &Event<S>) -> Answer<S> {
        if let Some(seen) = event.seen().other_than(self.entry.generation) {
            let current = Box::new(self.entry.clone());
            return Answer::Moved { seen, current };
        }
        match event {
            Event::Start { .. } => self.ask(EpisodeKind::Start),
            Event::Restart {
                seen: ExpectedProcess::Exactly(_),
            } if self.entry.phase.is_stopped_by_request() => Answer::Refused(Refusal::Stopped),
            Event::Restart { .. } => self.ask(EpisodeKind::Restart),
            Event::Stop { .. } => self.stop(),
            Event::StopIfUnused => self.stop_if_unused(),
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

    pub(crate) fn begin(&mut self, kind: EpisodeKind, origin: EpisodeOrigin) -> Episode {
        self.entry.episodes += 1;
        Episode {
            number: EpisodeNumber(self.entry.episodes),
            kind,
            origin,
            failures: usize::from(origin == EpisodeOrigin::Crash),
        }
    }

    /// Settles the episode in progress, if there is one. The caller leaves the way up in the same step (invariant
    /// 3).
    pub(crate) fn settle(&mut self, outcome: EpisodeOutcome) {
        let Some(episode) = self.entry.episode() else {
            return;
        };
        let outcomes = Arc::make_mut(&mut self.entry.outcomes);
        if outcomes.len() == REMEMBERED_OUTCOMES {
            outcomes.pop_front();
        }
        outcomes.push_back((episode.number, outcome));
    }

    /// Launches the next process. The caller makes sure that there is none: the phase has no process, or its end
    /// was just reported (invariant 1).
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

    pub(crate) fn end(&mut self, generation: ServerGeneration, server: S, then: AfterEnd) {
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
        assert!(episode.is_some(), "only an episode in progress can be joined");
        episode.map_or(Answer::Late, |episode| Answer::Join(episode.number))
    }

    pub(crate) fn late(&mut self) -> Answer<S> {
        self.entry.late_events += 1;
        self.has_changed = true;
        Answer::Late
    }
}
