//! What the service needs, and its settings.

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
    /// Where sandboxes, bases and what is being applied are kept. Nobody else uses it.
    pub directory: PathBuf,
    /// Other directories of the daemon's, which no command in a sandbox may change. They have to be there.
    pub guarded: Vec<PathBuf>,
    pub home_id: HomeId,
    pub processes: Processes,
    /// The environment of the user: where their home and their caches are.
    pub environment: BTreeMap<OsString, OsString>,
    pub settings: PlansSettings,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
    /// Who is told of the steps of a landing; for tests that stop it at one of them.
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

/// The choices that an owner of a daemon has.
#[derive(Clone, Debug)]
pub struct PlansSettings {
    /// How much the bases may take that no plan needs any more.
    pub base_quota_bytes: u64,
    /// How many sandboxes there may be. Those of plans that are over are collected in time.
    pub max_sandboxes: usize,
    /// How much must be free on the disk for another sandbox.
    pub min_free_bytes: u64,
    /// How deep plans may be nested.
    pub max_depth: u16,
    /// How long plans are kept that were applied or discarded.
    pub keep_for: Duration,
    /// How much the contents of all plans may take before the oldest are forgotten that were applied or discarded.
    pub keep_bytes: u64,
    /// The largest file that a plan carries, in bytes, holes included. A larger one is left out.
    pub max_file_bytes: u64,
    /// Where commands in a sandbox may write as well.
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
