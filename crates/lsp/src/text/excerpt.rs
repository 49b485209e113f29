//! A few lines of a text, to be shown beside a result.

use std::ops;

use serde::Serialize;

use super::LineIndex;

/// How much of a text a result may carry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExcerptLimits {
    /// Lines before and behind the range.
    pub context_lines: usize,
    pub max_lines: usize,
    pub max_columns: usize,
}

impl Default for ExcerptLimits {
    /// The line of a result, and a little of a long range: a thousand results stay readable and below a megabyte.
    fn default() -> Self {
        Self {
            context_lines: 0,
            max_lines: 3,
            max_columns: 200,
        }
    }
}

/// Lines of a text. What was left out of a line is marked by `…`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Excerpt {
    /// The number of the first line; the first line of a text is 1.
    pub first_line: u32,
    /// The lines, without line breaks.
    pub lines: Vec<String>,
}

impl Excerpt {
    pub fn around(text: &LineIndex, offsets: &ops::Range<usize>, limits: &ExcerptLimits) -> Self {
        let (first_of_range, _) = text.line_at(offsets.start);
        let (last_of_range, _) = text.line_at(offsets.end.max(offsets.start));
        let first = first_of_range.saturating_sub(limits.context_lines);
        let last = (last_of_range + limits.context_lines).min(text.line_count() - 1);
        let shown = (last + 1 - first).min(limits.max_lines.max(1));
        let lines = (first..first + shown).filter_map(|number| {
            let line = text.line_range(number)?;
            let start = offsets.start.clamp(line.start, line.end) - line.start;
            let end = offsets.end.clamp(line.start, line.end) - line.start;
            Some(cut(&text.text()[line], start..end.max(start), limits.max_columns))
        });
        Self {
            first_line: u32::try_from(first + 1).unwrap_or(u32::MAX),
            lines: lines.collect(),
        }
    }
}

/// Cuts a line so that the middle of a range stays in sight.
fn cut(line: &str, range: ops::Range<usize>, max_columns: usize) -> String {
    let length = line.chars().count();
    if length <= max_columns {
        return line.to_owned();
    }
    let start = line[..range.start].chars().count();
    let end = start + line[range].chars().count();
    // A range that does not fit is shown from its beginning.
    let spare = max_columns.saturating_sub(end - start);
    let first = start.saturating_sub(spare / 2).min(length - max_columns);
    let kept: String = line.chars().skip(first).take(max_columns).collect();
    let before = if first > 0 { "…" } else { "" };
    let behind = if first + max_columns < length { "…" } else { "" };
    format!("{before}{kept}{behind}")
}
