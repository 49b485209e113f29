//! The agent `rehearsal`: it does what a script says, so that anyone can try everything without a model, and every test
//! can force an interleaving.
//!
//! - `script.rs`, `reading.rs`: what a script is, and how it is read from YAML, within limits.
//! - `player.rs`, `random.rs`: which step is next. Pure.
//! - `filling.rs`, `words.rs`: texts: what is put into them, and how they are cut.
//! - `stage.rs`, `calls.rs`, `agent.rs`: the steps carried out, through the same tools that a model has.
//! - `default_script.rs`: what is done if there is no script.
//!
//! **Who owns the state:** nobody but the turn itself; a rehearsal keeps nothing between turns.
//!
//! **What must not happen here:** a step that a model could not take. A script is other people's text: whatever it can make
//! grow has a limit with a name.

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
