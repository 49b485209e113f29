//! The options of a daemon, with defaults that suit one machine and its user.

use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::BreakerSettings;
use plans::PlansSettings;
use process::KeeperProgram;
use protocol::Setting;

use crate::durable::Database;
use crate::home::Home;

/// How often to drop old events and release unused space.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// The port that is tried first. Any other would do, but a fixed one can be remembered.
pub const DEFAULT_PORT: u16 = 7180;

/// How to run a daemon. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where its files are.
    pub home: Home,
    /// Where it stores its log.
    pub database: Database,
    /// When to clean up the log.
    pub upkeep: Upkeep,
    /// Where it listens for TCP connections. It always listens on its Unix socket too.
    pub listen: Listen,
    /// Additional host names under which it may be reached, as `name` (with any port) or `name:port`.
    pub allowed_hosts: Vec<String>,
    /// The token file to use instead of the one in the state directory. The daemon may listen on an address that other
    /// machines can reach only if this was set explicitly.
    pub token_file: Option<PathBuf>,
    /// How long requests in flight may take once the daemon begins to stop.
    pub shutdown_grace: Duration,
    /// The largest body of a request.
    pub body_limit_bytes: usize,
    /// How many streams may be open at once.
    pub streams: StreamLimit,
    /// How the circuit breakers behave.
    pub breaker: BreakerSettings,
    /// Whether signals to the process stop this daemon.
    pub signals: Signals,
    /// Where language servers are found, and how they are configured.
    pub languages: LanguageOptions,
    /// The user's configuration of agents and sessions. The file is optional.
    pub configuration: Option<PathBuf>,
    /// The settings of the program that starts the daemon, to include when the settings are shown.
    pub settings: Vec<Setting>,
    /// The size limits of sandboxes, and where commands in them may write.
    pub plans: PlansSettings,
    /// The program that supervises the processes that the daemon starts. It must call
    /// [`keep_if_asked`](crate::keep_if_asked) before anything else.
    pub keeper: KeeperProgram,
    /// Receives the progress of the start.
    pub progress: StartProgress,
}

impl Options {
    /// The default options for a daemon with this home.
    #[must_use]
    pub fn new(home: Home) -> Self {
        Self {
            home,
            database: Database::File,
            upkeep: Upkeep::AtStartAndEvery(UPKEEP_INTERVAL),
            listen: Listen {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
                when_taken: WhenTaken::AnyFreePort,
            },
            allowed_hosts: Vec::new(),
            token_file: None,
            shutdown_grace: Duration::from_secs(10),
            body_limit_bytes: 1024 * 1024,
            streams: StreamLimit::ByDescriptors,
            breaker: BreakerSettings::default(),
            signals: Signals::Stop,
            languages: LanguageOptions::default(),
            configuration: None,
            settings: Vec::new(),
            plans: PlansSettings::default(),
            keeper: KeeperProgram::ThisProgram,
            progress: StartProgress::default(),
        }
    }
}

/// Receives the progress of the start, so that the caller can keep waiting as long as there is some.
#[derive(Clone, Default)]
pub struct StartProgress(Option<Arc<dyn Fn(&'static str) + Send + Sync>>);

impl StartProgress {
    /// Reports progress to this listener.
    #[must_use]
    pub fn to(listener: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    pub(crate) fn tell(&self, doing: &'static str) {
        if let Some(listener) = &self.0 {
            listener(doing);
        }
    }
}

impl fmt::Debug for StartProgress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StartProgress(…)")
    }
}

/// How many streams may be open at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamLimit {
    /// As many as the file descriptor limit allows.
    ByDescriptors,
    /// This many.
    AtMost(usize),
}

/// What a daemon needs to find language servers.
#[derive(Clone, Debug, Default)]
pub struct LanguageOptions {
    /// The variables for finding programs. Servers get only the ones that they need.
    pub environment: Vec<(OsString, OsString)>,
    /// The user's configuration file, which is optional.
    pub configuration: Option<PathBuf>,
}

/// Where a daemon listens for TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address to listen on.
    pub address: SocketAddr,
    /// What to do if the address is in use.
    pub when_taken: WhenTaken,
}

/// When to clean up the log: drop old events and release unused space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Soon after the start, and then at this interval.
    AtStartAndEvery(Duration),
    /// Never, for a short-lived daemon.
    Never,
}

/// What to do if the address is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenTaken {
    /// Refuse to start.
    Fail,
    /// Use any free port of the same address, and log that.
    AnyFreePort,
}

/// What SIGTERM and SIGINT do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// The first one drains the daemon, the second one stops it at once.
    Stop,
    /// The daemon doesn't handle them, for use inside another program.
    LeaveAlone,
}
