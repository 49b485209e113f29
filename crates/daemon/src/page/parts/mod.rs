//! What every page is made of: the shell around it, lists, forms, notices and errors, and text that others wrote.

pub(super) mod ansi;
pub(super) mod assets;
pub(super) mod error;
pub(super) mod form;
pub(super) mod lanes;
pub(super) mod layout;
pub(super) mod list;
pub(super) mod text;
pub(super) mod times;
