//! The options and settings of the service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eventlog::Log;
use kernel::Clock;
use plans::Plans;
use process::Tasks;
use protocol::{BootId, HomeId, PermissionRule};

use crate::agent::Agent;
use crate::owner::Sharing;
use crate::ports::Ports;

/// What the service needs.
#[derive(Debug)]
pub struct SessionsOptions {
    /// Stores the sessions.
    pub log: Log,
    /// Whether other daemons use the same log.
    pub sharing: Sharing,
    /// The home of this daemon.
    pub home_id: HomeId,
    /// The boot id of this daemon.
    pub boot_id: BootId,
    /// The plans that agents work in.
    pub plans: Plans,
    /// What other parts of the daemon provide to agents.
    pub ports: Ports,
    /// The agents, by name.
    pub agents: BTreeMap<String, Arc<dyn Agent>>,
    /// The settings.
    pub settings: SessionsSettings,
    /// Runs the tasks of the service.
    pub tasks: Tasks,
    /// The time source.
    pub clock: Arc<dyn Clock>,
}

/// The settings that a user can change.
#[derive(Clone, Debug)]
pub struct SessionsSettings {
    /// The agent for prompts that don't name one.
    pub default_agent: String,
    /// What happens to queued prompts after a crash of the daemon.
    pub after_crash: AfterCrash,
    /// What agents may do. The rules of a session come first.
    pub rules: Vec<PermissionRule>,
    /// How long to wait for the user's answer. Without one, the question is denied. `None` waits until the turn ends.
    pub permission_timeout: Option<Duration>,
    /// How many turns run at once. Further ones are queued.
    pub max_turns: usize,
    /// How long a turn may take. Time spent waiting for the user doesn't count.
    pub turn_timeout: Duration,
    /// How long a tool may take, unless it has its own limit.
    pub tool_timeout: Duration,
}

/// What happens to queued prompts after a crash of the daemon.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AfterCrash {
    /// They run.
    #[default]
    GoOn,
    /// They wait until the user sends the next prompt or removes them.
    Wait,
}

impl Default for SessionsSettings {
    fn default() -> Self {
        Self {
            default_agent: "rehearsal".to_owned(),
            after_crash: AfterCrash::default(),
            rules: Vec::new(),
            permission_timeout: None,
            max_turns: 4096,
            turn_timeout: Duration::from_secs(6 * 60 * 60),
            tool_timeout: Duration::from_secs(10 * 60),
        }
    }
}
