//! The arguments of `tidelock activity`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ActivityArguments {
    /// Only show events of this kind
    #[arg(long, value_name = "KIND")]
    pub(crate) of: Option<ActivityOf>,
    /// The maximum number of events to show
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
}

/// The kinds of things that have events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ActivityOf {
    Sessions,
    Plans,
    Jobs,
    Servers,
    Breakers,
    Daemon,
}
