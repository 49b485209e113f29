//! Positions as the protocol counts them, and invalid positions.

use protocol::{Position, Range};
use serde::{Deserialize, Serialize};

/// A position in the protocol's form: both count from zero, the character in units of the agreed encoding.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WirePosition {
    pub line: u32,
    pub character: u32,
}

/// A range in the protocol's form. The end is exclusive.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WireRange {
    pub start: WirePosition,
    pub end: WirePosition,
}

/// A position that doesn't exist in the text.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PositionError {
    #[error("{position} is not a position: lines and columns are counted from 1")]
    Zero { position: Position },
    #[error("there is no line {line}: the text ends at line {lines}")]
    NoSuchLine { line: u32, lines: u32 },
    #[error("there is no column {column} in line {line}: the line ends after column {length}")]
    NoSuchColumn {
        line: u32,
        column: u32,
        /// How many characters the line has. The column after the last one is its end, which is a position too.
        length: u32,
    },
    #[error("the range {range} ends before it begins")]
    Inverted { range: Range },
}
