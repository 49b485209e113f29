//! Output on a real log.

mod book;
mod engines;
mod follow;
mod write;
