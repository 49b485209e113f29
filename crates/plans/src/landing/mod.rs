//! Landing: effects carried out on a tree, all of them or none, while others may write the same files.
//!
//! # The steps
//! 1. *Stage*: every new content is written into a directory of its own on the file system of the tree, is on the disk, and
//!    a marker says that it is complete. Nothing of the tree has been touched.
//! 2. *Carry out*: what is to go is taken out, the deepest first; then what is to come is put in, directories before what is
//!    in them. A path that has something is *exchanged* with the staged one in one step of the kernel, so that there is no
//!    moment without a file. What came out is looked at. If it is not what was expected, somebody saved in that instant: it
//!    is put back at once, merged again, and the path is tried again, at most five times.
//! 3. *Clean*: what came out goes, one file after the other, each looked at right before and once more right after.
//!
//! If anything cannot be done, everything is *taken back*, in the reverse order.
//!
//! Where the file system cannot exchange, it takes three steps, see `exchange.rs`.
//!
//! # What a kill leaves
//! What was done is never remembered, it is seen. Of every effect the tree and the staging directory together say whether
//! it was carried out:
//! - something new: its staged file is gone;
//! - something replaced: its staged file is no longer the new content;
//! - something deleted: it is in the staging directory;
//! - a directory that goes: it is not there, and its stand-in is in the staging directory.
//!
//! Recovery looks at each and goes on from there, forwards, or backwards if the marker says that it was being taken back.
//! It may be killed as well. An effect that was merged again has a note in the staging directory, on the disk before it is
//! acted on; every round has names of its own there, so nothing is ever written over.
//!
//! # What others write
//! - Who replaces a file by renaming (most editors) is found by the look at what came out.
//! - Who has the old file open and writes on into it, writes into the staging directory after the exchange. It is looked at
//!   again when everything is on the disk, right before it is removed, and once more after that, while it is still open
//!   here. What is found then is *kept* and reported. What cannot be closed: a descriptor that is still open after the
//!   last look; what is written into it later is lost, as with every program that replaces files.
//! - A save that is there before the exchange is never moved. One that comes between the look and the exchange is moved out
//!   and back within microseconds; who reads the path in that very instant and later saves what it read, saves over it.
//! - Who saves over the new content while everything is being taken back, keeps the path: the last save stays in the
//!   file, and what we had to put there is kept and reported.
//!
//! **What must not happen here:** deciding what the new content is. That is the business of the merge.

mod area;
mod aside;
mod carry;
mod error;
mod exchange;
mod item;
mod journal;
mod leftover;
mod recover;
mod remerge;
mod roll_back;
mod run;
mod site;
mod stage;
mod steps;

pub(crate) use area::INSIDE;

pub use area::Exchange;
pub use aside::AbandonedLanding;
pub use error::{LandError, LandingEnd, WhyRolledBack};
pub use journal::{BadLandingId, Landing, LandingId};
pub use leftover::{Keep, Leftover, LeftoverSource};
pub use remerge::{NoRemerge, Remerge, Remerged, SavedMeanwhile};
pub use site::{LandingSite, Staged};
pub use steps::{NoSteps, Step, StepKind, Steps};
