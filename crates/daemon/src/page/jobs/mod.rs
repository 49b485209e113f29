//! Jobs: the list, one job with its output, and the buttons of both.

pub(super) mod act;
pub(super) mod detail;
pub(super) mod list;
pub(super) mod output;
pub(super) mod state;
pub(super) mod timeline;
