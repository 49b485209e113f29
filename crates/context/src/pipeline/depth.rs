//! Resolve depth: the forms in which a unit can be shown, from the whole body down to its name.

use super::source::Source;
use super::unit::{Form, Shape, Shown, Unit};
use crate::answer::Depth;
use crate::lines::Lines;
use crate::outline::{Definition, SymbolKind};

/// A longer body is shown from the hit on, with this many lines.
const LONG_LINES: u32 = 100;
/// The next size to try if that doesn't fit.
const PART_LINES: u32 = 30;
/// And the one after that, for lines without a signature to fall back to.
const FEW_LINES: u32 = 10;
/// How many lines before the hit are shown.
const LEAD_LINES: u32 = 3;
/// How many lines all signatures of a file may have together.
const FILE_SIGNATURES_LINES: u32 = 40;
/// How many names of a file are shown.
const FILE_NAMES: usize = 30;
/// How many lines are shown of a file that defines nothing.
const HEAD_LINES: u32 = 20;

/// The forms in which a unit can be shown, fullest first. May be empty.
pub(super) fn forms(unit: &Unit) -> Vec<Form> {
    let mut forms = match unit.shape {
        Shape::Definition(place) => match unit.source.definition(place) {
            Some(definition) => of_definition(unit, definition),
            None => of_window(unit),
        },
        Shape::Window => of_window(unit),
        Shape::File => of_file(&unit.source, unit.lines),
    };
    // A short body is the same at every size, and may be nothing but its signature.
    forms.dedup_by(|next, before| next.shown == before.shown);
    forms
}

fn of_definition(unit: &Unit, definition: &Definition) -> Vec<Form> {
    let mut forms = Vec::new();
    if unit.depth == Depth::Body {
        forms = parts(unit, &[LONG_LINES, PART_LINES]);
    }
    if unit.depth >= Depth::Signature
        && let Some(signature) = within(definition.signature, unit.lines)
    {
        forms.push(Form {
            depth: Depth::Signature,
            lines: unit.lines,
            shown: Shown::Lines(vec![signature]),
        });
    }
    let name = unit.symbol().map(|symbol| Form {
        depth: Depth::Name,
        lines: unit.lines,
        shown: Shown::Names(symbol),
    });
    forms.extend(name);
    forms
}

fn of_window(unit: &Unit) -> Vec<Form> {
    parts(unit, &[LONG_LINES, PART_LINES, FEW_LINES])
}

/// At most this many lines of the unit: all of them, or from the hit on.
fn parts(unit: &Unit, sizes: &[u32]) -> Vec<Form> {
    let part = |most: &u32| {
        let lines = unit
            .source
            .trim(clip(unit.lines, unit.hits.first().copied(), *most))?;
        Some(Form {
            depth: Depth::Body,
            lines,
            shown: Shown::Lines(vec![lines]),
        })
    };
    sizes.iter().filter_map(part).collect()
}

/// At most this many of the lines: the first ones if the hit is among them, otherwise from there on.
fn clip(lines: Lines, hit: Option<Lines>, most: u32) -> Lines {
    let end_of = |first: u32| lines.last().min(first.saturating_add(most - 1));
    let first = match hit {
        Some(hit) if hit.last() > end_of(lines.first()) => {
            hit.first().saturating_sub(LEAD_LINES).max(lines.first())
        }
        _ => lines.first(),
    };
    Lines::new(first, end_of(first)).unwrap_or(lines)
}

fn within(lines: Lines, others: Lines) -> Option<Lines> {
    Lines::new(lines.first().max(others.first()), lines.last().min(others.last()))
}

/// A whole file: the signatures of its definitions, their names, or its beginning if it defines nothing.
fn of_file(source: &Source, all: Lines) -> Vec<Form> {
    let definitions = source
        .outline
        .as_ref()
        .map_or(&[][..], |outline| &outline.definitions);
    let is_outermost = |own: &Definition| {
        let parent = own.parent.and_then(|parent| definitions.get(parent as usize));
        parent.is_none_or(|parent| parent.kind == SymbolKind::Module)
    };
    let is_shown = |own: &&Definition| own.kind != SymbolKind::Module && own.lines.last() <= all.last();
    let outermost: Vec<&Definition> = definitions
        .iter()
        .filter(is_shown)
        .filter(|own| is_outermost(own))
        .collect();
    if outermost.is_empty() {
        let head = source.trim(clip(all, None, HEAD_LINES));
        let form = head.map(|lines| Form {
            depth: Depth::Body,
            lines,
            shown: Shown::Lines(vec![lines]),
        });
        return form.into_iter().collect();
    }
    let inner = definitions
        .iter()
        .filter(is_shown)
        .filter(|own| own.kind == SymbolKind::Method && !is_outermost(own));
    let mut signatures: Vec<Lines> = Vec::new();
    let mut left = FILE_SIGNATURES_LINES;
    for definition in outermost.iter().copied().chain(inner) {
        let lines = definition.signature;
        if lines.count() <= left && !signatures.iter().any(|other| other.overlaps(lines)) {
            left -= lines.count();
            signatures.push(lines);
        }
    }
    signatures.sort_unstable();
    // A type has the same name as its implementations.
    let mut names: Vec<&str> = Vec::new();
    for name in outermost.iter().map(|own| own.name.as_str()) {
        if names.len() < FILE_NAMES && !names.contains(&name) {
            names.push(name);
        }
    }
    vec![
        Form {
            depth: Depth::Signature,
            lines: all,
            shown: Shown::Lines(signatures),
        },
        Form {
            depth: Depth::Name,
            lines: all,
            shown: Shown::Names(names.join(", ")),
        },
    ]
}
