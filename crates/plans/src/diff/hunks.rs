//! The changed parts of a text, with a few lines around each.

use std::iter;
use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token, sources::byte_lines};
use protocol::DiffLineKind;

/// The lines of context around a change, as in git.
const CONTEXT_LINES: u32 = 3;

/// Two texts, and how they differ.
pub(super) struct Compared<'a> {
    lines: Lines<'a>,
    hunks: Vec<Hunk>,
}

enum Lines<'a> {
    Both(InternedInput<&'a [u8]>),
    /// One text is empty, so there is nothing to compare. A created or deleted file may have millions of lines, and few
    /// of them are ever shown.
    One(DiffLineKind, &'a [u8]),
}

/// Changes that are shown together, as line ranges of both texts, from 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Group {
    pub(super) before: Range<u32>,
    pub(super) after: Range<u32>,
    changes: Range<usize>,
}

impl<'a> Compared<'a> {
    pub(super) fn new(before: &'a [u8], after: &'a [u8]) -> Self {
        let (kind, text) = match (before, after) {
            ([], text) => (DiffLineKind::Added, text),
            (text, []) => (DiffLineKind::Removed, text),
            (before, after) => {
                let input = InternedInput::new(byte_lines(before), byte_lines(after));
                let mut diff = Diff::compute(Algorithm::Histogram, &input);
                diff.postprocess_lines(&input);
                let hunks = diff.hunks().collect();
                return Self {
                    lines: Lines::Both(input),
                    hunks,
                };
            }
        };
        let whole = 0..count_lines(text);
        let hunk = match kind {
            DiffLineKind::Removed => Hunk {
                before: whole,
                after: 0..0,
            },
            DiffLineKind::Added | DiffLineKind::Context => Hunk {
                before: 0..0,
                after: whole,
            },
        };
        Self {
            lines: Lines::One(kind, text),
            hunks: (!text.is_empty()).then_some(hunk).into_iter().collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }

    pub(super) fn added_lines(&self) -> u64 {
        self.hunks.iter().map(|hunk| hunk.after.len() as u64).sum()
    }

    pub(super) fn removed_lines(&self) -> u64 {
        self.hunks.iter().map(|hunk| hunk.before.len() as u64).sum()
    }

    /// How similar the texts are, in percent, rounded down.
    pub(super) fn similarity_percent(&self) -> u64 {
        let Lines::Both(input) = &self.lines else {
            return if self.is_empty() { 100 } else { 0 };
        };
        let bytes = |lines: &[Token]| {
            let each = lines.iter().map(|line| input.interner[*line].len() as u64);
            each.sum::<u64>()
        };
        let larger = bytes(&input.before).max(bytes(&input.after));
        let removed = self
            .hunks
            .iter()
            .map(|hunk| bytes(&input.before[range(&hunk.before)]));
        let same = bytes(&input.before) - removed.sum::<u64>();
        (same * 100).checked_div(larger).unwrap_or(100)
    }

    /// The groups of changes that are shown together, in order. Changes with adjoining context are in one group.
    pub(super) fn groups(&self) -> Vec<Group> {
        let (before_lines, after_lines) = match &self.lines {
            Lines::Both(input) => (input.before.len() as u32, input.after.len() as u32),
            Lines::One(..) => {
                let whole = self.hunks.first();
                whole.map_or((0, 0), |hunk| (hunk.before.end, hunk.after.end))
            }
        };
        let mut groups: Vec<Group> = Vec::new();
        for (index, hunk) in self.hunks.iter().enumerate() {
            let until_before = (hunk.before.end + CONTEXT_LINES).min(before_lines);
            let until_after = (hunk.after.end + CONTEXT_LINES).min(after_lines);
            let lead = CONTEXT_LINES.min(hunk.before.start);
            match groups.last_mut() {
                Some(group) if group.before.end >= hunk.before.start - lead => {
                    group.before.end = until_before;
                    group.after.end = until_after;
                    group.changes.end = index + 1;
                }
                _ => groups.push(Group {
                    before: hunk.before.start - lead..until_before,
                    after: hunk.after.start - lead..until_after,
                    changes: index..index + 1,
                }),
            }
        }
        groups
    }

    pub(super) fn line_count(&self, group: &Group) -> u64 {
        let added = self.hunks[group.changes.clone()]
            .iter()
            .map(|hunk| hunk.after.len());
        (group.before.len() + added.sum::<usize>()) as u64
    }

    pub(super) fn lines(&self, group: &Group) -> Box<dyn Iterator<Item = (DiffLineKind, &'a [u8])> + '_> {
        let input = match &self.lines {
            Lines::Both(input) => input,
            Lines::One(kind, text) => return Box::new(byte_lines(text).map(|line| (*kind, line))),
        };
        let some = move |kind: DiffLineKind, of: Range<u32>| {
            let side = match kind {
                DiffLineKind::Context | DiffLineKind::Removed => &input.before,
                DiffLineKind::Added => &input.after,
            };
            let lines = side[range(&of)].iter();
            lines.map(move |line| (kind, input.interner[*line]))
        };
        let context = move |of| some(DiffLineKind::Context, of);
        let changes = &self.hunks[group.changes.clone()];
        let ends = changes.iter().map(|hunk| hunk.before.end);
        let starts = iter::once(group.before.start).chain(ends);
        let rest = changes.last().map_or(group.before.start, |hunk| hunk.before.end)..group.before.end;
        let lines = iter::zip(starts, changes).flat_map(move |(start, hunk)| {
            context(start..hunk.before.start)
                .chain(some(DiffLineKind::Removed, hunk.before.clone()))
                .chain(some(DiffLineKind::Added, hunk.after.clone()))
        });
        Box::new(lines.chain(context(rest)))
    }
}

/// Counts the lines of a text. The last one may lack a newline.
fn count_lines(text: &[u8]) -> u32 {
    let ends = memchr::memchr_iter(b'\n', text).count();
    let rest = text.last().is_some_and(|last| *last != b'\n');
    u32::try_from(ends + usize::from(rest)).unwrap_or(u32::MAX)
}

fn range(lines: &Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}
