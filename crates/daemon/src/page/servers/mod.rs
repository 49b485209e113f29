//! Language servers: the list, one server with its log, and the buttons of both.

pub(super) mod act;
pub(super) mod detail;
pub(super) mod list;
pub(super) mod state;
