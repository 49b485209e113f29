//! The building blocks of pages: the shell, lists, forms, notices and errors, and untrusted text.

pub(super) mod ansi;
pub(super) mod assets;
pub(super) mod error;
pub(super) mod form;
pub(super) mod lanes;
pub(super) mod layout;
pub(super) mod list;
pub(super) mod text;
pub(super) mod times;
