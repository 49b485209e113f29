//! The front page: what needs a person, what runs, and the state of the log.

pub(super) mod log;
pub(super) mod needs;
pub(super) mod running;
pub(super) mod show;
