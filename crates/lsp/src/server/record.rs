//! The recent output of a server, across all its processes, for people who want to know what went wrong.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How many lines are kept: several starts of the most verbose server we know. The oldest are dropped first.
const LINES: usize = 500;
/// The longest line that is kept; the rest of it is cut off.
const LINE_LIMIT_BYTES: usize = 2 * 1024;

/// The source of a line, and its severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLevel {
    Error,
    Warning,
    Info,
    Log,
    Stderr,
    /// Written by the daemon: what happened to the server.
    State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLine {
    pub at: SystemTime,
    pub level: RecordLevel,
    pub text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Guards the lines; held to add or copy them.
    lines: Mutex<VecDeque<RecordLine>>,
}

impl Record {
    pub(crate) fn add(&self, level: RecordLevel, text: &str) {
        let at = SystemTime::now();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for text in text.lines().filter(|line| !line.trim().is_empty()) {
            if lines.len() == LINES {
                lines.pop_front();
            }
            let text = cut(text).to_owned();
            lines.push_back(RecordLine { at, level, text });
        }
    }

    /// The lines, oldest first.
    pub(crate) fn lines(&self) -> Vec<RecordLine> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

/// What a process has written to standard error so far. It is recorded when the process has ended.
pub(crate) fn stderr_lines(tail: &str) -> Vec<RecordLine> {
    let so_far = Record::default();
    so_far.add(RecordLevel::Stderr, tail);
    so_far.lines()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LINE_LIMIT_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_go_first_and_long_ones_are_cut() {
        let record = Record::default();
        record.add(RecordLevel::Log, "one\n\n  \ntwo");
        record.add(RecordLevel::Error, &"ü".repeat(LINE_LIMIT_BYTES));
        let lines: Vec<(RecordLevel, usize)> = record
            .lines()
            .iter()
            .map(|line| (line.level, line.text.len()))
            .collect();
        assert_eq!(
            lines,
            [
                (RecordLevel::Log, 3),
                (RecordLevel::Log, 3),
                (RecordLevel::Error, LINE_LIMIT_BYTES)
            ]
        );
        for number in 0..LINES {
            record.add(RecordLevel::Stderr, &number.to_string());
        }
        let lines = record.lines();
        assert_eq!((lines.len(), lines[0].text.as_str()), (LINES, "0"));
    }
}
