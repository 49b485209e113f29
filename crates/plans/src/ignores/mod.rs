//! What git ignores, by git's own rules: `.gitignore` in every directory, `info/exclude` and `core.excludesFile`;
//! tracked files are never ignored. On top of that, `.worktreeinclude` in the root names ignored files to include
//! anyway.
//!
//! A [`Level`] holds the rules of one directory and knows those above it; the scan makes one for each directory it
//! enters. [`IgnoreRules`] does the same for paths in any order.
//!
//! **What must not happen here:** writing anything, or reading a tree other than through the caller.

mod git_settings;
mod include;
mod level;
mod repository;
mod rules;
mod seen;
mod sources;
mod tracked;

pub(crate) use level::{IgnoreMatch, Level};
pub use rules::IgnoreRules;
pub(crate) use seen::SeenSources;
pub use sources::IgnoreSources;
pub(crate) use sources::bounded_rules;

/// The largest rules file that is read, in bytes. Git has such a limit too. A larger one counts as empty, so that the
/// files it names are carried rather than lost.
pub(crate) const RULES_LIMIT_BYTES: u64 = 16 * 1024 * 1024;
