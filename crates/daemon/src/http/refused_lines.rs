//! Limits how many log lines refused requests get: anyone on this machine can send as many as they like.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many refused requests get their own line per [`INTERVAL`]. The others are only counted.
const LINES_PER_INTERVAL: u32 = 20;

/// How often to log the number of omitted lines.
const INTERVAL: Duration = Duration::from_secs(60);

/// Decides which refused requests are logged.
#[derive(Debug, Default)]
pub(crate) struct RefusedLines {
    /// Guards the counts of the current interval; held only for a comparison.
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

    /// How many requests got no line in the interval that just ended. Called for every request, refused or not.
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
