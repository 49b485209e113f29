//! The changed places of a text, with a few lines around each.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token, sources::byte_lines};

/// How many lines around a change are shown, as git does.
const CONTEXT_LINES: u32 = 3;

/// Two texts, and how they differ.
pub(super) struct Compared<'a> {
    input: InternedInput<&'a [u8]>,
    hunks: Vec<Hunk>,
}

/// Changes that are shown together, in lines of both texts, from 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Group {
    pub(super) before: Range<u32>,
    pub(super) after: Range<u32>,
    changes: Range<usize>,
}

/// What a line of a group is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DiffLineKind {
    /// It is the same in both.
    Context,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

impl<'a> Compared<'a> {
    pub(super) fn new(before: &'a [u8], after: &'a [u8]) -> Self {
        let input = InternedInput::new(byte_lines(before), byte_lines(after));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let hunks = diff.hunks().collect();
        Self { input, hunks }
    }

    /// Whether they do not.
    pub(super) fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }

    /// How many lines were added.
    pub(super) fn added_lines(&self) -> u64 {
        self.hunks.iter().map(|hunk| hunk.after.len() as u64).sum()
    }

    /// How many lines were removed.
    pub(super) fn removed_lines(&self) -> u64 {
        self.hunks.iter().map(|hunk| hunk.before.len() as u64).sum()
    }

    /// How much of the texts is the same, in percent, rounded down.
    pub(super) fn similarity_percent(&self) -> u64 {
        let bytes = |lines: &[Token]| {
            lines
                .iter()
                .map(|line| self.input.interner[*line].len() as u64)
                .sum::<u64>()
        };
        let larger = bytes(&self.input.before).max(bytes(&self.input.after));
        let removed: u64 = self
            .hunks
            .iter()
            .map(|hunk| bytes(&self.input.before[range(&hunk.before)]))
            .sum();
        let same = bytes(&self.input.before) - removed;
        (same * 100).checked_div(larger).unwrap_or(100)
    }

    /// The groups of changes that are shown together, in order. Those whose surroundings meet are one.
    pub(super) fn groups(&self) -> Vec<Group> {
        let (before_lines, after_lines) = (self.input.before.len() as u32, self.input.after.len() as u32);
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

    /// The lines of a group, with their ends.
    pub(super) fn lines(&self, group: &Group) -> impl Iterator<Item = (DiffLineKind, &'a [u8])> {
        let mut lines = Vec::new();
        let text = |lines: &[Token], at: u32| self.input.interner[lines[at as usize]];
        let mut at = group.before.start;
        for hunk in &self.hunks[group.changes.clone()] {
            let context = at..hunk.before.start;
            lines.extend(context.map(|at| (DiffLineKind::Context, text(&self.input.before, at))));
            let removed = hunk.before.clone();
            lines.extend(removed.map(|at| (DiffLineKind::Removed, text(&self.input.before, at))));
            let added = hunk.after.clone();
            lines.extend(added.map(|at| (DiffLineKind::Added, text(&self.input.after, at))));
            at = hunk.before.end;
        }
        let context = at..group.before.end;
        lines.extend(context.map(|at| (DiffLineKind::Context, text(&self.input.before, at))));
        lines.into_iter()
    }
}

fn range(lines: &Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}
