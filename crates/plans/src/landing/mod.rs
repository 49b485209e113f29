//! Landing: applying effects to a tree, all or nothing, while others may write to the same files.
//!
//! # The steps
//! 1. *Stage*: every new content is written to a separate directory on the tree's file system and synced to disk, and a
//!    marker records that it is complete. Nothing in the tree has been touched.
//! 2. *Carry out*: removals are taken out, the deepest first; then additions are put in, directories before their
//!    contents. A path that already has something is *exchanged* with the staged file in one kernel operation, so that
//!    there is no moment without a file. What came out is checked. If it isn't what we expected, someone saved in that
//!    instant: it is put back at once, merged again, and the path is retried, at most five times.
//! 3. *Clean*: what came out is removed, one file after the other, each checked right before and once more right
//!    after.
//!
//! If any step fails, everything is *rolled back*, in reverse order.
//!
//! If the file system can't exchange files, it takes three steps; see `exchange.rs`.
//!
//! # What a kill leaves
//! Progress is never recorded, only observed. For every effect, the tree and the staging directory together show
//! whether it was carried out:
//! - an addition: its staged file is gone;
//! - a replacement: its staged file no longer has the new content;
//! - a deletion: the old file is in the staging directory;
//! - a removed directory: it doesn't exist, and its stand-in is in the staging directory.
//!
//! Recovery checks each effect and continues from there: forwards, or backwards if the marker says that it was being
//! rolled back. Recovery may be killed as well. An effect that was merged again has a note in the staging directory,
//! which is on disk before it is acted on; every round uses its own names there, so nothing is ever overwritten.
//!
//! # What others write
//! - A program that replaces a file by renaming (most editors) is detected by the check of what came out.
//! - A program that has the old file open and keeps writing to it writes into the staging directory after the exchange.
//!   That file is checked again when everything is on disk, right before it is removed, and once more after that, while
//!   we still have it open. Anything found then is *kept* and reported. One gap remains: a descriptor that is still
//!   open after the last check. What is written to it later is lost, as with every program that replaces files.
//! - A save that is there before the exchange is never moved. One that comes between the check and the exchange is
//!   moved out and back within microseconds; a program that reads the path in that very instant, and later saves what
//!   it read, overwrites it.
//! - If someone saves over the new content during a rollback, they keep the path: the last save stays in the file,
//!   and what we had to put there is kept and reported.
//!
//! **What must not happen here:** deciding what the new content is. That is the job of the merge.

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
