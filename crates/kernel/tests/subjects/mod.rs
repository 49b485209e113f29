//! What the scenarios of the founding reports are run against: our types, and the faulty algorithms of the
//! reports, behind one trait each. A scenario that the faulty algorithm passes proves nothing.
//!
//! The models, the stress tests and the acceptance scenarios all include this module.

pub(crate) mod breaker;
pub(crate) mod cancellation;

/// Locks and atomics as the build wants them: explored by loom in the models, real elsewhere.
mod sync {
    #[cfg(tidelock_model)]
    pub(crate) use loom::sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    };
    #[cfg(not(tidelock_model))]
    pub(crate) use std::sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    };
}
