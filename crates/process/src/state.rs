//! The life of a child, as the daemon sees it. Pure: a state and an event in, the next state out; `None` if
//! nothing changes. The states are kept in a `kernel::Slot`, so a write names the one that it saw.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ended::{Ended, Exit};
use crate::spec::StopPlan;

/// The state of a child. It only ever moves down this list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Life {
    /// Its command doesn't run yet, and never will if a stop was requested.
    Starting { stop_request: Option<StopRequest> },
    /// Its command runs.
    Running,
    /// It is being stopped, or its command has ended and others of its tree haven't.
    Stopping {
        stop_request: Option<StopRequest>,
        exit: Option<Exit>,
    },
    /// It has ended, with everything that it had started.
    Ended(Arc<Ended>),
    /// It couldn't be started.
    NeverRan,
}

/// When each step of a stop is due. Of several requests, the earliest time counts for each step. `None` is never:
/// a time that overflows the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StopRequest {
    term_at: Option<Instant>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

impl StopRequest {
    pub(crate) fn of(plan: StopPlan, now: Instant) -> Self {
        let after =
            |moment: Option<Instant>, step: Duration| moment.and_then(|moment| moment.checked_add(step));
        let term_at = after(Some(now), plan.polite);
        let kill_at = after(term_at, plan.term);
        Self {
            term_at,
            kill_at,
            give_up_at: after(kill_at, plan.kill),
        }
    }

    fn joined(self, other: Self) -> Self {
        let earlier = |one: Option<Instant>, two: Option<Instant>| [one, two].into_iter().flatten().min();
        Self {
            term_at: earlier(self.term_at, other.term_at),
            kill_at: earlier(self.kill_at, other.kill_at),
            give_up_at: earlier(self.give_up_at, other.give_up_at),
        }
    }

    /// What is left of it.
    pub(crate) fn plan(&self, now: Instant) -> StopPlan {
        let between = |from: Option<Instant>, to: Option<Instant>| match (from, to) {
            (Some(from), Some(to)) => to.max(now).saturating_duration_since(from.max(now)),
            _ => Duration::MAX,
        };
        StopPlan {
            polite: between(Some(now), self.term_at),
            term: between(self.term_at, self.kill_at),
            kill: between(self.kill_at, self.give_up_at),
        }
    }
}

impl Life {
    pub(crate) fn on_stop_request(&self, stop_request: StopRequest) -> Option<Self> {
        let join =
            |known: Option<StopRequest>| Some(known.map_or(stop_request, |known| known.joined(stop_request)));
        let next = match *self {
            Self::Starting { stop_request: known } => Self::Starting {
                stop_request: join(known),
            },
            Self::Running => Self::Stopping {
                stop_request: Some(stop_request),
                exit: None,
            },
            Self::Stopping {
                stop_request: known,
                exit,
            } => Self::Stopping {
                stop_request: join(known),
                exit,
            },
            Self::Ended(_) | Self::NeverRan => return None,
        };
        (next != *self).then_some(next)
    }

    /// Its command runs. A stop request that came in the meantime is kept.
    pub(crate) fn on_started(&self) -> Option<Self> {
        match *self {
            Self::Starting { stop_request: None } => Some(Self::Running),
            Self::Starting { stop_request } => Some(Self::Stopping {
                stop_request,
                exit: None,
            }),
            _ => None,
        }
    }

    /// Its command has ended.
    pub(crate) fn on_exited(&self, exit: Exit) -> Option<Self> {
        match *self {
            Self::Running => Some(Self::Stopping {
                stop_request: None,
                exit: Some(exit),
            }),
            Self::Stopping {
                stop_request,
                exit: None,
            } => Some(Self::Stopping {
                stop_request,
                exit: Some(exit),
            }),
            _ => None,
        }
    }

    /// Nothing is left of it.
    pub(crate) fn on_ended(&self, ended: &Arc<Ended>) -> Option<Self> {
        match self {
            Self::Ended(_) | Self::NeverRan => None,
            _ => Some(Self::Ended(Arc::clone(ended))),
        }
    }

    /// It couldn't be started.
    pub(crate) fn on_failed(&self) -> Option<Self> {
        matches!(self, Self::Starting { .. }).then_some(Self::NeverRan)
    }

    pub(crate) fn stop_request(&self) -> Option<StopRequest> {
        match self {
            Self::Starting { stop_request } | Self::Stopping { stop_request, .. } => *stop_request,
            _ => None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::NeverRan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended::{KeeperEnd, Killed};

    const SECOND: Duration = Duration::from_secs(1);

    fn plan(polite: u32, term: u32, kill: u32) -> StopPlan {
        StopPlan {
            polite: SECOND * polite,
            term: SECOND * term,
            kill: SECOND * kill,
        }
    }

    #[test]
    fn a_life_only_moves_down_and_its_end_is_final() {
        let now = Instant::now();
        let stop_request = StopRequest::of(plan(0, 1, 1), now);
        let ended = Arc::new(Ended {
            exit: Exit::Code(0),
            killed: Killed::default(),
            left: Vec::new(),
            keeper: KeeperEnd::Reported,
        });
        let starting = Life::Starting { stop_request: None };
        let starting_wished = Life::Starting {
            stop_request: Some(stop_request),
        };
        let stopping = |stop_request, exit| Life::Stopping { stop_request, exit };
        let exit = Exit::Signal(9);
        let over = Life::Ended(Arc::clone(&ended));
        // From each state: after a stop request, a start, an exit, an end and a failed start.
        let cases = [
            (
                starting.clone(),
                [
                    Some(starting_wished.clone()),
                    Some(Life::Running),
                    None,
                    Some(over.clone()),
                    Some(Life::NeverRan),
                ],
            ),
            (
                starting_wished,
                [
                    None,
                    Some(stopping(Some(stop_request), None)),
                    None,
                    Some(over.clone()),
                    Some(Life::NeverRan),
                ],
            ),
            (
                Life::Running,
                [
                    Some(stopping(Some(stop_request), None)),
                    None,
                    Some(stopping(None, Some(exit))),
                    Some(over.clone()),
                    None,
                ],
            ),
            (
                stopping(None, Some(exit)),
                [
                    Some(stopping(Some(stop_request), Some(exit))),
                    None,
                    None,
                    Some(over.clone()),
                    None,
                ],
            ),
            (
                stopping(Some(stop_request), None),
                [
                    None,
                    None,
                    Some(stopping(Some(stop_request), Some(exit))),
                    Some(over.clone()),
                    None,
                ],
            ),
            (over, [None, None, None, None, None]),
            (Life::NeverRan, [None, None, None, None, None]),
        ];
        for (life, expected) in cases {
            let found = [
                life.on_stop_request(stop_request),
                life.on_started(),
                life.on_exited(exit),
                life.on_ended(&ended),
                life.on_failed(),
            ];
            assert_eq!(found, expected, "from {life:?}");
        }
    }

    #[test]
    fn of_several_wishes_the_earliest_moment_counts_step_by_step() {
        let now = Instant::now();
        let cases = [
            ((plan(1, 1, 1), 0), (plan(1, 1, 1), 0), 0, plan(1, 1, 1)),
            ((plan(5, 5, 5), 0), (plan(0, 2, 5), 1), 1, plan(0, 2, 5)),
            ((plan(0, 2, 5), 0), (plan(9, 9, 9), 1), 1, plan(0, 1, 5)),
            ((plan(0, 9, 1), 0), (plan(3, 1, 1), 0), 0, plan(0, 4, 1)),
            ((plan(1, 1, 1), 0), (plan(1, 1, 1), 0), 10, plan(0, 0, 0)),
        ];
        for ((one, at_one), (two, at_two), seen_at, expected) in cases {
            let stop_request = StopRequest::of(one, now + SECOND * at_one)
                .joined(StopRequest::of(two, now + SECOND * at_two));
            assert_eq!(stop_request.plan(now + SECOND * seen_at), expected);
        }
        let endless = StopPlan {
            polite: Duration::MAX,
            ..plan(0, 1, 1)
        };
        assert_eq!(StopRequest::of(endless, now).plan(now).polite, Duration::MAX);
    }
}
