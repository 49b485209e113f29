//! The daemon through its real sockets, one module for each subject.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

mod activity;
mod boots;
mod breakers;
mod client;
mod configuration;
mod context;
mod context_plans;
mod context_stops;
mod drain;
mod errors;
mod history;
mod hosts;
mod ids;
mod jobs;
mod jobs_page;
mod limits;
mod log;
mod many_streams;
mod mcp;
mod metrics;
mod overrides;
mod page;
mod plan_checks;
mod plan_life;
mod plan_lists;
mod plans;
mod plans_page;
mod processes;
mod reference;
mod running;
mod secrets;
mod servers;
mod session_life;
mod session_stops;
mod sessions;
mod start;
mod turn_stream;
mod upkeep;
