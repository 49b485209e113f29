//! One member of a JSON text is put in, replaced or taken out, and every other byte stays where it is.

use std::ops::Range;

use super::entry::{Entry, quoted};
use super::jsonc::{self, Member, Node};

/// How far a member stands to the right of what holds it, where nothing in the text says so.
const USUAL_STEP: &str = "  ";

/// Puts an entry into a table, which is made if it is not there. An entry of that name is replaced.
pub(super) fn insert(text: &str, table: &[&str], name: &str, entry: &Entry) -> Result<String, String> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some(root) = jsonc::parse(text)? else {
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
    let members = members(object)?;
    if missing.is_empty()
        && let Some(member) = find(members, name)
    {
        let value = entry.json(margin(text, member.start), step, newline);
        return Ok(edit(text, &[(member.value.span.clone(), value)]));
    }
    let outer = margin(text, object.span.start);
    let inner = match members.first().and_then(|first| own_margin(text, first.start)) {
        Some(margin) => margin.to_owned(),
        None => format!("{outer}{step}"),
    };
    let mut edits = Vec::new();
    let mut behind = "";
    match members.last() {
        Some(Member { comma: Some(_), .. }) => behind = ",",
        Some(last) => edits.push((last.value.span.end..last.value.span.end, ",".to_owned())),
        None => {}
    }
    let closing = object.span.end - 1;
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

/// Takes an entry out of a table. What is not there is not missed.
pub(super) fn remove(text: &str, table: &[&str], name: &str) -> Result<String, String> {
    let Some(root) = jsonc::parse(text)? else {
        return Ok(text.to_owned());
    };
    let (object, missing) = descend(&root, table)?;
    let members = members(object)?;
    let position = members.iter().rposition(|member| member.name == name);
    let (true, Some(position)) = (missing.is_empty(), position) else {
        return Ok(text.to_owned());
    };
    let member = &members[position];
    let nothing = String::new;
    let mut edits = vec![(line_start(text, member.start)..member.value.span.end, nothing())];
    match (
        member.comma,
        position.checked_sub(1).map(|before| &members[before]),
    ) {
        (Some(comma), _) => edits.push((comma..comma + 1, nothing())),
        // It was the last one, so the one before it is now.
        (
            None,
            Some(Member {
                comma: Some(comma), ..
            }),
        ) => edits.insert(0, (*comma..comma + 1, nothing())),
        (None, _) => {}
    }
    let edited = edit(text, &edits);
    if members.len() > 1 {
        return Ok(edited);
    }
    // What holds nothing any more, not even a comment, has no lines either.
    let inside = object.span.start + 1..object.span.end - 1;
    let rest = edit(&text[..inside.end], &edits);
    if rest[inside.start..].trim_matches(BLANKS).is_empty() {
        return Ok(edit(text, &[(inside, nothing())]));
    }
    Ok(edited)
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// How a text is laid out.
struct Style<'a> {
    step: &'a str,
    newline: &'a str,
}

impl Style<'_> {
    /// A member at a margin, inside of the tables that are still missing.
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

/// The deepest of the tables that is there, and those that are not.
fn descend<'n, 't>(root: &'n Node, table: &'t [&'t str]) -> Result<(&'n Node, &'t [&'t str]), String> {
    let (mut object, mut missing) = (root, table);
    while let [first, rest @ ..] = missing {
        match find(members(object)?, first) {
            Some(member) => (object, missing) = (&member.value, rest),
            None => break,
        }
    }
    Ok((object, missing))
}

fn members(node: &Node) -> Result<&[Member], String> {
    node.members()
        .ok_or_else(|| "expected an object but found something else".to_owned())
}

fn find<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    members.iter().rev().find(|member| member.name == name)
}

/// How far the first member of the text stands to the right.
fn step<'t>(text: &'t str, root: &Node) -> &'t str {
    let first = root.members().and_then(<[Member]>::first);
    let margin = first.and_then(|member| own_margin(text, member.start));
    margin.filter(|margin| !margin.is_empty()).unwrap_or(USUAL_STEP)
}

/// What a line begins with.
fn margin(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The same, if there is nothing else before this place.
fn own_margin(text: &str, at: usize) -> Option<&str> {
    let margin = margin(text, at);
    text[..at - margin.len()]
        .ends_with('\n')
        .then_some(margin)
        .filter(|margin| text[..at].ends_with(margin))
}

/// Where what is at a place begins, together with the line break before it if it begins a line.
fn line_start(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end_matches([' ', '\t']);
    match before.strip_suffix('\n') {
        Some(before) => before.strip_suffix('\r').unwrap_or(before).len(),
        None => at,
    }
}

/// The text with these parts replaced, which do not overlap and stand in order.
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
    use super::super::entry::Field;
    use super::*;

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
