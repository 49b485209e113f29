//! What callers want, and what that does to a server. The invariants stand in `state.rs`.

use std::sync::Arc;

use crate::{
    StoppedBy,
    state::{Answer, Episode, Kind, Leaving, Origin, Outcome, Phase, Refusal, Then},
    transitions::Moving,
};

impl<S: Clone> Moving<'_, S> {
    /// Somebody asks for a start or a restart. What is on its way up already is joined, and becomes theirs: they
    /// are told when it fails, and nothing that failed before counts any more.
    pub(crate) fn ask(&mut self, kind: Kind) -> Answer<S> {
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } => match kind {
                Kind::Start => return Answer::Ready { generation, server },
                Kind::Restart => {
                    let episode = self.begin(Kind::Restart, Origin::Wish);
                    let not_before = self.now.time;
                    self.end(generation, server, Then::Launch { episode, not_before });
                }
            },
            Phase::Launching { generation, episode } => {
                let episode = asked(episode);
                self.enter(Phase::Launching { generation, episode });
            }
            Phase::Pausing { episode, .. } => self.launch(asked(episode)),
            Phase::Ending {
                generation,
                what,
                then,
            } => {
                let episode = match then {
                    Then::Launch { episode, .. } | Then::GiveUp { episode, .. } => asked(episode),
                    Then::Rest { .. } => self.begin(Kind::Restart, Origin::Wish),
                };
                let not_before = self.now.time;
                self.enter(Phase::Ending {
                    generation,
                    what,
                    then: Then::Launch { episode, not_before },
                });
            }
            Phase::Stopped { .. } | Phase::Failed(_) => {
                let episode = self.begin(Kind::Start, Origin::Wish);
                self.launch(episode);
            }
        }
        self.entry.failures = Arc::default();
        self.join()
    }

    /// Somebody wants to use the server. It is started if that is all it takes.
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
                then: Then::Rest { .. },
            } => {
                let (generation, what) = (*generation, *what);
                let episode = self.begin(Kind::Restart, Origin::Wish);
                let not_before = self.now.time;
                self.enter(Phase::Ending {
                    generation,
                    what,
                    then: Then::Launch { episode, not_before },
                });
                self.join()
            }
            Phase::Failed(defeat) if self.now.time < defeat.retry_at => {
                Answer::Refused(Refusal::Failed(defeat.clone()))
            }
            Phase::Stopped { .. } | Phase::Failed(_) => {
                let episode = self.begin(Kind::Start, Origin::Wish);
                self.launch(episode);
                self.join()
            }
            Phase::Launching { .. } | Phase::Pausing { .. } | Phase::Ending { .. } => self.join(),
        }
    }

    /// The look at the phase and the count are one step (invariant 5).
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
        assert!(self.entry.leases > 0, "a lease is given back once");
        self.entry.leases -= 1;
        self.has_changed = true;
        self.mark_idleness();
        Answer::Done
    }

    /// Somebody has no more use for the server. If nobody else has either, it is stopped as one that was idle.
    pub(crate) fn rest(&mut self) -> Answer<S> {
        if self.entry.leases > 0 {
            return Answer::Leaving(None);
        }
        let by = StoppedBy::Idleness;
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } => self.end(generation, server, Then::Rest { by }),
            Phase::Launching { generation, .. } => {
                self.settle(Outcome::Stopped);
                self.enter(Phase::Ending {
                    generation,
                    what: Leaving::Launch,
                    then: Then::Rest { by },
                });
            }
            Phase::Ending {
                generation,
                what,
                then: Then::Launch { .. },
            } => {
                self.settle(Outcome::Stopped);
                self.enter(Phase::Ending {
                    generation,
                    what,
                    then: Then::Rest { by },
                });
            }
            Phase::Pausing { .. } => {
                self.settle(Outcome::Stopped);
                self.enter(Phase::Stopped { by });
            }
            // It rests already, or is about to.
            Phase::Ending { .. } | Phase::Stopped { .. } | Phase::Failed(_) => {}
        }
        Answer::Leaving(self.entry.live())
    }

    /// Somebody asks for a stop, which wins over whatever is on its way up.
    pub(crate) fn stop(&mut self) -> Answer<S> {
        let by = StoppedBy::Request;
        self.settle(Outcome::Stopped);
        match self.entry.phase.clone() {
            Phase::Ready {
                generation, server, ..
            } => self.end(generation, server, Then::Rest { by }),
            Phase::Launching { generation, .. } => self.enter(Phase::Ending {
                generation,
                what: Leaving::Launch,
                then: Then::Rest { by },
            }),
            Phase::Ending { generation, what, .. } => self.enter(Phase::Ending {
                generation,
                what,
                then: Then::Rest { by },
            }),
            Phase::Pausing { .. } | Phase::Stopped { .. } | Phase::Failed(_) => {
                self.enter(Phase::Stopped { by });
            }
        }
        Answer::Leaving(self.entry.live())
    }
}

/// The same episode, now with somebody who asked for it.
fn asked(episode: Episode) -> Episode {
    Episode {
        origin: Origin::Wish,
        failures: 0,
        ..episode
    }
}
