//! The settings of a breaker, and their validation.

use std::time::Duration;

/// The settings that all circuits of a breaker share.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerSettings {
    /// This many failures in a row open a circuit.
    pub failure_threshold: u32,
    /// How long an open circuit refuses calls before it lets a probe through.
    pub cooldown: Duration,
    /// Up to this fraction of the cooldown is added at random, so that many breakers don't probe in step.
    pub jitter: f64,
    /// A probe that hasn't reported after this time is abandoned.
    pub probe_lease: Duration,
    /// The longest cooldown, even if a server asks for more.
    pub max_cooldown: Duration,
    /// How many names are tracked. When all of them are in use, calls to further names are let through untracked.
    pub max_names: usize,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failure_threshold: 3,
            cooldown: Duration::from_secs(30),
            jitter: 0.2,
            probe_lease: Duration::from_secs(60),
            max_cooldown: Duration::from_secs(60 * 60),
            max_names: 1024,
        }
    }
}

/// A setting that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BreakerSettingsError {
    /// A circuit would open before anything had failed.
    #[error("the failure threshold is zero; it must be at least 1")]
    ZeroThreshold,
    /// An open circuit would refuse nothing.
    #[error("the cooldown is zero; it must be longer")]
    ZeroCooldown,
    /// The jitter must be a fraction.
    #[error("the jitter is {0}; it must lie between 0 and 1")]
    JitterOutOfRange(f64),
    /// Every probe would be abandoned at once.
    #[error("the probe lease is zero; it must be longer")]
    ZeroProbeLease,
    /// The cooldown plus its jitter must not exceed the maximum.
    #[error("the cooldown with its jitter is longer than the longest cooldown")]
    CooldownOverMaximum,
    /// The breaker couldn't track anything.
    #[error("the number of names is zero; it must be at least 1")]
    ZeroNames,
}

impl BreakerSettings {
    pub(super) fn check(&self) -> Result<(), BreakerSettingsError> {
        use BreakerSettingsError as Error;
        if self.failure_threshold == 0 {
            return Err(Error::ZeroThreshold);
        }
        if self.cooldown.is_zero() {
            return Err(Error::ZeroCooldown);
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(Error::JitterOutOfRange(self.jitter));
        }
        if self.probe_lease.is_zero() {
            return Err(Error::ZeroProbeLease);
        }
        if self.cooldown.mul_f64(1.0 + self.jitter) > self.max_cooldown {
            return Err(Error::CooldownOverMaximum);
        }
        if self.max_names == 0 {
            return Err(Error::ZeroNames);
        }
        Ok(())
    }

    /// The cooldown of one opening. `fraction` is the jitter drawn for it. A server's `retry_after` can only
    /// lengthen the cooldown.
    pub(super) fn cooldown_for(&self, fraction: f64, retry_after: Option<Duration>) -> Duration {
        let cooldown = self.cooldown.mul_f64(1.0 + self.jitter * fraction);
        cooldown
            .max(retry_after.unwrap_or_default())
            .min(self.max_cooldown)
    }
}
