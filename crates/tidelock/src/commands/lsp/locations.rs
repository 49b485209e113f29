//! Answers that are locations: one per line, in a form that editors and terminals recognize.

use protocol::{Call, CallsAnswer, Location, LocationsAnswer, NotAnswered, Position, Symbol, SymbolsAnswer};

use crate::printable::{cut, one_line};

/// How much of a detail, such as a type, follows a name.
const DETAIL_CHARACTERS: usize = 80;

/// `path:line:column`.
pub(super) fn at(path: &str, position: Position) -> String {
    format!("{}:{}:{}", one_line(path), position.line, position.column)
}

pub(super) fn cut_note(shown: usize, total: u64) -> Option<String> {
    (total > shown as u64).then(|| format!("showing {shown} of {total}"))
}

/// Lists the servers that should have answered and did not.
pub(super) fn missing_servers(not_answered: &[NotAnswered]) -> Vec<String> {
    not_answered
        .iter()
        .map(|missing| {
            let (server, code) = (one_line(&missing.server), one_line(&missing.code));
            format!("{server} did not answer ({code}): {}", one_line(&missing.detail))
        })
        .collect()
}

pub(super) fn locations(answer: &LocationsAnswer, none: &str) -> (String, Vec<String>) {
    let text = answer.locations.iter().map(location).collect();
    let notes = cut_note(answer.locations.len(), answer.total);
    (or_none(text, none), notes.into_iter().collect())
}

fn location(location: &Location) -> String {
    let place = at(&location.path, location.range.start);
    match location.excerpt.as_deref().map(one_line) {
        Some(excerpt) if !excerpt.is_empty() => format!("{place}: {excerpt}\n"),
        _ => format!("{place}\n"),
    }
}

/// The symbols of one file, indented by depth.
pub(super) fn outline(answer: &SymbolsAnswer) -> (String, Vec<String>) {
    let place = |symbol: &Symbol| match symbol.range {
        Some(range) => format!("{}:{}", range.start.line, range.start.column),
        None => String::new(),
    };
    let width = answer
        .symbols
        .iter()
        .map(|symbol| place(symbol).len())
        .max()
        .unwrap_or_default();
    let line = |symbol: &Symbol| {
        let indentation = "  ".repeat(symbol.depth as usize);
        format!("{:<width$}  {indentation}{}\n", place(symbol), named(symbol))
    };
    let text = answer.symbols.iter().map(line).collect();
    let notes = cut_note(answer.symbols.len(), answer.total);
    (or_none(text, "no symbols"), notes.into_iter().collect())
}

pub(super) fn symbols(answer: &SymbolsAnswer) -> (String, Vec<String>) {
    let line = |symbol: &Symbol| {
        let place = match symbol.range {
            Some(range) => at(&symbol.path, range.start),
            None => one_line(&symbol.path),
        };
        let container = match symbol.container.as_deref().map(one_line) {
            Some(container) if !container.is_empty() => format!(" in {container}"),
            _ => String::new(),
        };
        format!("{place}: {}{container}\n", named(symbol))
    };
    let text = answer.symbols.iter().map(line).collect();
    let notes = cut_note(answer.symbols.len(), answer.total);
    (or_none(text, "no symbols"), notes.into_iter().collect())
}

fn named(symbol: &Symbol) -> String {
    let name = format!("{} {}", one_line(&symbol.kind), one_line(&symbol.name));
    match symbol
        .detail
        .as_deref()
        .map(|detail| cut(detail, DETAIL_CHARACTERS))
    {
        Some(detail) if !detail.is_empty() => format!("{name}  {detail}"),
        _ => name,
    }
}

pub(super) fn calls(answer: &CallsAnswer) -> (String, Vec<String>) {
    let text = answer.calls.iter().map(call).collect();
    let notes = cut_note(answer.calls.len(), answer.total);
    (or_none(text, "no calls"), notes.into_iter().collect())
}

fn call(call: &Call) -> String {
    let place = at(&call.location.path, call.location.range.start);
    let mut text = format!("{place}: {} {}\n", one_line(&call.kind), one_line(&call.name));
    let places: Vec<String> = call
        .calls
        .iter()
        .map(|range| format!("{}:{}", range.start.line, range.start.column))
        .collect();
    if !places.is_empty() {
        text.push_str(&format!("    called at {}\n", places.join(", ")));
    }
    text
}

/// The text, or a message if it is empty.
pub(super) fn or_none(text: String, none: &str) -> String {
    if text.is_empty() {
        format!("{none}\n")
    } else {
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use protocol::Range;

    use super::*;

    pub(in super::super) fn range(line: u32, column: u32) -> Range {
        let start = Position { line, column };
        Range { start, end: start }
    }

    fn place(path: &str, line: u32, excerpt: Option<&str>) -> Location {
        Location {
            path: path.to_owned(),
            range: range(line, 5),
            excerpt: excerpt.map(str::to_owned),
        }
    }

    #[test]
    fn locations_can_be_clicked() {
        let answer = LocationsAnswer {
            locations: vec![
                place("src/a.rs", 3, Some("    fn größe() {")),
                place("src/b.rs", 12, None),
            ],
            total: 40,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        assert_eq!(
            locations(&answer, "no references"),
            (
                "src/a.rs:3:5: fn größe() {\nsrc/b.rs:12:5\n".to_owned(),
                vec!["showing 2 of 40".to_owned()]
            )
        );
        let none = LocationsAnswer {
            locations: Vec::new(),
            total: 0,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        assert_eq!(
            locations(&none, "no references"),
            ("no references\n".to_owned(), Vec::new())
        );
    }

    #[test]
    fn symbols_stand_as_deep_as_they_are_or_beside_their_place() {
        let symbol = |name: &str, line: u32, depth: u32| Symbol {
            name: name.to_owned(),
            kind: "function".to_owned(),
            detail: (depth > 0).then(|| "fn() -> u8".to_owned()),
            container: (depth > 0).then(|| "outer".to_owned()),
            path: "a.rs".to_owned(),
            range: (line > 0).then(|| range(line, 4)),
            depth,
        };
        let answer = SymbolsAnswer {
            symbols: vec![symbol("outer", 1, 0), symbol("inner", 12, 1), symbol("far", 0, 0)],
            total: 3,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        insta::assert_snapshot!(outline(&answer).0, @r"
        1:4   function outer
        12:4    function inner  fn() -> u8
              function far
        ");
        insta::assert_snapshot!(symbols(&answer).0, @r"
        a.rs:1:4: function outer
        a.rs:12:4: function inner  fn() -> u8 in outer
        a.rs: function far
        ");
    }

    #[test]
    fn calls_name_the_caller_and_where_it_calls() {
        let answer = CallsAnswer {
            calls: vec![Call {
                name: "main".to_owned(),
                kind: "function".to_owned(),
                detail: None,
                location: place("src/main.rs", 3, None),
                calls: vec![range(4, 9), range(7, 1)],
            }],
            total: 1,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        assert_eq!(
            calls(&answer),
            (
                "src/main.rs:3:5: function main\n    called at 4:9, 7:1\n".to_owned(),
                Vec::new()
            )
        );
    }
}
