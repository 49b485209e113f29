//! Positions as the protocol counts them, and positions that a text doesn't have.

use protocol::{Position, Range};
use serde::{Deserialize, Serialize};

/// A position as the protocol has it: both count from zero, the character in units of the agreed encoding.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WirePosition {
    pub line: u32,
    pub character: u32,
}

/// A range as the protocol has it. The end is not part of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WireRange {
    pub start: WirePosition,
    pub end: WirePosition,
}

/// A position that the text does not have.
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
        /// How many characters the line has. One more is its end, which is a position too.
        length: u32,
    },
    #[error("the range {range} ends before it begins")]
    Inverted { range: Range },
}
