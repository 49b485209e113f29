//! A job's output and progress, in a separate stream.
//!
//! - [`Output`] receives the output of an attempt. One task per attempt writes it (`writer`); it starts with
//!   the first output. `buffer`, which is pure, decides what to write.
//! - [`OutputTail`] reads it, live or later.
//!
//! **Who owns the state:** the stream `job-output/ID`. Its head is the [`OutputSummary`] with the number of the attempt
//! that wrote it; its events are pieces, notes and progress. Only the worker that has the job writes it, under its
//! lease, and each write names the version it saw.
//!
//! **Invariant:** at every version, the pieces of standard output and standard error that were ever written have
//! `bytes - cut_bytes` bytes in total. Progress lines aren't output, and aren't counted anywhere.
//!
//! **What must not happen here:** a write to the stream of the job itself. So output can never undo a change of state.

mod buffer;
mod characters;
mod ending;
mod handle;
mod item;
mod lines;
mod stream;
mod tail;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use handle::OutputOptions;
pub use handle::{Output, OutputError};
pub use item::{OutputItem, OutputSummary, Piece};
pub(crate) use stream::{readable_bytes, summary, unreadable_output};
pub use tail::{FollowEnd, OutputTail};
