//! Timeouts, back-off and limits of the manager.

use std::{num::NonZeroU32, time::Duration};

/// Timeouts, back-off and limits for servers.
#[derive(Clone, Debug, PartialEq)]
pub struct LifecycleSettings {
    /// A server without leases is stopped after this time.
    pub idle_after: Duration,
    /// The pause before the second retry. The first retry comes at once, and the pause doubles from retry to
    /// retry.
    pub first_pause: Duration,
    /// The longest pause between two retries.
    pub longest_pause: Duration,
    /// Up to this fraction of a pause is added at random, so that many servers don't come back in step.
    pub jitter: f64,
    /// A server that fails more often than this within the window is given up.
    pub max_failures: usize,
    /// How long a failure counts.
    pub failure_window: Duration,
    /// After this time, the next caller that needs a server that was given up triggers another attempt.
    pub given_up_for: Duration,
    /// What happens to a server that ended without being asked to.
    pub after_crash: AfterCrash,
    /// Restarts a server after this many failed probes in a row. Off by default: a busy server answers late, and
    /// a restart would throw away its work.
    pub restart_after_failed_probes: Option<NonZeroU32>,
}

/// What happens to a server that ended without being asked to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AfterCrash {
    /// It is replaced by a new process, after a pause if it fails often.
    #[default]
    Restart,
    /// It stays down until the next request, which has to wait if the server fails often. For servers whose work
    /// another process can't continue.
    WaitForRequest,
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
    /// The pause after this many failures in the window. `fraction` is the jitter drawn for it.
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
