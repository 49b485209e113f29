//! Reports about processes, and how they change a server. The invariants are in `state.rs`.

use std::sync::Arc;

use crate::{
    AfterCrash, Failure, ServerGeneration, StoppedBy,
    state::{
        AfterEnd, Answer, Effect, Episode, EpisodeKind, EpisodeNumber, EpisodeOrigin, EpisodeOutcome,
        FailedServer, Leaving, Phase,
    },
    transitions::Transition,
};

impl<S: Clone> Transition<'_, S> {
    pub(crate) fn launched(&mut self, reported: ServerGeneration, server: &S) -> Answer<S> {
        match &self.entry.phase {
            Phase::Launching { generation, episode } if *generation == reported => {
                if episode.kind == EpisodeKind::Restart {
                    self.entry.restarts += 1;
                }
                self.settle(EpisodeOutcome::Ready(reported));
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
                // No phase refers to this server, so nobody else would stop it.
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
                let attempts = self.record_failure(reason).max(episode.failures);
                if episode.origin == EpisodeOrigin::Crash && !self.is_over_limit(attempts) {
                    let pause = self.now.settings.pause_after(attempts, self.now.fraction);
                    self.pause(episode, self.later(pause));
                } else {
                    let failed = self.failed_server(reason, attempts);
                    self.settle(EpisodeOutcome::Failed(failed.clone()));
                    self.enter(Phase::Failed(failed));
                }
                Answer::Done
            }
            // The launch was abandoned, so its failure doesn't matter.
            Phase::Ending {
                generation,
                what: Leaving::Launch,
                then,
            } if generation == reported => {
                self.proceed(then);
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
                self.proceed(then);
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
                    self.end(generation, server, AfterEnd::Stopped { by });
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

    /// Handles a server that has become unusable. It is replaced, unless that has happened too often.
    fn replace_broken(&mut self, generation: ServerGeneration, server: S, reason: &Arc<Failure>) {
        self.entry.crashes += 1;
        let attempts = self.record_failure(reason);
        let episode = self.begin(EpisodeKind::Restart, EpisodeOrigin::Crash);
        let waits = self.now.settings.after_crash == AfterCrash::WaitForRequest;
        let then = if waits || self.is_over_limit(attempts) {
            let failed = self.failed_server(reason, attempts);
            AfterEnd::GiveUp { episode, failed }
        } else {
            let pause = self.now.settings.pause_after(attempts, self.now.fraction);
            AfterEnd::Launch {
                episode,
                not_before: self.later(pause),
            }
        };
        // The server may still be alive, for example if it only closed its output. So it is stopped like any
        // other.
        self.end(generation, server, then);
    }

    /// The process is gone: starts what was planned to follow it.
    fn proceed(&mut self, then: AfterEnd) {
        match then {
            AfterEnd::Launch { episode, not_before } if self.now.time < not_before => {
                self.pause(episode, not_before);
            }
            AfterEnd::Launch { episode, .. } => self.launch(episode),
            AfterEnd::GiveUp { failed, .. } => {
                self.settle(EpisodeOutcome::Failed(failed.clone()));
                self.enter(Phase::Failed(failed));
            }
            AfterEnd::Stopped { by } => self.enter(Phase::Stopped { by }),
        }
    }

    /// Records a failure and returns how many there were recently.
    fn record_failure(&mut self, reason: &Arc<Failure>) -> usize {
        self.entry.last_error = Some(Arc::clone(reason));
        let settings = self.now.settings;
        let failures = Arc::make_mut(&mut self.entry.failures);
        failures.retain(|failed| self.now.time.saturating_duration_since(*failed) < settings.failure_window);
        // Nobody asks for more than one above the limit.
        if failures.len() > settings.max_failures {
            failures.pop_front();
        }
        failures.push_back(self.now.time);
        failures.len()
    }

    fn is_over_limit(&self, attempts: usize) -> bool {
        attempts > self.now.settings.max_failures
    }

    fn failed_server(&self, reason: &Arc<Failure>, attempts: usize) -> FailedServer {
        let settings = self.now.settings;
        let pause = if self.is_over_limit(attempts) {
            settings.given_up_for
        } else {
            // If a requested start fails, the next request doesn't retry it at once.
            settings.pause_after(attempts.max(2), self.now.fraction)
        };
        FailedServer {
            reason: Arc::clone(reason),
            attempts,
            retry_at: self.later(pause),
        }
    }
}
