//! Three-way merge of texts, line by line, with the same result as `git merge-file`.
//!
//! Both sides are compared with the base. Changes of the two sides that overlap or touch form one region. If both sides
//! made the same change to it, that is taken; otherwise it is a conflict. Everything else is taken from the side that
//! changed it. Line endings count: a line that ends in CRLF differs from the same line that ends in LF, and a last line
//! without a newline differs from the same line with one.
//!
//! The diff algorithm is Myers, with ambiguous changes moved down as far as possible. Those are the defaults of `git
//! merge-file`. `git merge` uses the histogram algorithm, which finds different regions in some texts.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token, sources::byte_lines};

use protocol::PlanConflictHunk;

/// The maximum number of regions that a conflict lists. A report is for people, who review a file with more of
/// them as a whole.
const HUNK_LIMIT: usize = 64;
/// The maximum number of bytes that a conflict quotes of one side of a region, for the same reason.
const QUOTE_LIMIT_BYTES: usize = 16 * 1024;
const CUT_MARK: &str = "\n[...]\n";

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TextMerge {
    Clean(Vec<u8>),
    /// Where both sides changed the same lines: the first regions, with long quotes cut.
    Conflicted(Vec<PlanConflictHunk>),
}

/// Merges two texts with a common base.
#[must_use]
pub fn merge_text(base: &[u8], ours: &[u8], theirs: &[u8]) -> TextMerge {
    let texts = Texts::new(base, ours, theirs);
    let (regions, mut merged) = (texts.regions(), Vec::with_capacity(ours.len().max(theirs.len())));
    let conflicts: Vec<_> = regions
        .iter()
        .filter(|region| texts.is_conflict(region))
        .collect();
    if !conflicts.is_empty() {
        let hunks = conflicts.into_iter().take(HUNK_LIMIT);
        return TextMerge::Conflicted(hunks.map(|region| texts.quote(region)).collect());
    }
    texts.merge(&regions, &mut merged);
    TextMerge::Clean(merged)
}

/// Merges two texts with a common base, and takes all lines of both where they changed the same ones, ours first.
pub(super) fn merge_union(base: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let texts = Texts::new(base, ours, theirs);
    let mut merged = Vec::with_capacity(ours.len() + theirs.len());
    texts.merge(&texts.regions(), &mut merged);
    merged
}

/// How two texts differ: ranges of lines, in order, with at least one common line between two.
pub(crate) fn line_changes(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    compare(&InternedInput::new(byte_lines(before), byte_lines(after)))
}

fn compare(input: &InternedInput<&[u8]>) -> Vec<Hunk> {
    let mut diff = Diff::compute(Algorithm::Myers, input);
    diff.postprocess_no_heuristic(input);
    diff.hunks().collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ChangedBy {
    Ours,
    Theirs,
    Both,
}

/// A region that at least one side changed, as line ranges of the three texts, from 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ChangedRegion {
    changed_by: ChangedBy,
    pub(crate) base: Range<usize>,
    pub(crate) ours: Range<usize>,
    pub(crate) theirs: Range<usize>,
}

impl ChangedRegion {
    pub(crate) fn is_by_both(&self) -> bool {
        self.changed_by == ChangedBy::Both
    }
}

/// The regions that two sides changed, in order. Changes that touch, with no unchanged line between them, are one region.
pub(crate) fn regions(ours: &[Hunk], theirs: &[Hunk]) -> Vec<ChangedRegion> {
    let (mut ours, mut theirs) = (Side::new(ours), Side::new(theirs));
    let mut regions = Vec::new();
    while let Some(start) = [ours.next_start(), theirs.next_start()]
        .into_iter()
        .flatten()
        .min()
    {
        let (ours_start, theirs_start) = (ours.map(start), theirs.map(start));
        let (mut end, mut by_ours, mut by_theirs) = (start, false, false);
        // The added change may reach further, and so touch more of either side.
        loop {
            if let Some(taken) = ours.take_up_to(end) {
                (by_ours, end) = (true, end.max(taken));
            } else if let Some(taken) = theirs.take_up_to(end) {
                (by_theirs, end) = (true, end.max(taken));
            } else {
                break;
            }
        }
        regions.push(ChangedRegion {
            changed_by: match (by_ours, by_theirs) {
                (true, false) => ChangedBy::Ours,
                (false, true) => ChangedBy::Theirs,
                _ => ChangedBy::Both,
            },
            base: start..end,
            ours: ours_start..ours.map(end),
            theirs: theirs_start..theirs.map(end),
        });
    }
    regions
}

/// The remaining changes of one side, and how far the consumed ones have shifted its lines.
struct Side<'a> {
    rest: std::slice::Iter<'a, Hunk>,
    before_lines: usize,
    after_lines: usize,
}

impl<'a> Side<'a> {
    fn new(hunks: &'a [Hunk]) -> Self {
        Self {
            rest: hunks.iter(),
            before_lines: 0,
            after_lines: 0,
        }
    }

    fn next_start(&self) -> Option<usize> {
        Some(self.rest.as_slice().first()?.before.start as usize)
    }

    /// Consumes the next change if it begins no later than that line, and returns where it ends.
    fn take_up_to(&mut self, end: usize) -> Option<usize> {
        let hunk = self.rest.as_slice().first()?;
        if hunk.before.start as usize > end {
            return None;
        }
        self.rest.next();
        (self.before_lines, self.after_lines) = (hunk.before.end as usize, hunk.after.end as usize);
        Some(self.before_lines)
    }

    /// The line of this side for a line of the base, which is after the consumed changes and before the rest.
    fn map(&self, line: usize) -> usize {
        line - self.before_lines + self.after_lines
    }
}

/// Three texts with lines as numbers.
struct Texts<'a> {
    input: InternedInput<&'a [u8]>,
    base: Vec<Token>,
    ours: Vec<Token>,
    theirs: Vec<Token>,
    changes: [Vec<Hunk>; 2],
}

impl<'a> Texts<'a> {
    fn new(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Self {
        let mut input = InternedInput::new(byte_lines(base), byte_lines(ours));
        let by_ours = compare(&input);
        let ours = std::mem::take(&mut input.after);
        input.update_after(byte_lines(theirs));
        let by_theirs = compare(&input);
        Self {
            base: std::mem::take(&mut input.before),
            ours,
            theirs: std::mem::take(&mut input.after),
            input,
            changes: [by_ours, by_theirs],
        }
    }

    fn regions(&self) -> Vec<ChangedRegion> {
        let [ours, theirs] = &self.changes;
        regions(ours, theirs)
    }

    fn is_conflict(&self, region: &ChangedRegion) -> bool {
        region.is_by_both() && self.ours[region.ours.clone()] != self.theirs[region.theirs.clone()]
    }

    /// Writes the merged regions, and what is between them. Where both changed the same lines, writes ours and then
    /// theirs.
    fn merge(&self, regions: &[ChangedRegion], merged: &mut Vec<u8>) {
        let mut done = 0;
        for region in regions {
            self.write(&self.base[done..region.base.start], merged);
            let (ours, theirs) = (
                &self.ours[region.ours.clone()],
                &self.theirs[region.theirs.clone()],
            );
            if self.is_conflict(region) {
                self.write(ours, merged);
                // A last line without a newline would run into the next one.
                if !theirs.is_empty() && merged.last().is_some_and(|last| *last != b'\n') {
                    merged.push(b'\n');
                }
                self.write(theirs, merged);
            } else {
                match region.changed_by {
                    ChangedBy::Ours | ChangedBy::Both => self.write(ours, merged),
                    ChangedBy::Theirs => self.write(theirs, merged),
                }
            }
            done = region.base.end;
        }
        self.write(&self.base[done..], merged);
    }

    fn write(&self, lines: &[Token], to: &mut Vec<u8>) {
        for line in lines {
            to.extend_from_slice(self.input.interner[*line]);
        }
    }

    fn quote(&self, region: &ChangedRegion) -> PlanConflictHunk {
        let quoted = |lines: &[Token]| {
            let mut bytes = Vec::new();
            for line in lines {
                bytes.extend_from_slice(self.input.interner[*line]);
                if bytes.len() > QUOTE_LIMIT_BYTES {
                    bytes.truncate(QUOTE_LIMIT_BYTES);
                    return String::from_utf8_lossy(&bytes).into_owned() + CUT_MARK;
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        };
        PlanConflictHunk {
            line: region.ours.start as u64 + 1,
            base: quoted(&self.base[region.base.clone()]),
            ours: quoted(&self.ours[region.ours.clone()]),
            theirs: quoted(&self.theirs[region.theirs.clone()]),
        }
    }
}
