//! The difference of two texts, for people.

use similar::TextDiff;

/// Lines of context around a change, as is usual for diffs.
const CONTEXT_LINES: usize = 3;

/// How much work a diff may take: lines of one side times lines of the other, without the common beginning and end.
/// Beyond that, the rest is shown as replaced as a whole, which is correct but long.
const WORK_LIMIT: usize = 16_000_000;

/// The difference of two texts in the unified format, with these names in its header. Empty for equal texts.
pub fn unified_diff(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    if work(old, new) > WORK_LIMIT {
        return replaced(old_name, new_name, old, new);
    }
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(old_name, new_name)
        .to_string()
}

fn work(old: &str, new: &str) -> usize {
    let same_before = same_lines(old.lines(), new.lines());
    let same_behind = same_lines(old.lines().rev(), new.lines().rev());
    let rest = |text: &str| text.lines().count().saturating_sub(same_before + same_behind);
    rest(old).saturating_mul(rest(new))
}

fn same_lines<'a>(left: impl Iterator<Item = &'a str>, right: impl Iterator<Item = &'a str>) -> usize {
    left.zip(right).take_while(|(left, right)| left == right).count()
}

fn replaced(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let count = |text: &str| text.split_inclusive('\n').count();
    let mut shown = format!(
        "--- {old_name}\n+++ {new_name}\n@@ -1,{} +1,{} @@\n",
        count(old),
        count(new)
    );
    for (mark, side) in [('-', old), ('+', new)] {
        for line in side.split_inclusive('\n') {
            shown.push(mark);
            shown.push_str(line);
        }
        if !side.ends_with('\n') {
            shown.push_str("\n\\ No newline at end of file\n");
        }
    }
    shown
}
