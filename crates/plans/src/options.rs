//! The service's dependencies and settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eventlog::Log;
use kernel::Clock;
use process::{Processes, Tasks};
use protocol::HomeId;

use crate::landing::{NoSteps, Steps};

#[derive(Debug)]
pub struct PlansOptions {
    pub log: Log,
    /// The directory for sandboxes, bases and staged files. Nothing else uses it.
    pub directory: PathBuf,
    /// The daemon's other directories, which no command in a sandbox may change. They must exist.
    pub guarded: Vec<PathBuf>,
    pub home_id: HomeId,
    pub processes: Processes,
    /// The user's environment: where their home and their caches are.
    pub environment: BTreeMap<OsString, OsString>,
    pub settings: PlansSettings,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
    /// Notified of the steps of a landing; for tests that interrupt it at one of them.
    pub steps: LandingSteps,
}

#[derive(Clone)]
pub struct LandingSteps(pub Arc<dyn Steps>);

impl Default for LandingSteps {
    fn default() -> Self {
        Self(Arc::new(NoSteps))
    }
}

impl std::fmt::Debug for LandingSteps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LandingSteps")
    }
}

/// The settings that a daemon's owner can choose.
#[derive(Clone, Debug)]
pub struct PlansSettings {
    /// How much space bases may take that no plan needs any more.
    pub base_quota_bytes: u64,
    /// The maximum number of sandboxes. Those of ended plans are collected in time.
    pub max_sandboxes: usize,
    /// How much disk space must be free for another sandbox.
    pub min_free_bytes: u64,
    /// How deep plans may be nested.
    pub max_depth: u16,
    /// How long applied and discarded plans are kept.
    pub keep_for: Duration,
    /// How much space the contents of all plans may take before the oldest applied or discarded ones are forgotten.
    pub keep_bytes: u64,
    /// The largest file that a plan carries, in bytes, including holes. A larger one is left out.
    pub max_file_bytes: u64,
    /// Additional directories that commands in a sandbox may write to.
    pub write_below: Vec<PathBuf>,
}

impl Default for PlansSettings {
    fn default() -> Self {
        Self {
            base_quota_bytes: 5 * 1024 * 1024 * 1024,
            max_sandboxes: 500,
            min_free_bytes: 512 * 1024 * 1024,
            max_depth: 8,
            keep_for: Duration::from_secs(90 * 24 * 60 * 60),
            keep_bytes: 10 * 1024 * 1024 * 1024,
            max_file_bytes: 4 * 1024 * 1024 * 1024,
            write_below: Vec::new(),
        }
    }
}
