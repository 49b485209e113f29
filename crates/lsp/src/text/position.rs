//! Lines and columns, the protocol's and people's.

use std::fmt;

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

/// A position as people have it: both count from one, the column in characters (Unicode scalar values).
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Position {
    /// The line; the first is 1.
    pub line: u32,
    /// The character within the line; the first is 1, and the one behind the last stands for the end of the line.
    pub column: u32,
}

/// A range as people have it. The end is not part of it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Range {
    pub start: Position,
    pub end: Position,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.start, self.end)
    }
}

/// A person named a place that the text does not have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PositionError {
    #[error("{position} is not a position: lines and columns are counted from 1")]
    Zero { position: Position },
    #[error("there is no line {line}: the text has {lines} line(s)")]
    NoSuchLine { line: u32, lines: u32 },
    #[error("there is no column {column} in line {line}: the line has {length} character(s)")]
    NoSuchColumn {
        line: u32,
        column: u32,
        /// How many characters the line has. One more is its end, which is a position too.
        length: u32,
    },
    #[error("the range {range} ends before it begins")]
    Inverted { range: Range },
}
