//! What callers ask for, and how that changes a server. The invariants are in `state.rs`.

use std::sync::Arc;

use crate::{
    StoppedBy,
    state::{AfterEnd, Answer, Episode, EpisodeKind, EpisodeOrigin, EpisodeOutcome, Leaving, Phase, Refusal},
    transitions::Transition,
};

impl<S: Clone> Transition<'_, S> {
    /// Handles a request for a start or a restart. If the server is on its way up, the caller joins that episode
    /// and takes it over: it is told when the episode fails, and earlier failures no longer count.
    pub(crate) fn ask(&mut self, kind: EpisodeKind) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } => match kind {
                EpisodeKind::Start => return Answer::Ready { generation, server },
                EpisodeKind::Restart => {
                    let episode = self.begin(EpisodeKind::Restart, EpisodeOrigin::Request);
                    let not_before = self.now.time;
                    self.end(generation, server, AfterEnd::Launch { episode, not_before });
                }
            },
            Phase::Launching { generation, episode } => {
                let episode = requested(episode);
                self.enter(Phase::Launching { generation, episode });
            }
            Phase::Pausing { episode, .. } => self.launch(requested(episode)),
            Phase::Ending {
                generation,
                what,
                then,
            } => {
                let episode = match then {
                    AfterEnd::Launch { episode, .. } | AfterEnd::GiveUp { episode, .. } => requested(episode),
                    AfterEnd::Stopped { .. } => self.begin(EpisodeKind::Restart, EpisodeOrigin::Request),
                };
                let not_before = self.now.time;
                self.enter(Phase::Ending {
                    generation,
                    what,
                    then: AfterEnd::Launch { episode, not_before },
                });
            }
            Phase::Stopped { .. } | Phase::Failed(_) => {
                let episode = self.begin(EpisodeKind::Start, EpisodeOrigin::Request);
                self.launch(episode);
            }
        }
        self.entry.failures = Arc::default();
        self.join()
    }

    /// Handles a request to use the server. Starts the server if a start is all that is missing.
    pub(crate) fn want(&mut self) -> Answer<S> {
        match &self.entry.phase {
            Phase::Ready {
                generation, server, ..
            } => Answer::Ready {
                generation: *generation,
                server: server.clone(),
            },
            phase if phase.is_stopped_by_request() => Answer::Refused(Refusal::Stopped),
            Phase::Ending {
                generation,
                what,
                then: AfterEnd::Stopped { .. },
            } => {
                let (generation, what) = (*generation, *what);
                let episode = self.begin(EpisodeKind::Restart, EpisodeOrigin::Request);
                let not_before = self.now.time;
                self.enter(Phase::Ending {
                    generation,
                    what,
                    then: AfterEnd::Launch { episode, not_before },
                });
                self.join()
            }
            Phase::Failed(failed) if self.now.time < failed.retry_at => {
                Answer::Refused(Refusal::Failed(failed.clone()))
            }
            Phase::Stopped { .. } | Phase::Failed(_) => {
                let episode = self.begin(EpisodeKind::Start, EpisodeOrigin::Request);
                self.launch(episode);
                self.join()
            }
            Phase::Launching { .. } | Phase::Pausing { .. } | Phase::Ending { .. } => self.join(),
        }
    }

    /// Takes a lease. Looking at the phase and counting the lease is one step (invariant 5).
    pub(crate) fn lease(&mut self) -> Answer<S> {
        let answer = self.want();
        if !matches!(answer, Answer::Refused(_)) {
            self.entry.leases += 1;
            self.has_changed = true;
            self.mark_idleness();
        }
        answer
    }

    pub(crate) fn lease_returned(&mut self) -> Answer<S> {
        assert!(self.entry.leases > 0, "a lease was returned twice");
        self.entry.leases -= 1;
        self.has_changed = true;
        self.mark_idleness();
        Answer::Done
    }

    /// Stops the server as idle if it has no leases.
    pub(crate) fn stop_if_unused(&mut self) -> Answer<S> {
        if self.entry.leases > 0 {
            return Answer::Leaving(None);
        }
        let by = StoppedBy::Idleness;
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } => self.end(generation, server, AfterEnd::Stopped { by }),
            Phase::Launching { generation, .. } => {
                self.settle(EpisodeOutcome::Stopped);
                self.enter(Phase::Ending {
                    generation,
                    what: Leaving::Launch,
                    then: AfterEnd::Stopped { by },
                });
            }
            Phase::Ending {
                generation,
                what,
                then: AfterEnd::Launch { .. },
            } => {
                self.settle(EpisodeOutcome::Stopped);
                self.enter(Phase::Ending {
                    generation,
                    what,
                    then: AfterEnd::Stopped { by },
                });
            }
            Phase::Pausing { .. } => {
                self.settle(EpisodeOutcome::Stopped);
                self.enter(Phase::Stopped { by });
            }
            // It is already stopped, or about to be.
            Phase::Ending { .. } | Phase::Stopped { .. } | Phase::Failed(_) => {}
        }
        Answer::Leaving(self.entry.live())
    }

    /// Handles a request for a stop, which wins over a start or restart in progress.
    pub(crate) fn stop(&mut self) -> Answer<S> {
        let by = StoppedBy::Request;
        self.settle(EpisodeOutcome::Stopped);
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } => self.end(generation, server, AfterEnd::Stopped { by }),
            Phase::Launching { generation, .. } => self.enter(Phase::Ending {
                generation,
                what: Leaving::Launch,
                then: AfterEnd::Stopped { by },
            }),
            Phase::Ending { generation, what, .. } => self.enter(Phase::Ending {
                generation,
                what,
                then: AfterEnd::Stopped { by },
            }),
            Phase::Pausing { .. } | Phase::Stopped { .. } | Phase::Failed(_) => {
                self.enter(Phase::Stopped { by });
            }
        }
        Answer::Leaving(self.entry.live())
    }
}

/// The same episode, now requested by a caller.
fn requested(episode: Episode) -> Episode {
    Episode {
        origin: EpisodeOrigin::Request,
        failures: 0,
        ..episode
    }
}
