//! What the service needs, and the choices that an owner of a daemon has.

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
    /// Where sessions are kept.
    pub log: Log,
    /// Whether other daemons use the same log.
    pub sharing: Sharing,
    /// The home of this daemon.
    pub home_id: HomeId,
    /// Which life of it this is.
    pub boot_id: BootId,
    /// Where agents work.
    pub plans: Plans,
    /// What others do for them.
    pub ports: Ports,
    /// The agents, by name.
    pub agents: BTreeMap<String, Arc<dyn Agent>>,
    /// The choices.
    pub settings: SessionsSettings,
    /// Where the tasks of the service run.
    pub tasks: Tasks,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// The choices that an owner of a daemon has.
#[derive(Clone, Debug)]
pub struct SessionsSettings {
    /// The agent that is asked if nobody says which.
    pub default_agent: String,
    /// What becomes of prompts that waited when a daemon went away.
    pub after_crash: AfterCrash,
    /// What agents may do; the rules of a session go first.
    pub rules: Vec<PermissionRule>,
    /// How long an answer of the user is waited for. Then it is a no. Without it, as long as the turn lives.
    pub permission_timeout: Option<Duration>,
    /// How many turns run at once. Further ones wait.
    pub max_turns: usize,
    /// How long a turn may take. The time in which the user is asked does not count.
    pub turn_timeout: Duration,
    /// How long a tool may take, unless it says so itself.
    pub tool_timeout: Duration,
}

/// What becomes of prompts that waited when a daemon went away.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AfterCrash {
    /// They run, as if nothing had happened.
    #[default]
    GoOn,
    /// They wait until somebody sends the next prompt, or takes them away.
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
