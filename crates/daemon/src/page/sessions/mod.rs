//! Sessions: the list, one session with its conversation, and the forms of both.

pub(super) mod act;
pub(super) mod detail;
pub(super) mod list;
pub(super) mod plan;
pub(super) mod state;
pub(super) mod turn;
