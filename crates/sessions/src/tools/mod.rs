//! What an agent can do within a plan.
//!
//! - [`Toolbox`] holds an agent's tools for a turn: it lists them and calls them.
//! - `tool.rs`: what a tool is. Each has a row in `all.rs`.
//! - `parameters.rs`: a tool's parameters: one table yields the schema for the model and validates the arguments.
//! - `order.rs`: which calls of a batch wait for which. Pure. `batch.rs` runs them in that order.
//! - `permit.rs`: the rules and the user. `running.rs`: what a tool works with while it runs: plan, time, cancellation.
//! - `error.rs`: errors, worded so that a model knows what to do next. `text.rs`: answers of a limited size.
//!
//! The `pub` items are shared with the MCP tools: parameter tables, paths, parts of files, hints about an edit that
//! found nothing, and the limits.
//!
//! **Who owns the state:** the plan. Files are read and written through `Plans`, and so relative to the descriptor of
//! the sandbox's root; nothing here opens a system path.
//!
//! **What must not happen here:** a call that ends without telling the turn's stream, or an answer without a size
//! limit.

mod all;
mod batch;
mod change;
mod context;
mod edit;
mod error;
mod language;
mod list;
mod matching;
mod opening;
mod order;
mod parameters;
mod path;
mod permit;
mod plan_diff;
mod read;
mod running;
mod search;
mod shell;
mod spec;
mod text;
mod tool;
mod toolbox;

pub use edit::find_once;
pub use error::ToolError;
pub use parameters::{Need, Parameter, Takes, check, optional, required, schema};
pub use path::SandboxPath;
pub use read::{FileLines, lines_of, similar_path};
pub use spec::{Access, ToolAnswer, ToolCall, ToolSpec, ToolboxOptions};
pub use text::{ANSWER_LIMIT_BYTES, Excerpt, SHOWN_LIMIT_BYTES, cut};
pub use toolbox::Toolbox;
