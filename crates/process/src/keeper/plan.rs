//! When a tree is signalled: three times that only ever move closer.
//!
//! Every request to end the tree names these times, and for each step the earliest one counts. So it doesn't
//! matter how many requests there are, and a later, more patient one undoes nothing.

use std::time::{Duration, Instant};

/// How long what a command has left behind may take after SIGTERM.
const LEFTOVERS_TERM: Duration = Duration::from_secs(2);
/// How long the kernel may take to end what has been killed.
const KILL_GRACE: Duration = Duration::from_secs(5);
/// How often the tree is scanned after SIGTERM for processes that were started in the meantime.
const LOOK_AGAIN_TERM: Duration = Duration::from_millis(100);
/// How often after SIGKILL. Only processes that are started faster than we look are still there by then.
const LOOK_AGAIN_KILL: Duration = Duration::from_millis(20);

/// The times. `None` is never.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Plan {
    term_at: Option<Instant>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
}

/// What to do to the tree now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    Nothing,
    Term,
    Kill,
    GiveUp,
}

impl Plan {
    /// The daemon requests a stop.
    pub(super) fn stop(&mut self, now: Instant, polite: Duration, term: Duration, kill: Duration) {
        self.bring_forward(Some(now), polite, term, kill);
    }

    /// The command has ended, so nothing has a reason to be there.
    pub(super) fn command_ended(&mut self, now: Instant) {
        self.bring_forward(Some(now), Duration::ZERO, LEFTOVERS_TERM, KILL_GRACE);
    }

    /// The daemon is dead.
    pub(super) fn abandoned(&mut self, now: Instant) {
        self.bring_forward(Some(now), Duration::ZERO, Duration::ZERO, KILL_GRACE);
    }

    fn bring_forward(&mut self, now: Option<Instant>, polite: Duration, term: Duration, kill: Duration) {
        // A time that overflows the clock is never.
        let after =
            |moment: Option<Instant>, step: Duration| moment.and_then(|moment| moment.checked_add(step));
        let term_at = after(now, polite);
        let kill_at = after(term_at, term);
        for (moment, wanted) in [
            (&mut self.term_at, term_at),
            (&mut self.kill_at, kill_at),
            (&mut self.give_up_at, after(kill_at, kill)),
        ] {
            *moment = [*moment, wanted].into_iter().flatten().min();
        }
    }

    pub(super) fn due(&self, now: Instant) -> Due {
        let has_come = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= now);
        if has_come(self.give_up_at) {
            Due::GiveUp
        } else if has_come(self.kill_at) {
            Due::Kill
        } else if has_come(self.term_at) {
            Due::Term
        } else {
            Due::Nothing
        }
    }

    /// When to scan again; `None` means not before something happens.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        let again = match self.due(now) {
            Due::Nothing => None,
            Due::Term => Some(now + LOOK_AGAIN_TERM),
            Due::Kill | Due::GiveUp => Some(now + LOOK_AGAIN_KILL),
        };
        let moments = [self.term_at, self.kill_at, self.give_up_at];
        let ahead = moments.into_iter().flatten().filter(|moment| *moment > now);
        ahead.chain(again).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What is due each second, as one letter.
    fn course(plan: &Plan, start: Instant) -> String {
        let letter = |second| match plan.due(start + SECOND * second) {
            Due::Nothing => '.',
            Due::Term => 't',
            Due::Kill => 'k',
            Due::GiveUp => 'x',
        };
        (0..12).map(letter).collect()
    }

    #[test]
    fn every_wish_brings_the_end_closer_and_none_takes_it_back() {
        type StopRequest = fn(&mut Plan, Instant);
        let patient: StopRequest = |plan, now| plan.stop(now, SECOND * 3, SECOND * 4, SECOND * 3);
        let prompt: StopRequest = |plan, now| plan.stop(now, Duration::ZERO, SECOND * 2, SECOND * 5);
        let endless: StopRequest = |plan, now| plan.stop(now, Duration::MAX, SECOND, SECOND);
        let cases: &[(&[(u32, StopRequest)], &str)] = &[
            (&[], "............"),
            (&[(0, patient)], "...ttttkkkxx"),
            (&[(0, patient), (1, patient)], "...ttttkkkxx"),
            (&[(0, patient), (2, prompt)], "..ttkkkkkxxx"),
            (&[(0, prompt), (1, patient)], "ttkkkkkxxxxx"),
            (&[(0, endless)], "............"),
            (&[(1, |plan, now| plan.command_ended(now))], ".ttkkkkkxxxx"),
            (
                &[(0, patient), (4, |plan, now| plan.abandoned(now))],
                "...tkkkkkxxx",
            ),
            (
                &[(0, endless), (2, |plan, now| plan.abandoned(now))],
                "..kkkkkxxxxx",
            ),
        ];
        for (wishes, expected) in cases {
            let (mut plan, start) = (Plan::default(), Instant::now());
            for (second, wish) in *wishes {
                wish(&mut plan, start + SECOND * *second);
            }
            assert_eq!(course(&plan, start), *expected);
        }
    }

    #[test]
    fn it_sleeps_until_the_next_moment_and_looks_again_in_between() {
        let (mut plan, start) = (Plan::default(), Instant::now());
        assert_eq!(plan.next_look(start), None);
        plan.stop(start, SECOND, SECOND, SECOND);
        for (at, expected) in [
            (start, start + SECOND),
            (start + SECOND, start + SECOND + LOOK_AGAIN_TERM),
            (start + SECOND * 2, start + SECOND * 2 + LOOK_AGAIN_KILL),
            (start + SECOND * 2 - LOOK_AGAIN_KILL, start + SECOND * 2),
        ] {
            assert_eq!(plan.next_look(at), Some(expected));
        }
    }
}
