//! Lines and columns, the protocol's and people's.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position as the protocol has it: both count from zero, the character in units of the agreed encoding.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WirePosition {
    /// The line.
    pub line: u32,
    /// The unit within the line.
    pub character: u32,
}

/// A range as the protocol has it. The end is not part of it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct WireRange {
    /// Where it begins.
    pub start: WirePosition,
    /// Where it ends.
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
    /// Where it begins.
    pub start: Position,
    /// Where it ends.
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
    /// Lines and columns begin with 1.
    #[error("{position} is not a position: lines and columns are counted from 1")]
    Zero {
        /// What was asked for.
        position: Position,
    },
    /// The text ends before that line.
    #[error("there is no line {line}: the text has {lines} line(s)")]
    NoSuchLine {
        /// What was asked for.
        line: u32,
        /// How many there are.
        lines: u32,
    },
    /// The line ends before that column.
    #[error("there is no column {column} in line {line}: the line has {length} character(s)")]
    NoSuchColumn {
        /// The line.
        line: u32,
        /// What was asked for.
        column: u32,
        /// How many characters the line has. One more is its end, which is a position too.
        length: u32,
    },
    /// The end of a range lies before its beginning.
    #[error("the range {range} ends before it begins")]
    Inverted {
        /// What was asked for.
        range: Range,
    },
}
