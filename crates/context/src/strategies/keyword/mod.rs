//! The strategy `keyword`: the words and names of a question, where they stand.
//!
//! - `concepts.rs`: what is looked for, and in which forms. `pattern.rs`: all of it in one pass over a text. `line.rs`: how
//!   well a match fits where it stands.
//! - `candidates.rs`: the files worth reading, from the index. `walk.rs`: the same without an index, by looking into every
//!   file. `postings.rs`: what is needed of an index.
//! - `reading.rs`: candidates are read, on several threads. `score.rs`: how well a file fits, and which lines of it.
//!   `place.rs`: what a path says about a file.
//! - `strategy.rs`: the steps in their order.
//!
//! Both ways end in the same reading and scoring, so the index changes how fast an answer is and not what it is.

mod candidates;
mod concepts;
mod line;
mod pattern;
mod place;
mod postings;
mod reading;
mod score;
mod strategy;
mod walk;

#[cfg(test)]
mod tests;

pub(super) use place::{Wishes, factor};
pub(super) use reading::Time;
pub(super) use strategy::look;
