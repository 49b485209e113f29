//! The life of a child, as the daemon sees it. Pure: a state and what happened in, the next state out; `None` where
//! nothing changes. The states are kept in a `kernel::Slot`, so that a write names the one that it saw.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ended::{Ended, Exit};
use crate::spec::StopPlan;

/// Where a child is in its life. It only ever moves down this list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Life {
    /// Its command does not run yet, and never will if there is a wish to stop it.
    Starting { wish: Option<Wish> },
    /// Its command runs.
    Running,
    /// It is being stopped, or its command has ended and others of its tree have not.
    Stopping { wish: Option<Wish>, exit: Option<Exit> },
    /// It has ended, with everything that it had started.
    Ended(Arc<Ended>),
    /// It could not be started.
    NeverRan,
}

/// When each step of a stop is to be taken. Of several wishes the earliest moment counts, step by step. `None` is
/// never: a time that overflows the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Wish {
    term_at: Option<Instant>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

impl Wish {
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
    /// Somebody wants it to end.
    pub(crate) fn on_wish(&self, wish: Wish) -> Option<Self> {
        let join = |known: Option<Wish>| Some(known.map_or(wish, |known| known.joined(wish)));
        let next = match *self {
            Self::Starting { wish: known } => Self::Starting { wish: join(known) },
            Self::Running => Self::Stopping {
                wish: Some(wish),
                exit: None,
            },
            Self::Stopping { wish: known, exit } => Self::Stopping {
                wish: join(known),
                exit,
            },
            Self::Ended(_) | Self::NeverRan => return None,
        };
        (next != *self).then_some(next)
    }

    /// Its command runs. A wish that came meanwhile is kept.
    pub(crate) fn on_started(&self) -> Option<Self> {
        match *self {
            Self::Starting { wish: None } => Some(Self::Running),
            Self::Starting { wish } => Some(Self::Stopping { wish, exit: None }),
            _ => None,
        }
    }

    /// Its command has ended.
    pub(crate) fn on_exited(&self, exit: Exit) -> Option<Self> {
        match *self {
            Self::Running => Some(Self::Stopping {
                wish: None,
                exit: Some(exit),
            }),
            Self::Stopping { wish, exit: None } => Some(Self::Stopping {
                wish,
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

    /// It could not be started.
    pub(crate) fn on_failed(&self) -> Option<Self> {
        matches!(self, Self::Starting { .. }).then_some(Self::NeverRan)
    }

    pub(crate) fn wish(&self) -> Option<Wish> {
        match self {
            Self::Starting { wish } | Self::Stopping { wish, .. } => *wish,
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
        let wish = Wish::of(plan(0, 1, 1), now);
        let ended = Arc::new(Ended {
            exit: Exit::Code(0),
            killed: Killed::default(),
            left: Vec::new(),
            keeper: KeeperEnd::Reported,
        });
        let starting = Life::Starting { wish: None };
        let starting_wished = Life::Starting { wish: Some(wish) };
        let stopping = |wish, exit| Life::Stopping { wish, exit };
        let exit = Exit::Signal(9);
        let over = Life::Ended(Arc::clone(&ended));
        // From each state: after a wish, a start, an exit, an end and a failed start.
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
                    Some(stopping(Some(wish), None)),
                    None,
                    Some(over.clone()),
                    Some(Life::NeverRan),
                ],
            ),
            (
                Life::Running,
                [
                    Some(stopping(Some(wish), None)),
                    None,
                    Some(stopping(None, Some(exit))),
                    Some(over.clone()),
                    None,
                ],
            ),
            (
                stopping(None, Some(exit)),
                [
                    Some(stopping(Some(wish), Some(exit))),
                    None,
                    None,
                    Some(over.clone()),
                    None,
                ],
            ),
            (
                stopping(Some(wish), None),
                [
                    None,
                    None,
                    Some(stopping(Some(wish), Some(exit))),
                    Some(over.clone()),
                    None,
                ],
            ),
            (over, [None, None, None, None, None]),
            (Life::NeverRan, [None, None, None, None, None]),
        ];
        for (life, expected) in cases {
            let found = [
                life.on_wish(wish),
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
            let wish = Wish::of(one, now + SECOND * at_one).joined(Wish::of(two, now + SECOND * at_two));
            assert_eq!(wish.plan(now + SECOND * seen_at), expected);
        }
        let endless = StopPlan {
            polite: Duration::MAX,
            ..plan(0, 1, 1)
        };
        assert_eq!(Wish::of(endless, now).plan(now).polite, Duration::MAX);
    }
}
