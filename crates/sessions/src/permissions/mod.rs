//! What agents may do: which rule counts, and what may be shown.

mod readable;
mod rules;

pub use readable::Readable;
pub(crate) use rules::speaks_of;
pub use rules::{decide, exactly};
