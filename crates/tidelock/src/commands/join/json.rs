//! Inserts, replaces or removes one member of a JSON text. Every other byte stays where it is.
//!
//! The parser is `jsonc-parser`. We don't use its editor: it spreads a table over several lines before inserting into
//! it, and removes the comments next to a member along with it.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult, parse_to_ast};
use serde_json::{Map, Value};

use super::entry::{Entry, quoted};

/// The default indentation, if the text doesn't show one.
const USUAL_STEP: &str = "  ";

/// JSON as editors write it, with comments and trailing commas. Other extensions that the parser supports are refused.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Some editors start a file with it. The parser doesn't support it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Parses a text. One with only blanks and comments is an empty object; for duplicate members, the last one counts.
///
/// # Errors
/// What is wrong, and on which line.
pub(super) fn value(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let root = parse(text)?.value;
    Ok(root.map_or_else(|| Value::Object(Map::new()), Value::from))
}

fn parse(text: &str) -> Result<ParseResult<'_>, String> {
    let collected = CollectOptions {
        tokens: true,
        ..CollectOptions::default()
    };
    parse_to_ast(text, &collected, &SYNTAX).map_err(|error| {
        let mut what = error.kind().to_string();
        what[..1].make_ascii_lowercase();
        format!("line {}: {what}", error.line_display())
    })
}

/// Inserts an entry into a table, which is created if missing. An entry with the same name is replaced.
pub(super) fn insert(text: &str, table: &[&str], name: &str, entry: &Entry) -> Result<String, String> {
    if let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK) {
        return insert(rest, table, name, entry).map(|text| format!("{BYTE_ORDER_MARK}{text}"));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let ParseResult { value, tokens, .. } = parse(text)?;
    let Some(root) = value else {
        let lead = match text {
            "" => String::new(),
            text if text.ends_with('\n') => text.to_owned(),
            text => format!("{text}{newline}"),
        };
        let style = Style {
            step: USUAL_STEP,
            newline,
        };
        let member = style.member(table, name, entry, USUAL_STEP);
        return Ok(format!(
            "{lead}{{{newline}{USUAL_STEP}{member}{newline}}}{newline}"
        ));
    };
    let step = step(text, &root);
    let style = Style { step, newline };
    let (object, missing) = descend(&root, table)?;
    if missing.is_empty()
        && let Some(member) = find(object, name)
    {
        let value = entry.json(margin(text, member.range.start), step, newline);
        return Ok(edit(text, &[(span(&member.value), value)]));
    }
    let members = &object.properties;
    let outer = margin(text, object.range.start);
    let inner = match members
        .first()
        .and_then(|first| own_margin(text, first.range.start))
    {
        Some(margin) => margin.to_owned(),
        None => format!("{outer}{step}"),
    };
    let mut edits = Vec::new();
    let mut behind = "";
    if let Some(last) = members.last() {
        let end = last.value.end();
        match comma(tokens.as_deref(), last) {
            Some(_) => behind = ",",
            None => edits.push((end..end, ",".to_owned())),
        }
    }
    let closing = object.range.end - 1;
    let filled = text[..closing].trim_end_matches(BLANKS).len();
    let end = if text[filled..closing].contains('\n') {
        text[filled..closing].to_owned()
    } else {
        format!("{newline}{outer}")
    };
    let member = style.member(missing, name, entry, &inner);
    edits.push((filled..closing, format!("{newline}{inner}{member}{behind}{end}")));
    Ok(edit(text, &edits))
}

/// Removes an entry from a table. Does nothing if there is no such entry.
pub(super) fn remove(text: &str, table: &[&str], name: &str) -> Result<String, String> {
    if let Some(rest) = text.strip_prefix(BYTE_ORDER_MARK) {
        return remove(rest, table, name).map(|text| format!("{BYTE_ORDER_MARK}{text}"));
    }
    let ParseResult { value, tokens, .. } = parse(text)?;
    let Some(root) = value else {
        return Ok(text.to_owned());
    };
    let (object, missing) = descend(&root, table)?;
    let members = &object.properties;
    let position = members.iter().rposition(|member| member.name.as_str() == name);
    let (true, Some(position)) = (missing.is_empty(), position) else {
        return Ok(text.to_owned());
    };
    let member = &members[position];
    let nothing = String::new;
    let mut edits = vec![(
        line_start(text, member.range.start)..member.value.end(),
        nothing(),
    )];
    let comma = |member: &ObjectProp| comma(tokens.as_deref(), member);
    if let Some(comma) = comma(member) {
        edits.push((comma..comma + 1, nothing()));
    } else if let Some(comma) = position.checked_sub(1).and_then(|before| comma(&members[before])) {
        // It was the last member, so the one before it becomes the last.
        edits.insert(0, (comma..comma + 1, nothing()));
    }
    let edited = edit(text, &edits);
    if members.len() > 1 {
        return Ok(edited);
    }
    // Collapse a table that no longer contains anything, not even a comment.
    let inside = object.range.start + 1..object.range.end - 1;
    let rest = edit(&text[..inside.end], &edits);
    if rest[inside.start..].trim_matches(BLANKS).is_empty() {
        return Ok(edit(text, &[(inside, nothing())]));
    }
    Ok(edited)
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

struct Style<'a> {
    step: &'a str,
    newline: &'a str,
}

impl Style<'_> {
    /// A member at a margin, wrapped in the tables that are missing.
    fn member(&self, missing: &[&str], name: &str, entry: &Entry, margin: &str) -> String {
        let Style { step, newline } = self;
        match missing {
            [] => format!("{}: {}", quoted(name), entry.json(margin, step, newline)),
            [table, rest @ ..] => {
                let inner = format!("{margin}{step}");
                let member = self.member(rest, name, entry, &inner);
                format!("{}: {{{newline}{inner}{member}{newline}{margin}}}", quoted(table))
            }
        }
    }
}

/// The deepest of the tables that exists, and those that don't.
fn descend<'n, 't>(
    root: &'n Node<'n>,
    table: &'t [&'t str],
) -> Result<(&'n Object<'n>, &'t [&'t str]), String> {
    let object = |node: &'n Node<'n>| {
        node.as_object()
            .ok_or_else(|| "expected an object but found something else".to_owned())
    };
    let (mut found, mut missing) = (object(root)?, table);
    while let [first, rest @ ..] = missing {
        match find(found, first) {
            Some(member) => (found, missing) = (object(&member.value)?, rest),
            None => break,
        }
    }
    Ok((found, missing))
}

fn find<'n>(object: &'n Object<'n>, name: &str) -> Option<&'n ObjectProp<'n>> {
    let mut members = object.properties.iter().rev();
    members.find(|member| member.name.as_str() == name)
}

fn span(node: &Node) -> Range<usize> {
    node.start()..node.end()
}

/// The position of the comma after a member, if any.
fn comma(tokens: Option<&[TokenAndRange]>, member: &ObjectProp) -> Option<usize> {
    let mut tokens = tokens.unwrap_or_default().iter();
    let next = tokens.find(|token| token.range.start >= member.value.end())?;
    (next.token == Token::Comma).then_some(next.range.start)
}

/// The indentation of the first member.
fn step<'t>(text: &'t str, root: &Node) -> &'t str {
    let first = root.as_object().and_then(|object| object.properties.first());
    let margin = first.and_then(|member| own_margin(text, member.range.start));
    margin.filter(|margin| !margin.is_empty()).unwrap_or(USUAL_STEP)
}

fn margin(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Like `margin`, but only if nothing else precedes this position on its line.
fn own_margin(text: &str, at: usize) -> Option<&str> {
    let margin = margin(text, at);
    text[..at - margin.len()]
        .ends_with('\n')
        .then_some(margin)
        .filter(|margin| text[..at].ends_with(margin))
}

/// The start of the item at a position, including the line break before it if it starts a line.
fn line_start(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end_matches([' ', '\t']);
    match before.strip_suffix('\n') {
        Some(before) => before.strip_suffix('\r').unwrap_or(before).len(),
        None => at,
    }
}

/// Replaces these ranges, which are in order and don't overlap.
fn edit(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let (mut edited, mut at) = (String::new(), 0);
    for (range, replacement) in edits {
        edited.push_str(&text[at..range.start.min(text.len())]);
        edited.push_str(replacement);
        at = range.end.min(text.len());
    }
    edited.push_str(&text[at..]);
    edited
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::entry::Field;
    use super::*;

    #[test]
    fn what_editors_write_is_understood() {
        for (text, expected) in [
            ("", json!({})),
            (" // nothing\n/* at\nall */ ", json!({})),
            ("\u{feff}{}", json!({})),
            (
                "{ // a\n \"a\": [1, -2.5e3, true, null,], /* b */ \"b\\n\": { \"//\": \"/* \\\" */\" }, }\r\n",
                json!({ "a": [1, -2500.0, true, null], "b\n": { "//": "/* \" */" } }),
            ),
            ("{\"a\":1,\"a\":2}", json!({ "a": 2 })),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let deep = "[".repeat(1000);
        for (text, expected) in [
            (
                "{\n\"a\" 1}",
                "line 2: expected colon after the string or word in object property",
            ),
            ("{\"a\": 1 \"b\": 2}", "line 1: expected comma"),
            ("{a: 1}", "line 1: expected string for object property"),
            ("{} {}", "line 1: text cannot contain more than one JSON value"),
            ("{\"a\": tru}", "line 1: unexpected token"),
            ("{\"a", "line 1: unterminated string literal"),
            ("{ /* ", "line 1: unterminated comment block"),
            (
                "{\"a\": ",
                "line 1: expected value after colon in object property",
            ),
            (&deep, "line 1: maximum nesting depth exceeded"),
        ] {
            assert_eq!(value(text), Err(expected.to_owned()), "{text}");
        }
    }

    fn entry(command: &str) -> Entry {
        Entry(vec![("command", Field::Text(command.to_owned()))])
    }

    #[test]
    fn an_entry_is_put_in_and_nothing_else_moves() {
        let cases = [
            (
                "",
                "{\n  \"t\": {\n    \"n\": {\n      \"command\": \"c\"\n    }\n  }\n}\n",
            ),
            (
                "// mine",
                "// mine\n{\n  \"t\": {\n    \"n\": {\n      \"command\": \"c\"\n    }\n  }\n}\n",
            ),
            (
                "{}",
                "{\n  \"t\": {\n    \"n\": {\n      \"command\": \"c\"\n    }\n  }\n}",
            ),
            (
                "{\n\t\"a\": 1 // last\n}\n",
                "{\n\t\"a\": 1, // last\n\t\"t\": {\n\t\t\"n\": {\n\t\t\t\"command\": \"c\"\n\t\t}\n\t}\n}\n",
            ),
            (
                "{\r\n    \"t\": {},\r\n    \"b\": [1,2]\r\n}",
                "{\r\n    \"t\": {\r\n        \"n\": {\r\n            \"command\": \"c\"\r\n        }\r\n    },\r\n    \"b\": [1,2]\r\n}",
            ),
            (
                "{\n  \"t\": {\n    // theirs\n    \"o\": {}, /* yes */\n    // end\n  },\n}",
                "{\n  \"t\": {\n    // theirs\n    \"o\": {}, /* yes */\n    // end\n    \"n\": {\n      \"command\": \"c\"\n    },\n  },\n}",
            ),
            (
                "{\"t\":{\"o\":{}}}",
                "{\"t\":{\"o\":{},\n  \"n\": {\n    \"command\": \"c\"\n  }\n}}",
            ),
            (
                "{\n  \"t\": {\n    \"n\": { \"command\": \"x\" }, // why\n    \"o\": 1\n  }\n}",
                "{\n  \"t\": {\n    \"n\": {\n      \"command\": \"c\"\n    }, // why\n    \"o\": 1\n  }\n}",
            ),
        ];
        for (before, expected) in cases {
            assert_eq!(
                insert(before, &["t"], "n", &entry("c")).unwrap(),
                expected,
                "{before}"
            );
        }
    }

    #[test]
    fn an_entry_is_taken_out_and_nothing_else_moves() {
        let cases = [
            ("", ""),
            ("{\"t\": {\"o\": 1}}", "{\"t\": {\"o\": 1}}"),
            ("{\"n\": 1}", "{\"n\": 1}"),
            (
                "{\n  \"t\": {\n    \"n\": {\n      \"a\": 1\n    }\n  }\n}\n",
                "{\n  \"t\": {}\n}\n",
            ),
            (
                "{\n  \"t\": {\n    \"o\": 1, // theirs\n    \"n\": 2 // ours\n  }\n}",
                "{\n  \"t\": {\n    \"o\": 1 // theirs // ours\n  }\n}",
            ),
            (
                "{\n  \"t\": {\n    // before\n    \"n\": 2 /* x */, // ours\n    \"o\": 1\n  }\n}",
                "{\n  \"t\": {\n    // before /* x */ // ours\n    \"o\": 1\n  }\n}",
            ),
            (
                "{\n  \"t\": {\n    \"n\": 2,\n    // kept\n  }\n}",
                "{\n  \"t\": {\n    // kept\n  }\n}",
            ),
        ];
        for (before, expected) in cases {
            assert_eq!(remove(before, &["t"], "n").unwrap(), expected, "{before}");
        }
    }

    #[test]
    fn in_and_out_again_is_as_it_was() {
        for before in [
            "{\n  // one\n  \"t\": {\n    \"o\": 1 // two\n    // three\n  } /* four */\n}\n",
            "{\n  \"t\": {\n    \"o\": 1,\n  },\n}\n",
            "{\r\n\t\"t\": {\r\n\t\t\"o\": {\"n\": 1}\r\n\t}\r\n}",
        ] {
            let with = insert(before, &["t"], "n", &entry("c")).unwrap();
            assert_ne!(with, before);
            assert_eq!(remove(&with, &["t"], "n").unwrap(), before);
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for text in ["[]", "{\"t\": 1}", "{\"t\": [\"n\"]}", "1"] {
            let refused = "expected an object but found something else";
            assert_eq!(
                insert(text, &["t"], "n", &entry("c")),
                Err(refused.to_owned()),
                "{text}"
            );
        }
    }
}
