//! What is reported about processes, and what that does to a server. The invariants stand in `state.rs`.

use std::sync::Arc;

use crate::{
    AfterCrash, Failure, ServerGeneration, StoppedBy,
    state::{Answer, Defeat, Effect, Episode, EpisodeNumber, Kind, Leaving, Origin, Outcome, Phase, Then},
    transitions::Moving,
};

impl<S: Clone> Moving<'_, S> {
    pub(crate) fn launched(&mut self, reported: ServerGeneration, server: &S) -> Answer<S> {
        match &self.entry.phase {
            Phase::Launching { generation, episode } if *generation == reported => {
                if episode.kind == Kind::Restart {
                    self.entry.restarts += 1;
                }
                self.settle(Outcome::Ready(reported));
                self.entry.failed_probes = 0;
                self.enter(Phase::Ready {
                    generation: reported,
                    server: server.clone(),
                    idle_since: None,
                });
                self.mark_idleness();
                self.effects.push(Effect::Watch {
                    generation: reported,
                    server: server.clone(),
                });
                Answer::Done
            }
            Phase::Ending {
                generation,
                what: Leaving::Launch,
                then,
            } if *generation == reported => {
                let then = then.clone();
                self.end(reported, server.clone(), then);
                Answer::Done
            }
            _ => {
                // Nobody knows this one, so nobody else would stop it.
                self.effects.push(Effect::Stop {
                    generation: reported,
                    server: server.clone(),
                });
                self.late()
            }
        }
    }

    pub(crate) fn launch_failed(&mut self, reported: ServerGeneration, reason: &Arc<Failure>) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Launching { generation, episode } if generation == reported => {
                let episode = Episode {
                    failures: episode.failures + 1,
                    ..episode
                };
                let attempts = self.count_failure(reason).max(episode.failures);
                if episode.origin == Origin::Crash && !self.is_too_much(attempts) {
                    let pause = self.now.settings.pause_after(attempts, self.now.fraction);
                    self.pause(episode, self.later(pause));
                } else {
                    let defeat = self.defeat(reason, attempts);
                    self.settle(Outcome::Failed(defeat.clone()));
                    self.enter(Phase::Failed(defeat));
                }
                Answer::Done
            }
            // It was given up, so that it failed is no news.
            Phase::Ending {
                generation,
                what: Leaving::Launch,
                then,
            } if generation == reported => {
                self.go_on(then);
                Answer::Done
            }
            _ => self.late(),
        }
    }

    pub(crate) fn ended(&mut self, reported: ServerGeneration, reason: &Arc<Failure>) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } if generation == reported => {
                self.replace_broken(generation, server, reason);
                Answer::Done
            }
            _ => self.late(),
        }
    }

    pub(crate) fn stop_finished(&mut self, reported: ServerGeneration) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Ending {
                generation,
                what: Leaving::Server,
                then,
            } if generation == reported => {
                self.go_on(then);
                Answer::Done
            }
            _ => self.late(),
        }
    }

    pub(crate) fn pause_over(&mut self, reported: EpisodeNumber) -> Answer<S> {
        match self.entry.phase {
            Phase::Pausing { until, episode } if episode.number == reported => {
                if until <= self.now.time {
                    self.launch(episode);
                }
                Answer::Done
            }
            _ => self.late(),
        }
    }

    pub(crate) fn idle_time(&mut self, reported: ServerGeneration) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Ready {
                generation,
                server,
                idle_since,
            } if generation == reported => {
                let idle_after = self.now.settings.idle_after;
                let is_over = idle_since
                    .is_some_and(|since| self.now.time.saturating_duration_since(since) >= idle_after);
                if is_over {
                    let by = StoppedBy::Idleness;
                    self.end(generation, server, Then::Rest { by });
                }
                Answer::Done
            }
            _ => self.late(),
        }
    }

    pub(crate) fn probe_answered(&mut self, reported: ServerGeneration) -> Answer<S> {
        if !self.entry.is_ready(reported) {
            return self.late();
        }
        if self.entry.failed_probes > 0 {
            self.entry.failed_probes = 0;
            self.has_changed = true;
        }
        Answer::Done
    }

    pub(crate) fn probe_failed(&mut self, reported: ServerGeneration, reason: &Arc<Failure>) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } if generation == reported => {
                self.entry.failed_probes = self.entry.failed_probes.saturating_add(1);
                self.entry.last_error = Some(Arc::clone(reason));
                self.has_changed = true;
                let limit = self.now.settings.restart_after_failed_probes;
                if limit.is_some_and(|limit| limit.get() <= self.entry.failed_probes) {
                    self.replace_broken(generation, server, reason);
                }
                Answer::Done
            }
            _ => self.late(),
        }
    }

    /// A server is of no more use: another one takes its place, unless that happened too often.
    fn replace_broken(&mut self, generation: ServerGeneration, server: S, reason: &Arc<Failure>) {
        self.entry.crashes += 1;
        let attempts = self.count_failure(reason);
        let episode = self.begin(Kind::Restart, Origin::Crash);
        let waits = self.now.settings.after_crash == AfterCrash::WaitForWish;
        let then = if waits || self.is_too_much(attempts) {
            let defeat = self.defeat(reason, attempts);
            Then::GiveUp { episode, defeat }
        } else {
            let pause = self.now.settings.pause_after(attempts, self.now.fraction);
            Then::Launch {
                episode,
                not_before: self.later(pause),
            }
        };
        // It may have ended in part only, such as one that closed its output and lives on: it is stopped like any.
        self.end(generation, server, then);
    }

    /// The process is gone: what was to come after it.
    fn go_on(&mut self, then: Then) {
        match then {
            Then::Launch { episode, not_before } if self.now.time < not_before => {
                self.pause(episode, not_before);
            }
            Then::Launch { episode, .. } => self.launch(episode),
            Then::GiveUp { defeat, .. } => {
                self.settle(Outcome::Failed(defeat.clone()));
                self.enter(Phase::Failed(defeat));
            }
            Then::Rest { by } => self.enter(Phase::Stopped { by }),
        }
    }

    /// Notes a failure, and says how many there were of late.
    fn count_failure(&mut self, reason: &Arc<Failure>) -> usize {
        self.entry.last_error = Some(Arc::clone(reason));
        let settings = self.now.settings;
        let failures = Arc::make_mut(&mut self.entry.failures);
        failures.retain(|failed| self.now.time.saturating_duration_since(*failed) < settings.failure_window);
        // One more than too many is as much as anybody asks for.
        if failures.len() > settings.max_failures {
            failures.pop_front();
        }
        failures.push_back(self.now.time);
        failures.len()
    }

    fn is_too_much(&self, attempts: usize) -> bool {
        attempts > self.now.settings.max_failures
    }

    fn defeat(&self, reason: &Arc<Failure>, attempts: usize) -> Defeat {
        let settings = self.now.settings;
        let pause = if self.is_too_much(attempts) {
            settings.given_up_for
        } else {
            // A wish that failed is not repeated at once by the next who wishes the same.
            settings.pause_after(attempts.max(2), self.now.fraction)
        };
        Defeat {
            reason: Arc::clone(reason),
            attempts,
            retry_at: self.later(pause),
        }
    }
}
