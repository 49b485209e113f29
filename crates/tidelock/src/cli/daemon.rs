//! The arguments of the commands that start, stop, check and copy a daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::units;

#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// How long to wait for the daemon to end
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// Really remove it
    #[arg(long)]
    pub(crate) yes: bool,
    /// How long to wait for the daemon to end
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = units::parse_duration)]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Read the whole log and check that it is as it was written
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
    /// Where the copy shall be
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveArguments {
    /// The archive, or `-` for the standard stream
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen for HTTP; port 0 means any free port
    #[arg(long, value_name = "ADDRESS", env = "TIDELOCK_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<SocketAddr>,
    /// A host name that requests may be sent to, besides those of the loopback interface (may be repeated)
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,
    /// The file with the bearer token, made if it is missing
    #[arg(
        long,
        value_name = "FILE",
        env = "TIDELOCK_TOKEN_FILE",
        hide_env_values = true
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// How long requests in flight may take to finish when the daemon stops
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) shutdown_grace_ms: Option<u64>,
    /// Leave the terminal, and tell the parent through standard output when the daemon serves
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}
