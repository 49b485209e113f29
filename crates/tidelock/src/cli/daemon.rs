//! The arguments of the commands that start, stop, check and copy a daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::units;

#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// How long to wait for the daemon to exit
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// Confirm the removal
    #[arg(long)]
    pub(crate) yes: bool,
    /// How long to wait for the daemon to exit
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Also read the whole log and check it for damage
    #[arg(long)]
    deep: bool,
}

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// At what can be seen at once.
    Quick,
    /// At every byte of the log.
    Deep,
}

impl DoctorArguments {
    pub(crate) fn depth(&self) -> Depth {
        if self.deep { Depth::Deep } else { Depth::Quick }
    }
}

#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// The process id
    #[arg(value_name = "PID")]
    pub(crate) pid: u32,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// Where to write the copy
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveArguments {
    /// The archive file, or `-` for standard input or output
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on for HTTP; port 0 picks any free port
    #[arg(long, value_name = "ADDRESS", env = "TIDELOCK_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<SocketAddr>,
    /// Also accept requests for this host name, in addition to the loopback names (may be repeated)
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,
    /// The file with the bearer token; created if it doesn't exist
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDELOCK_TOKEN_FILE",
        hide_env_values = true
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// How long in-flight requests may take to finish when the daemon stops
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) shutdown_grace_ms: Option<u64>,
    /// Detach from the terminal, and tell the parent on standard output when the daemon is ready
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}
