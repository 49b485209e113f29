//! Widens a hit to what a reader wants to see: its enclosing definition, or the lines around it.

use std::cmp::Reverse;

use super::unit::Shape;
use crate::lines::Lines;
use crate::outline::{Definition, Outline, SymbolKind};

/// A type with at most this many lines is shown as a whole: it is short, and its functions make no sense without it.
const SMALL_TYPE_LINES: u32 = 30;
/// A longer type is shown without the definitions inside it.
const LARGE_TYPE_LINES: u32 = 60;
/// How many lines are shown before and after a hit outside any definition.
const LINES_BEFORE: u32 = 6;
const LINES_AFTER: u32 = 14;

/// What to show of a file for a hit. The hit is part of `all` lines.
pub(super) fn widen(outline: Option<&Outline>, all: Lines, hit: Lines) -> (Lines, Shape) {
    let definitions = outline.map_or(&[][..], |outline| &outline.definitions);
    let Some(place) = smallest(definitions, hit) else {
        return (window(definitions, all, hit), Shape::Window);
    };
    let place = climb(definitions, place);
    let definition = &definitions[place];
    let within = |lines: Lines| Lines::new(lines.first(), lines.last().min(all.last()));
    if !is_type(definition) || definition.lines.count() <= LARGE_TYPE_LINES {
        let lines = within(definition.lines).unwrap_or(hit);
        return (lines, Shape::Definition(place));
    }
    let header = header(definitions, place);
    match within(header) {
        Some(header) if header.overlaps(hit) => (header, Shape::Definition(place)),
        _ => (window(definitions, all, hit), Shape::Window),
    }
}

/// The smallest definition that contains all of the lines. Modules don't count, because they contain everything.
fn smallest(definitions: &[Definition], hit: Lines) -> Option<usize> {
    let holds =
        |definition: &Definition| definition.kind != SymbolKind::Module && definition.lines.contains(hit);
    let holding = definitions.iter().enumerate().filter(|(_, own)| holds(own));
    // Of two definitions with the same lines, the inner one comes later.
    let smallest = holding.min_by_key(|(place, own)| (own.lines.count(), Reverse(*place)));
    smallest.map(|(place, _)| place)
}

/// A field belongs to its type, and a definition in a small type belongs to that type.
fn climb(definitions: &[Definition], mut place: usize) -> usize {
    // No outline is deeper than it is long, so a cycle of parents can't loop forever.
    for _ in 0..definitions.len() {
        let Some((parent, outer)) = parent(definitions, place) else {
            break;
        };
        let is_field = definitions[place].kind == SymbolKind::Value;
        let is_small = is_type(outer) && outer.lines.count() <= SMALL_TYPE_LINES;
        if !is_field && !is_small {
            break;
        }
        place = parent;
    }
    place
}

/// The enclosing definition, unless it is a module.
fn parent(definitions: &[Definition], place: usize) -> Option<(usize, &Definition)> {
    let parent = definitions[place].parent? as usize;
    let outer = definitions.get(parent)?;
    let holds = outer.kind != SymbolKind::Module && outer.lines.contains(definitions[place].lines);
    holds.then_some((parent, outer))
}

/// The lines of a type until its first function.
fn header(definitions: &[Definition], place: usize) -> Lines {
    let lines = definitions[place].lines;
    let is_inside = |own: &&Definition| {
        own.parent.is_some_and(|parent| parent as usize == place)
            && own.kind != SymbolKind::Value
            && own.lines.first() > lines.first()
            && lines.contains(own.lines)
    };
    let first = definitions
        .iter()
        .filter(is_inside)
        .map(|own| own.lines.first())
        .min();
    let header = first.and_then(|first| Lines::new(lines.first(), first - 1));
    header.unwrap_or(lines)
}

/// The lines around a hit outside any definition, up to the next definition.
fn window(definitions: &[Definition], all: Lines, hit: Lines) -> Lines {
    let mut first = hit.first().saturating_sub(LINES_BEFORE).max(all.first());
    let mut last = hit.last().saturating_add(LINES_AFTER).min(all.last());
    for definition in definitions {
        let lines = definition.lines;
        if lines.last() < hit.first() {
            first = first.max(lines.last() + 1);
        } else if lines.first() > hit.last() {
            last = last.min(lines.first() - 1);
        } else if lines.first() < hit.first() && hit.last() < lines.last() {
            // The hit is inside this definition, and stays there.
            first = first.max(lines.first());
            last = last.min(lines.last());
        }
    }
    Lines::new(first, last).unwrap_or(hit)
}

pub(super) fn is_type(definition: &Definition) -> bool {
    use SymbolKind::{Implementation, Interface, Type};
    matches!(definition.kind, Type | Interface | Implementation)
}

#[cfg(test)]
mod tests {
    use super::super::unit::Shape;
    use super::widen;
    use crate::lines::Lines;
    use crate::outline::{Definition, Language, Outline, SymbolKind};

    fn lines(first: u32, last: u32) -> Lines {
        Lines::new(first, last).unwrap()
    }

    /// A module of 300 lines: a function at 10-30 with another one in it at 15-20, a small type at 40-60 with a method at
    /// 45-50 and a field at 42, a large type at 100-200 with a field at 103, methods at 110-120 and 150-160, and a constant
    /// at 250.
    fn example() -> Outline {
        let definition = |kind, first, last, parent| Definition {
            name: "x".to_owned(),
            kind,
            lines: lines(first, last),
            signature: lines(first, first),
            parent,
        };
        Outline {
            language: Language::Rust,
            definitions: vec![
                definition(SymbolKind::Module, 1, 300, None),
                definition(SymbolKind::Function, 10, 30, Some(0)),
                definition(SymbolKind::Function, 15, 20, Some(1)),
                definition(SymbolKind::Type, 40, 60, Some(0)),
                definition(SymbolKind::Value, 42, 42, Some(3)),
                definition(SymbolKind::Method, 45, 50, Some(3)),
                definition(SymbolKind::Type, 100, 200, Some(0)),
                definition(SymbolKind::Value, 103, 103, Some(6)),
                definition(SymbolKind::Method, 110, 120, Some(6)),
                definition(SymbolKind::Method, 150, 160, Some(6)),
                definition(SymbolKind::Value, 250, 250, Some(0)),
            ],
            references: Vec::new(),
        }
    }

    #[test]
    fn a_hit_becomes_what_a_reader_wants_to_see() {
        let outline = example();
        for (hit, expected) in [
            ((10, 10), ((10, 30), Shape::Definition(1))),
            ((16, 17), ((15, 20), Shape::Definition(2))),
            ((14, 16), ((10, 30), Shape::Definition(1))),
            ((42, 42), ((40, 60), Shape::Definition(3))),
            ((47, 47), ((40, 60), Shape::Definition(3))),
            ((101, 101), ((100, 109), Shape::Definition(6))),
            ((103, 103), ((100, 109), Shape::Definition(6))),
            ((100, 200), ((100, 109), Shape::Definition(6))),
            ((155, 155), ((150, 160), Shape::Definition(9))),
            ((130, 130), ((124, 144), Shape::Window)),
            ((122, 122), ((121, 136), Shape::Window)),
            ((198, 198), ((192, 200), Shape::Window)),
            ((250, 250), ((250, 250), Shape::Definition(10))),
            ((5, 5), ((1, 9), Shape::Window)),
            ((35, 35), ((31, 39), Shape::Window)),
            ((299, 299), ((293, 300), Shape::Window)),
            ((25, 45), ((21, 59), Shape::Window)),
        ] {
            let ((first, last), shape) = expected;
            let widened = widen(Some(&outline), lines(1, 300), lines(hit.0, hit.1));
            assert_eq!(widened, (lines(first, last), shape), "{hit:?}");
        }
        let plain = widen(None, lines(1, 300), lines(100, 100));
        assert_eq!(plain, (lines(94, 114), Shape::Window));
    }

    #[test]
    fn an_outline_of_a_longer_file_leads_nowhere_else() {
        let widened = widen(Some(&example()), lines(1, 25), lines(22, 22));
        assert_eq!(widened, (lines(10, 25), Shape::Definition(1)));
    }

    #[test]
    fn parents_in_a_circle_hold_nobody_up() {
        let mut outline = example();
        outline.definitions[4].parent = Some(4);
        let widened = widen(Some(&outline), lines(1, 300), lines(42, 42));
        assert_eq!(widened, (lines(42, 42), Shape::Definition(4)));
    }
}
