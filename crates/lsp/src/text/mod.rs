//! Positions and edits of text.
//!
//! A place in a text has three names: a byte offset (ours), a line and a number of code units (the protocol's, in the
//! encoding that was agreed on with the server), and a line and a column that count from one (people's; a column counts
//! characters). [`LineIndex`] holds one text and turns each name into the others.
//!
//! **Who may be wrong:** a server's position that lies outside of the text is moved to the nearest place inside, as
//! the protocol says. A person's is refused, with what would have been right.
//!
//! **What must not happen here:** files, tasks, clocks. Everything is a function of its arguments.

mod change;
mod diff;
mod edits;
mod encoding;
mod excerpt;
mod line_index;
mod position;
mod uri;

pub use change::{ContentChange, smallest_change};
pub use diff::unified_diff;
pub use edits::{EditError, TextEdit, apply_edits};
pub use encoding::PositionEncoding;
pub use excerpt::{Excerpt, ExcerptLimits};
pub use line_index::LineIndex;
pub use position::{Position, PositionError, Range, WirePosition, WireRange};
pub use uri::{UriError, path_of_uri, uri_of_path};
