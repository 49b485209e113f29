//! The agent `model`: a model behind an interface for chat completions, asked step by step until it calls no tool.
//!
//! - [`ModelAgent`] is the agent, `turn.rs` the loop of one turn, `attempt.rs` one request with what can go wrong in it.
//! - `conversation.rs` is what the model is sent, and what is left out when that is too much.
//! - `wire/` is pure: events from bytes, an answer from events, a fault from a refusal.
//! - `connect.rs` is the HTTP client, and the only place that opens sockets.
//!
//! **Who owns the state:** nobody. A turn's conversation lives as long as its `run`; what was said is in the turn's stream.
//! What is known of the server's health is the breaker's, shared by all turns.
//!
//! **What must not happen here:** a task of its own (the client runs one per connection, which ends with it), an endless wait, a
//! file, and a key in anything that is written or shown.

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
