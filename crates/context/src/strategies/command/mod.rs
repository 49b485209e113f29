//! A strategy that is a command of the user: it reads a question as JSON, and writes places as JSON.
//!
//! - `wire.rs`: what it reads and writes. The format is described in `docs/context.md`.
//! - `strategy.rs`: runs it.
//!
//! **What must not happen here:** a command that outlives its time, and an answer without a bound.

mod strategy;
mod wire;

pub(super) use strategy::CommandStrategy;
