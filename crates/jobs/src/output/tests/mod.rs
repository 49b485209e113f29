//! Output on a real log.

mod buffer;
mod engines;
mod follow;
mod write;
