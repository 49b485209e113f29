//! A line of a text, to show beside a result.

use std::ops;

use super::LineIndex;

/// The line that a range begins in, without its line break. A long line is cut so that the middle of the range stays
/// visible; `…` marks what was cut off.
pub fn excerpt(text: &LineIndex, offsets: &ops::Range<usize>, max_columns: usize) -> String {
    let (number, _) = text.line_at(offsets.start);
    let Some(range) = text.line_range(number) else {
        return String::new();
    };
    let start = offsets.start.clamp(range.start, range.end) - range.start;
    let end = (offsets.end.clamp(range.start, range.end) - range.start).max(start);
    let line = &text.text()[range];
    let length = line.chars().count();
    if length <= max_columns {
        return line.to_owned();
    }
    let first_shown = line[..start].chars().count();
    // A range that doesn't fit is shown from its beginning.
    let spare = max_columns.saturating_sub(line[start..end].chars().count());
    let first = first_shown.saturating_sub(spare / 2).min(length - max_columns);
    let kept: String = line.chars().skip(first).take(max_columns).collect();
    let before = if first > 0 { "…" } else { "" };
    let behind = if first + max_columns < length { "…" } else { "" };
    format!("{before}{kept}{behind}")
}
