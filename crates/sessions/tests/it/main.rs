//! Sessions, on a real log.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod acp;
mod acp_faults;
mod acp_kit;
mod acp_real;
mod finder;
mod growth;
mod kit;
mod leaving;
mod log_faults;
mod machines;
mod model;
mod model_faults;
mod model_history;
mod model_kit;
mod model_limits;
mod model_opening;
mod races;
mod rehearsal;
mod service;
mod streams;
mod tools_batch;
mod tools_context;
mod tools_files;
mod tools_hostile;
mod tools_kit;
mod tools_permissions;
mod tools_search;
mod tools_shell;
