//! What the tests of the service and the acceptance scenarios are made of: a handler that does what it is told, step by
//! step, and daemons that can be stalled and killed.
//!
//! The integration tests and the acceptance scenarios include this module.

pub(crate) mod board;
pub(crate) mod daemon;
