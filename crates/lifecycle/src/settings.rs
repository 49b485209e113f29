//! How patient the manager is.

use std::{num::NonZeroU32, time::Duration};

/// How patient the manager is with servers.
#[derive(Clone, Debug, PartialEq)]
pub struct LifecycleSettings {
    /// A server that nobody holds a lease on is stopped after this time.
    pub idle_after: Duration,
    /// The pause before the second retry; the first one comes at once. It doubles from retry to retry.
    pub first_pause: Duration,
    /// The longest pause between two retries.
    pub longest_pause: Duration,
    /// A pause is longer by up to this fraction of itself, so that many servers do not come back at once.
    pub jitter: f64,
    /// More failures than this within the window, and the server is given up.
    pub max_failures: usize,
    /// How long a failure counts.
    pub failure_window: Duration,
    /// A server that was given up may be tried again after this time, by the next who wants it.
    pub given_up_for: Duration,
    /// What becomes of a server that ended without being asked to.
    pub after_crash: AfterCrash,
    /// Restarts a server after this many probes in a row without an answer. Nothing by default: a server that is
    /// busy answers late, and a restart would throw away what it is busy with.
    pub restart_after_failed_probes: Option<NonZeroU32>,
}

/// What becomes of a server that ended without being asked to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AfterCrash {
    /// Another process takes its place, after a pause if it happens often.
    #[default]
    Restart,
    /// It stays down until the next wish, which has to wait if it happens often: for a server whose work cannot be gone on
    /// with by another process.
    WaitForWish,
}

impl Default for LifecycleSettings {
    fn default() -> Self {
        Self {
            idle_after: Duration::from_secs(5 * 60),
            first_pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(30),
            jitter: 0.5,
            max_failures: 5,
            failure_window: Duration::from_secs(3 * 60),
            given_up_for: Duration::from_secs(60),
            after_crash: AfterCrash::default(),
            restart_after_failed_probes: None,
        }
    }
}

impl LifecycleSettings {
    /// The pause after so many failures in the window. `fraction` is the draw of the jitter.
    pub(crate) fn pause_after(&self, failures: usize, fraction: f64) -> Duration {
        let Some(doublings) = failures.checked_sub(2) else {
            return Duration::ZERO;
        };
        let factor = u32::try_from(doublings)
            .ok()
            .and_then(|doublings| 1_u32.checked_shl(doublings))
            .unwrap_or(u32::MAX);
        let pause = self.first_pause.saturating_mul(factor).min(self.longest_pause);
        let stretch = 1.0 + self.jitter.clamp(0.0, 1.0) * fraction;
        pause.mul_f64(stretch).min(self.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::LifecycleSettings;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let settings = LifecycleSettings::default();
        let check = |failures, fraction, expected_ms| {
            assert_eq!(
                settings.pause_after(failures, fraction).as_millis(),
                expected_ms,
                "{failures} failures, fraction {fraction}"
            );
        };
        check(0, 0.5, 0);
        check(1, 0.5, 0);
        check(2, 0.0, 250);
        check(2, 1.0, 375);
        check(3, 0.0, 500);
        check(5, 0.5, 2500);
        check(9, 0.0, 30_000);
        check(9, 1.0, 30_000);
        check(34, 0.0, 30_000);
        check(usize::MAX, 0.0, 30_000);
    }
}
