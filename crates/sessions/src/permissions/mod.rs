//! What agents may do: which rule applies, and which files may be shown.

mod readable;
mod rules;

pub use readable::Readable;
pub(crate) use rules::speaks_of;
pub use rules::{decide, exactly};
