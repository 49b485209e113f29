//! The agent `model`: a model behind a chat completions API, asked step by step until it calls no tool.
//!
//! - [`ModelAgent`] is the agent, `turn.rs` the loop of one turn, `attempt.rs` one request and everything that can go
//!   wrong.
//! - `conversation.rs` decides what is sent to the model, and what is left out when that is too much.
//! - `wire/` is pure: it parses bytes into events, events into an answer, and a refusal into a fault.
//! - `connect.rs` is the HTTP client, and the only file that opens sockets.
//!
//! **Who owns the state:** there is none here. A turn's conversation lives as long as its `run`; its output is in the
//! turn's stream. The breaker, shared by all turns, tracks the server's health.
//!
//! **What must not happen here:** spawning tasks (the client runs one per connection, which ends with it), waiting
//! without a limit, touching files, or writing or showing a key.

mod agent;
mod attempt;
mod connect;
mod conversation;
mod endpoint;
mod retry;
mod settings;
mod turn;
mod wire;

pub use agent::ModelAgent;
pub use settings::{ApiKey, DEFAULT_BASE_URL, ModelLimits, ModelPrices, ModelSettings};
