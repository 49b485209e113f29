//! Plans, their workspaces, and what a failed apply left behind.

pub(super) mod act;
pub(super) mod buttons;
pub(super) mod cards;
pub(super) mod changesets;
pub(super) mod confirm;
pub(super) mod conflicts;
pub(super) mod detail;
pub(super) mod diff;
pub(super) mod diff_rows;
pub(super) mod files;
pub(super) mod lanes;
pub(super) mod list;
pub(super) mod notice;
pub(super) mod recovery;
pub(super) mod state;
pub(super) mod timeline;
pub(super) mod workspaces;
