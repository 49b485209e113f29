//! Builds an outline from captures. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::types::{Definition, Language, Outline, Reference, SymbolKind};
use crate::lines::Lines;

/// The most definitions of a file. Hand-written files have hundreds; generated ones are cut off here.
const DEFINITIONS_LIMIT: usize = 4096;
/// The most references of a file, for the same reason.
const REFERENCES_LIMIT: usize = 4096;
/// The longest name in bytes.
const NAME_LIMIT_BYTES: usize = 128;
/// The shortest reference. Shorter ones are type parameters, which link everything with everything.
const REFERENCE_LEAST_BYTES: usize = 2;
/// The most lines of a signature.
const SIGNATURE_LIMIT_LINES: u32 = 24;
/// The longest line in bytes. Longer ones are generated.
const LINE_LIMIT_BYTES: usize = 4096;

/// The first and the last row of something, counted from 0.
pub(super) type Rows = (u32, u32);

#[derive(Debug, Default)]
pub(super) struct Captures {
    pub(super) definitions: Vec<CapturedDefinition>,
    pub(super) references: Vec<Range<usize>>,
    pub(super) above: Vec<(Range<usize>, Rows)>,
}

#[derive(Debug)]
pub(super) struct CapturedDefinition {
    pub(super) kind: SymbolKind,
    pub(super) name: Range<usize>,
    pub(super) bytes: Range<usize>,
    pub(super) rows: Rows,
    pub(super) body: Option<usize>,
}

impl Captures {
    pub(super) fn len(&self) -> usize {
        self.definitions.len() + self.references.len() + self.above.len()
    }
}

pub(super) fn assemble(language: Language, text: &str, captures: Captures) -> Outline {
    let found = distinct(captures.definitions);
    let references = references(text, captures.references, &found);
    let above = Above::new(text, captures.above);
    Outline {
        language,
        definitions: definitions(text, found, &above),
        references,
    }
}

/// Removes duplicates. Several patterns may match one definition: the widest wins, and among equally wide ones the one
/// that knows the body, then the kind.
fn distinct(mut found: Vec<CapturedDefinition>) -> Vec<CapturedDefinition> {
    found.sort_by_key(|one| {
        let is_value = one.kind == SymbolKind::Value;
        let width = Reverse(one.bytes.len());
        (
            one.name.start,
            width,
            is_value,
            one.body.is_none(),
            Reverse(one.kind),
        )
    });
    let mut distinct: Vec<CapturedDefinition> = Vec::with_capacity(found.len());
    for one in found {
        match distinct.last_mut() {
            Some(last) if last.name.start == one.name.start => last.body = last.body.or(one.body),
            _ => distinct.push(one),
        }
    }
    distinct.sort_by_key(|one| (one.bytes.start, Reverse(one.bytes.end), one.name.start));
    distinct
}

/// A definition that hasn't ended yet.
struct Open {
    bytes: Range<usize>,
    place: u32,
    /// Whether it is a function, or inside one.
    in_function: bool,
}

fn definitions(text: &str, found: Vec<CapturedDefinition>, above: &Above) -> Vec<Definition> {
    let mut definitions: Vec<Definition> = Vec::new();
    // The definitions that are open at this position in the text, outermost first.
    let mut open: Vec<Open> = Vec::new();
    for one in found {
        // Definitions with the same bytes are siblings: `a, b = 1, 2`.
        while open
            .last()
            .is_some_and(|last| last.bytes.end < one.bytes.end || last.bytes == one.bytes)
        {
            open.pop();
        }
        let parent = open.last().map(|last| last.place);
        let parent_kind = parent.map(|place| definitions[place as usize].kind);
        let in_function = open.last().is_some_and(|last| last.in_function);
        let Some(name) = text.get(one.name.clone()).filter(|name| is_name(name)) else {
            continue;
        };
        let kind = kind_within(one.kind, parent_kind);
        let is_local = kind == SymbolKind::Value && in_function;
        // A `typedef` and the `struct` inside it, both with the same name.
        let is_twin = kind == SymbolKind::Type
            && parent.is_some_and(|place| {
                let parent = &definitions[place as usize];
                parent.kind == SymbolKind::Type && parent.name == name
            });
        if is_local || is_twin || is_on_long_line(text, one.name.start) {
            continue;
        }
        let Some((lines, signature)) = lines(text, &one, above) else {
            continue;
        };
        if definitions.len() == DEFINITIONS_LIMIT {
            break;
        }
        open.push(Open {
            bytes: one.bytes,
            place: u32::try_from(definitions.len()).unwrap_or(u32::MAX),
            in_function: in_function || matches!(kind, SymbolKind::Function | SymbolKind::Method),
        });
        definitions.push(Definition {
            name: name.to_owned(),
            kind,
            lines,
            signature,
            parent,
        });
    }
    definitions
}

/// A function inside a type is a method, whatever the grammar calls it.
fn kind_within(kind: SymbolKind, parent: Option<SymbolKind>) -> SymbolKind {
    let of_type = matches!(
        parent,
        Some(SymbolKind::Type | SymbolKind::Interface | SymbolKind::Implementation)
    );
    match kind {
        SymbolKind::Function if of_type => SymbolKind::Method,
        other => other,
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_LIMIT_BYTES).contains(&name.len()) && !name.contains(char::is_control)
}

fn is_on_long_line(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let before = &bytes[at.saturating_sub(LINE_LIMIT_BYTES)..at];
    let after = &bytes[at..bytes.len().min(at + LINE_LIMIT_BYTES)];
    let before = memchr::memrchr(b'\n', before).map_or(before.len(), |end| before.len() - end - 1);
    let after = memchr::memchr(b'\n', after).unwrap_or(after.len());
    before + after >= LINE_LIMIT_BYTES
}

fn lines(text: &str, one: &CapturedDefinition, above: &Above) -> Option<(Lines, Lines)> {
    let (first, last) = one.rows;
    let body = one.body.filter(|body| one.bytes.contains(body)).and_then(|body| {
        let before = text.as_bytes().get(one.bytes.start..body)?;
        let row = first + u32::try_from(memchr::memchr_iter(b'\n', before).count()).ok()?;
        // A body on its own line isn't part of the signature.
        let alone = begins_line(text, body) && row > first;
        Some(if alone { row - 1 } else { row })
    });
    let declared = body
        .unwrap_or(last)
        .min(last)
        .min(first + SIGNATURE_LIMIT_LINES - 1);
    Some((
        Lines::new(above.first_row(first) + 1, last + 1)?,
        Lines::new(first + 1, declared + 1)?,
    ))
}

/// Whether only blanks come before an offset on its line.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text.as_bytes()[..at].iter().rev();
    let mut before = before.take_while(|byte| **byte != b'\n');
    before.all(u8::is_ascii_whitespace)
}

/// Comments and attributes on their own lines: the last row of each, and its first.
struct Above(BTreeMap<u32, u32>);

impl Above {
    fn new(text: &str, found: Vec<(Range<usize>, Rows)>) -> Self {
        let mut above = BTreeMap::new();
        for (bytes, (first, last)) in found {
            let inner = text.get(bytes.clone()).is_some_and(is_about_what_is_around);
            if !inner && begins_line(text, bytes.start) {
                let row = above.entry(last).or_insert(first);
                *row = first.min(*row);
            }
        }
        Self(above)
    }

    fn first_row(&self, mut row: u32) -> u32 {
        while let Some(before) = row.checked_sub(1).and_then(|before| self.0.get(&before)) {
            row = *before;
        }
        row
    }
}

/// Whether a comment documents the enclosing file or module, not the item that follows.
fn is_about_what_is_around(comment: &str) -> bool {
    comment.starts_with("//!") || comment.starts_with("/*!") || comment.starts_with("#!")
}

fn references(
    text: &str,
    mut found: Vec<Range<usize>>,
    definitions: &[CapturedDefinition],
) -> Vec<Reference> {
    // The name of a definition isn't a use of it. The name of an `impl` block is.
    let own = |one: &&CapturedDefinition| one.kind != SymbolKind::Implementation;
    let mut names: Vec<usize> = definitions.iter().filter(own).map(|one| one.name.start).collect();
    names.sort_unstable();
    found.sort_unstable_by_key(|range| range.start);
    found.dedup();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for range in found {
        let Some(name) = text.get(range.clone()).filter(|name| is_name(name)) else {
            continue;
        };
        let is_own = names.binary_search(&range.start).is_ok();
        if is_own || name.len() < REFERENCE_LEAST_BYTES || matches!(name, "Self") {
            continue;
        }
        if counts.len() < REFERENCES_LIMIT || counts.contains_key(name) {
            *counts.entry(name).or_default() += 1;
        }
    }
    let references = counts.into_iter().map(|(name, count)| Reference {
        name: name.to_owned(),
        count,
    });
    references.collect()
}
