//! The daemon itself: processes, breakers, recent events, the configuration, and what each error code means.

pub(super) mod breaker_history;
pub(super) mod breakers;
pub(super) mod configuration;
pub(super) mod error_docs;
pub(super) mod events;
pub(super) mod processes;
