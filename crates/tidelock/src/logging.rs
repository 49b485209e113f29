//! Where the daemon's log goes and what it looks like: for people on a terminal, JSON otherwise.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{Exit, Failure};
use crate::log_file::LogFile;

/// Chooses what is logged, such as `debug` or `daemon=debug,info`.
const VARIABLE: &str = "TIDELOCK_LOG";
const DEFAULT_FILTER: &str = "info";
/// A library that logs every message of every client at a level that others use for important events. Messages are
/// private; to see them, name the library in the filter.
const TALKATIVE: &str = "rmcp";

pub(crate) fn wanted(variable: &dyn Fn(&str) -> Option<OsString>) -> String {
    variable(VARIABLE)
        .and_then(|filter| filter.into_string().ok())
        .filter(|filter| !filter.is_empty())
        .unwrap_or_else(|| DEFAULT_FILTER.to_owned())
}

/// Starts logging to standard error, for the whole process. A background daemon passes the file behind it.
pub(crate) fn start(file: Option<LogFile>) -> Result<(), Failure> {
    let filter = quiet(&wanted(&|name| std::env::var_os(name)));
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::new(
            Exit::Usage,
            "usage",
            format!("{VARIABLE} is not a valid filter: {error}"),
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
    } else if let Some(file) = file {
        registry
            .with(tracing_subscriber::fmt::layer().with_writer(file).json())
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

/// Silences the talkative library, unless the filter mentions it.
fn quiet(filter: &str) -> String {
    match filter.contains(TALKATIVE) {
        true => filter.to_owned(),
        false => format!("{filter},{TALKATIVE}=warn"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_clients_are_logged_only_for_who_asks() {
        for (filter, expected) in [
            ("info", "info,rmcp=warn"),
            ("daemon=debug,info", "daemon=debug,info,rmcp=warn"),
            ("rmcp=debug", "rmcp=debug"),
        ] {
            assert_eq!(quiet(filter), expected);
        }
    }
}
