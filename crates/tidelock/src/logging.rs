//! Where the daemon's log goes and what it looks like: for people on a terminal, JSON otherwise.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{Exit, Failure};

/// Chooses what is logged, such as `debug` or `daemon=debug,info`.
const VARIABLE: &str = "TIDELOCK_LOG";
const DEFAULT_FILTER: &str = "info";

/// Starts logging to standard error, for the whole process.
pub(crate) fn start() -> Result<(), Failure> {
    let wanted = std::env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(DEFAULT_FILTER)).map_err(|error| {
        Failure::new(
            Exit::Usage,
            "usage",
            format!("{VARIABLE} is not a filter: {error}"),
        )
        .advise("write a level such as `debug`, or targets such as `daemon=debug,info`")
    })?;
    let registry = tracing_subscriber::registry().with(filter);
    let on_terminal = io::stderr().is_terminal();
    let started = if on_terminal {
        let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_writer(io::stderr)
                    .with_ansi(colours),
            )
            .try_init()
    } else {
        registry
            .with(tracing_subscriber::fmt::layer().with_writer(io::stderr).json())
            .try_init()
    };
    started.map_err(|error| {
        Failure::new(
            Exit::Failed,
            "logging",
            format!("the log cannot be started: {error}"),
        )
    })
}
