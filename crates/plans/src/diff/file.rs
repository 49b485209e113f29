//! A diff of changes, for people.

use std::collections::HashSet;
use std::io;

use protocol::{DiffHunk, DiffLine, DiffLineKind};

use super::hunks::{Compared, Group};
use super::sides::{Content, Shown};
use crate::{Change, ChangeKind, Contents, RelPath};

/// The maximum number of lines that a diff shows of one file. Longer diffs aren't read; the diff says what it left
/// out, and the patch is complete.
const FILE_LINE_LIMIT: u64 = 10_000;
/// The maximum number of lines in a diff, so that a browser can show it.
const TOTAL_LINE_LIMIT: u64 = 100_000;
/// The maximum number of bytes that a diff shows of a line. Longer ones are machine-generated.
const LINE_LIMIT_BYTES: usize = 4096;
/// The maximum number of files in a diff, for the same reasons.
const FILE_LIMIT: usize = 3000;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Diff {
    /// The files, in path order.
    pub files: Vec<FileDiff>,
    /// How many files were left out because there are too many.
    pub files_left_out: u64,
    /// How many lines were added in all files, including those left out.
    pub added_lines: u64,
    pub removed_lines: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileDiff {
    pub path: RelPath,
    /// Where it came from, if it was renamed.
    pub from: Option<RelPath>,
    pub kind: ChangeKind,
    /// The mode before, including git's file type; `None` if the file didn't exist.
    pub old_mode: Option<u32>,
    pub new_mode: Option<u32>,
    /// Whether it is binary, or too large to show.
    pub binary: bool,
    pub added_lines: u64,
    pub removed_lines: u64,
    pub hunks: Vec<DiffHunk>,
    /// Whether some were left out because there are too many lines.
    pub cut: bool,
}

/// Shows changes as a diff for people. A directory is shown only if nothing below it is.
pub fn diff(changes: &[Change], contents: &dyn Contents) -> io::Result<Diff> {
    let inhabited: HashSet<RelPath> = changes
        .iter()
        .flat_map(|change| change.path.ancestors())
        .collect();
    let shown: Vec<&Change> = changes
        .iter()
        .filter(|change| is_shown(change, &inhabited))
        .collect();
    let mut diff = Diff {
        files_left_out: shown.len().saturating_sub(FILE_LIMIT) as u64,
        ..Diff::default()
    };
    let mut lines_left = TOTAL_LINE_LIMIT;
    for (number, change) in shown.into_iter().enumerate() {
        if number == FILE_LIMIT {
            // From here on, only count lines.
            lines_left = 0;
        }
        let file = file_diff(change, contents, lines_left.min(FILE_LINE_LIMIT))?;
        diff.added_lines += file.added_lines;
        diff.removed_lines += file.removed_lines;
        if number < FILE_LIMIT {
            let lines = file.hunks.iter().map(|hunk| hunk.lines.len() as u64);
            lines_left -= lines.sum::<u64>();
            diff.files.push(file);
        }
    }
    diff.files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(diff)
}

fn is_shown(change: &Change, inhabited: &HashSet<RelPath>) -> bool {
    let (before, after) = Shown::both(change);
    !before.is_nothing() || !after.is_nothing() || !inhabited.contains(&change.path)
}

fn file_diff(change: &Change, contents: &dyn Contents, line_limit: u64) -> io::Result<FileDiff> {
    let (before, after) = Shown::both(change);
    let mut file = FileDiff {
        path: change.path.clone(),
        from: change.from.clone(),
        kind: change.kind(),
        old_mode: mode(&before, change.before.is_some()),
        new_mode: mode(&after, change.after.is_some()),
        binary: false,
        added_lines: 0,
        removed_lines: 0,
        hunks: Vec::new(),
        cut: false,
    };
    if before.is_same_content(&after) {
        return Ok(file);
    }
    let (Content::Text(before), Content::Text(after)) = (before.content(contents)?, after.content(contents)?)
    else {
        file.binary = true;
        return Ok(file);
    };
    let compared = Compared::new(&before, &after);
    (file.added_lines, file.removed_lines) = (compared.added_lines(), compared.removed_lines());
    let mut lines_left = line_limit;
    for group in compared.groups() {
        let hunk = hunk(&compared, &group, lines_left);
        lines_left -= hunk.lines.len() as u64;
        file.cut = (hunk.lines.len() as u64) < compared.line_count(&group);
        if !hunk.lines.is_empty() {
            file.hunks.push(hunk);
        }
        if file.cut {
            break;
        }
    }
    Ok(file)
}

fn mode(shown: &Shown<'_>, is_there: bool) -> Option<u32> {
    const DIRECTORY: u32 = 0o040_000;
    shown.mode().or(is_there.then_some(DIRECTORY))
}

fn hunk(compared: &Compared<'_>, group: &Group, line_limit: u64) -> DiffHunk {
    let lines = compared
        .lines(group)
        .take(usize::try_from(line_limit).unwrap_or(usize::MAX));
    DiffHunk {
        old_start: start(&group.before),
        old_lines: group.before.len() as u64,
        new_start: start(&group.after),
        new_lines: group.after.len() as u64,
        lines: lines.map(|(kind, line)| diff_line(kind, line)).collect(),
    }
}

/// The first line, from 1; for an empty range, the line before it.
pub(super) fn start(lines: &std::ops::Range<u32>) -> u64 {
    u64::from(lines.start) + u64::from(!lines.is_empty())
}

/// Replaces invalid UTF-8 and cuts very long lines.
fn diff_line(kind: DiffLineKind, line: &[u8]) -> DiffLine {
    let (text, no_newline) = match line.strip_suffix(b"\n") {
        Some(text) => (text, false),
        None => (line, true),
    };
    let text = match text.get(..LINE_LIMIT_BYTES) {
        Some(start) if text.len() > LINE_LIMIT_BYTES => {
            String::from_utf8_lossy(start).into_owned() + " [...]"
        }
        _ => String::from_utf8_lossy(text).into_owned(),
    };
    DiffLine {
        kind,
        text,
        no_newline,
    }
}
