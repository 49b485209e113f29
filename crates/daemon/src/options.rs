//! What can be chosen about a daemon, with the values that are right for one machine and its user.

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

/// How often old events are dropped and unused space is given back.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);

/// The port that is tried first. Another one is as good; this one can be remembered.
pub const DEFAULT_PORT: u16 = 7180;

/// How a daemon is to be run. [`Options::new`] has the usual choices.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where its files are.
    pub home: Home,
    /// Where it keeps its log.
    pub database: Database,
    /// When the log is tidied up.
    pub upkeep: Upkeep,
    /// Where it listens for TCP connections. It always listens on its Unix socket too.
    pub listen: Listen,
    /// More names under which it may be reached, as `name` (with any port) or `name:port`.
    pub allowed_hosts: Vec<String>,
    /// The token file to use instead of the one in the state directory. Only with one that was chosen on
    /// purpose may the daemon listen on an address that other machines can reach.
    pub token_file: Option<PathBuf>,
    /// How long requests in flight may take after the daemon was told to stop.
    pub shutdown_grace: Duration,
    /// The largest body of a request.
    pub body_limit_bytes: usize,
    /// How many streams may be open at once.
    pub streams: StreamLimit,
    /// How the circuit breakers behave.
    pub breaker: BreakerSettings,
    /// Whether signals of the process stop this daemon.
    pub signals: Signals,
    /// Where language servers are found, and how they are configured.
    pub languages: LanguageOptions,
    /// What the user has written down about agents and sessions. It need not be there.
    pub configuration: Option<PathBuf>,
    /// What the program that starts the daemon has to say about its own settings, for those who ask what is in force.
    pub settings: Vec<Setting>,
    /// How much sandboxes may take, and where commands in them may write.
    pub plans: PlansSettings,
    /// The program that keeps the processes that the daemon starts. It must call
    /// [`keep_if_asked`](crate::keep_if_asked) first thing.
    pub keeper: KeeperProgram,
    /// Who is told what a daemon that starts is doing.
    pub progress: StartProgress,
}

impl Options {
    /// The usual choices for a daemon with this home.
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

/// Who is told what a daemon that starts is doing, so that they can wait as long as it gets on.
#[derive(Clone, Default)]
pub struct StartProgress(Option<Arc<dyn Fn(&'static str) + Send + Sync>>);

impl StartProgress {
    /// Tells this one.
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
    /// As many as the descriptors that the system gives us leave room for.
    ByDescriptors,
    /// So many.
    AtMost(usize),
}

/// What a daemon needs to know to find language servers.
#[derive(Clone, Debug, Default)]
pub struct LanguageOptions {
    /// The variables with which programs are looked for. Servers get what they want of them, and nothing else.
    pub environment: Vec<(OsString, OsString)>,
    /// The user's configuration, which need not be there.
    pub configuration: Option<PathBuf>,
}

/// Where a daemon listens for TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address to listen on.
    pub address: SocketAddr,
    /// What to do when somebody else has it.
    pub when_taken: WhenTaken,
}

/// When the log is tidied up: what is old is dropped, and space that is not used is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Soon after the start, and then each time that so much time has passed.
    AtStartAndEvery(Duration),
    /// Never, for a daemon that does not live long.
    Never,
}

/// What to do when the address is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenTaken {
    /// Refuse to start.
    Fail,
    /// Take any free port of the same address, and say so in the log.
    AnyFreePort,
}

/// What SIGTERM and SIGINT do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signals {
    /// The first one drains the daemon, the second one ends it at once.
    Stop,
    /// They are left alone, for a daemon that lives inside another program.
    LeaveAlone,
}
