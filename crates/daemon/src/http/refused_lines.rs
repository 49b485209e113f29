//! How much of the log those get whom we refuse: anybody on this machine can be refused as often as they like.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many refused requests have a line of their own per [`INTERVAL`]. The others are counted.
const LINES_PER_INTERVAL: u32 = 20;

/// How often it is said how many were left out.
const INTERVAL: Duration = Duration::from_secs(60);

/// Decides which refused requests are written down.
#[derive(Debug, Default)]
pub(crate) struct RefusedLines {
    /// Guards the counts of the current interval; held for a comparison and nothing else.
    interval: Mutex<Option<Interval>>,
}

#[derive(Debug)]
struct Interval {
    began: Instant,
    written: u32,
    left_out: u64,
}

impl RefusedLines {
    /// Whether a request that was refused now gets a line.
    pub(super) fn take(&self, now: Instant) -> bool {
        let mut interval = self.interval.lock().unwrap_or_else(PoisonError::into_inner);
        let interval = interval.get_or_insert(Interval {
            began: now,
            written: 0,
            left_out: 0,
        });
        if interval.written < LINES_PER_INTERVAL {
            interval.written += 1;
            true
        } else {
            interval.left_out += 1;
            false
        }
    }

    /// How many got none in an interval that is over. Asked with every request, whoever it is from.
    pub(super) fn left_out(&self, now: Instant) -> Option<u64> {
        let mut current = self.interval.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |interval: &mut Interval| now.saturating_duration_since(interval.began) >= INTERVAL;
        let ended = current.take_if(is_over)?;
        (ended.left_out > 0).then_some(ended.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_written_the_others_are_counted_and_it_begins_again() {
        let (lines, start) = (RefusedLines::default(), Instant::now());
        let flood = |at: Instant, times: u32| (0..times).filter(|_| lines.take(at)).count();
        assert_eq!((flood(start, 100), lines.left_out(start)), (20, None));
        let late = start + INTERVAL - Duration::from_millis(1);
        assert_eq!((flood(late, 3), lines.left_out(late)), (0, None));
        let next = start + INTERVAL;
        assert_eq!((lines.left_out(next), lines.left_out(next)), (Some(83), None));
        assert_eq!((flood(next, 5), lines.left_out(next + INTERVAL)), (5, None));
    }
}
