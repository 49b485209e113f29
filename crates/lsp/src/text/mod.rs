//! Positions and edits of text.
//!
//! A position in a text has three forms: a byte offset (ours), a line and a number of code units (the protocol's,
//! in the encoding negotiated with the server), and a line and a column that count from one (the user's; columns
//! count characters). [`LineIndex`] holds one text and converts between them.
//!
//! **Invalid positions:** a server's position outside the text is moved to the nearest one inside, per the protocol. A
//! user's is refused, and the error names the valid range.
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
pub use excerpt::excerpt;
pub use line_index::LineIndex;
pub use position::{PositionError, WirePosition, WireRange};
pub use uri::{UriError, path_of_uri, uri_of_path};
