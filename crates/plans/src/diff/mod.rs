//! What changed, line by line: for people ([`diff`]), and as a patch for `git apply` ([`write_patch`]).
//!
//! Lines are compared with the histogram algorithm and ambiguous changes are moved to where the indentation suggests, as
//! git shows them.

mod binary;
mod file;
mod hunks;
mod name;
mod patch;
mod sides;

pub use file::{Diff, FileDiff, diff};
pub use patch::write_patch;
