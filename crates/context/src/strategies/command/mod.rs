//! A strategy that is a user's command: it reads a question as JSON, and writes locations as JSON.
//!
//! - `wire.rs`: what it reads and writes. The format is described in `docs/context.md`.
//! - `strategy.rs`: runs it.
//!
//! **What must not happen here:** a command that outlives its time limit, and an answer of unlimited size.

mod strategy;
mod wire;

pub(super) use strategy::CommandStrategy;
