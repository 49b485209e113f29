//! What an agent can do, within a plan.
//!
//! - [`Toolbox`] is what an agent has in a turn: it says what there is, and calls it.
//! - `tool.rs`: what a tool is. Each has a row in `all.rs`.
//! - `parameters.rs`: what a tool takes: the schema that a model sees, and what is held against it, from one table.
//! - `order.rs`: which calls of a batch wait for which. Pure. `batch.rs` carries it out.
//! - `permit.rs`: the rules and the user. `running.rs`: what a tool has while it runs: the plan, the time, the stop.
//! - `error.rs`: what went wrong, in words that tell a model what to do next. `text.rs`: answers of a bounded size.
//!
//! What is `pub` here is what the tools of MCP share with these: the tables of parameters, paths, parts of files, the hints
//! about an edit that found nothing, and the limits.
//!
//! **Who owns the state:** the plan. Files are read and written through `Plans`, and so behind the descriptor of the
//! sandbox's root; nothing here opens a path of the system.
//!
//! **What must not happen here:** a call that ends without telling the turn's stream, and an answer without a bound.

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
