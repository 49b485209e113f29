//! The agent `rehearsal`: it follows a script, so that anyone can try everything without a model, and tests can force
//! any interleaving.
//!
//! - `script.rs`, `reading.rs`: what a script is, and how it's parsed from YAML, within limits.
//! - `player.rs`, `random.rs`: which step is next. Pure.
//! - `filling.rs`, `words.rs`: filling in placeholders in texts, and splitting texts into words.
//! - `stage.rs`, `calls.rs`, `agent.rs`: running the steps, through the same tools that a model has.
//! - `default_script.rs`: the script to run if there is none.
//!
//! **Who owns the state:** the turn; a rehearsal keeps nothing between turns.
//!
//! **What must not happen here:** a step that a model could not take. Scripts are untrusted: anything they can make
//! grow has a named limit.

mod agent;
mod calls;
mod default_script;
mod filling;
mod player;
mod random;
mod reading;
mod script;
mod stage;
mod words;

pub use agent::Rehearsal;
pub use script::{Script, ScriptError};
