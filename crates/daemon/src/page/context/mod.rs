//! Questions about code: the form, the answer, and the indexes behind it.

pub(super) mod answer;
pub(super) mod ask;
pub(super) mod indexes;
pub(super) mod question;
