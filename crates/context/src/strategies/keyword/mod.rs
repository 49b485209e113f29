//! The strategy `keyword`: finds the words and names of a question.
//!
//! - `concepts.rs`: what to search for, and in which forms. `pattern.rs`: finds all of it in one pass over a text.
//!   `line.rs`: how well a match fits, given its position.
//! - `candidates.rs`: the files worth reading, from the index. `walk.rs`: the same without an index, by searching every
//!   file. `postings.rs`: the required interface of an index.
//! - `reading.rs`: reads candidates on several threads. `score.rs`: how well a file fits, and which of its lines.
//!   `place.rs`: weighs a file by its path.
//! - `strategy.rs`: the steps in their order.
//!
//! Both ways end in the same reading and scoring, so the index changes how fast an answer is, not its content.

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
