//! What changed, for people.

use std::collections::HashSet;
use std::io;

use protocol::{DiffHunk, DiffLine, DiffLineKind};

use super::hunks::{Compared, Group};
use super::sides::{Content, Shown};
use crate::{Change, ChangeKind, Contents, RelPath};

/// The most lines of one file that a diff shows. Nobody reads more; what is left out is said, and the patch has all.
const FILE_LINE_LIMIT: u64 = 10_000;
/// The most lines that a diff shows altogether, so that one answer stays one that a browser can show.
const TOTAL_LINE_LIMIT: u64 = 100_000;
/// The most bytes of a line that a diff shows. Longer ones are made by machines.
const LINE_LIMIT_BYTES: usize = 4096;
/// The most files that a diff shows, for the same reasons.
const FILE_LIMIT: usize = 3000;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Diff {
    /// The files, in the order of paths.
    pub files: Vec<FileDiff>,
    /// How many files were left out because there are too many.
    pub files_left_out: u64,
    /// How many lines were added, in all files, also in those that are left out.
    pub added_lines: u64,
    pub removed_lines: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileDiff {
    pub path: RelPath,
    /// Where it came from, if it was renamed.
    pub from: Option<RelPath>,
    pub kind: ChangeKind,
    /// The mode before, with the type of the file as git has it; `None` if nothing was there.
    pub old_mode: Option<u32>,
    pub new_mode: Option<u32>,
    /// Whether it is not text, or too large to be shown.
    pub binary: bool,
    pub added_lines: u64,
    pub removed_lines: u64,
    pub hunks: Vec<DiffHunk>,
    /// Whether some were left out because there are too many lines.
    pub cut: bool,
}

/// What some changes change, for people. Directories are shown only if nothing that is shown is in them.
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
            // From here on, lines are only counted.
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

/// The first line, from 1; if there is none, the line before.
pub(super) fn start(lines: &std::ops::Range<u32>) -> u64 {
    u64::from(lines.start) + u64::from(!lines.is_empty())
}

/// What is not UTF-8 is replaced, and a very long line is cut.
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
