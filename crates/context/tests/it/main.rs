//! Context through its public interface.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod command;
mod contexts;
mod executor;
mod executor_ends;
mod index;
mod pipeline;
mod pipeline_kit;
mod pipeline_laws;
mod recent;
mod sources_kit;
