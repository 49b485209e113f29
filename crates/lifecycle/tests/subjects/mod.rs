//! What the scenarios of the founding report on restarts are run against: our manager, and the algorithm of the
//! report, behind one trait. A scenario that the faulty algorithm passes proves nothing.
//!
//! The integration tests and the acceptance scenarios include this module.

pub(crate) mod restart;
pub(crate) mod scripted;
