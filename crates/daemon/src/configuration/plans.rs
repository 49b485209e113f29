//! The configuration of plans.

use std::time::Duration;

use plans::PlansSettings;
use serde::Deserialize;

pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PlansSection {
    /// How long to keep plans after they were applied or discarded.
    pub(crate) keep_days: Option<u32>,
    pub(crate) keep_mb: Option<u64>,
    pub(crate) max_sandboxes: Option<usize>,
    pub(crate) max_file_mb: Option<u64>,
}

impl PlansSection {
    /// The file takes precedence.
    pub(crate) fn settings(self, usual: PlansSettings) -> PlansSettings {
        PlansSettings {
            keep_for: self.keep_days.map_or(usual.keep_for, |days| DAY * days),
            keep_bytes: self
                .keep_mb
                .map_or(usual.keep_bytes, |mb| mb.saturating_mul(1024 * 1024)),
            max_file_bytes: self
                .max_file_mb
                .map_or(usual.max_file_bytes, |mb| mb.saturating_mul(1024 * 1024)),
            max_sandboxes: self.max_sandboxes.unwrap_or(usual.max_sandboxes),
            ..usual
        }
    }
}
