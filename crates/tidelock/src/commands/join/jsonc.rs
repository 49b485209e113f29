//! JSON as editors write it, with comments and commas at the end, and where in the text each member is.
//!
//! Only as much is understood as is needed to change one member and leave every other byte alone. What is not understood
//! is refused; nothing is guessed.

use std::ops::Range;

use serde_json::{Map, Value};

/// How deep values may stand in each other. Nobody's configuration comes near, and a hostile one cannot use up the stack.
const DEPTH_LIMIT: usize = 64;

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Value),
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where its name begins.
    pub(super) start: usize,
    pub(super) value: Node,
    /// Where the comma behind it is, if there is one.
    pub(super) comma: Option<usize>,
}

impl Node {
    pub(super) fn members(&self) -> Option<&[Member]> {
        match &self.shape {
            Shape::Object(members) => Some(members),
            Shape::Array(_) | Shape::Scalar(_) => None,
        }
    }

    /// The value without its places. Of two members of one name the last one counts, as everywhere.
    pub(super) fn value(&self) -> Value {
        match &self.shape {
            Shape::Object(members) => {
                let member = |member: &Member| (member.name.clone(), member.value.value());
                Value::Object(members.iter().map(member).collect::<Map<String, Value>>())
            }
            Shape::Array(items) => Value::Array(items.iter().map(Node::value).collect()),
            Shape::Scalar(value) => value.clone(),
        }
    }
}

/// Reads a whole text. Nothing but blanks and comments is no value.
///
/// # Errors
/// What is wrong, and in which line.
pub(super) fn parse(text: &str) -> Result<Option<Node>, String> {
    let mut reader = Reader {
        text,
        at: if text.starts_with('\u{feff}') { 3 } else { 0 },
    };
    let found = reader.document();
    found.map_err(|what| {
        let line = text.get(..reader.at).unwrap_or(text).matches('\n').count() + 1;
        format!("line {line}: {what}")
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Option<Node>, String> {
        self.blanks()?;
        if self.at == self.text.len() {
            return Ok(None);
        }
        let node = self.value(0)?;
        self.blanks()?;
        if self.at < self.text.len() {
            return Err("unexpected text after the end".to_owned());
        }
        Ok(Some(node))
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> Result<(), String> {
        if self.next() != Some(wanted) {
            return Err(match self.next() {
                Some(found) => format!("expected `{wanted}` but found `{}`", found.escape_debug()),
                None => format!("expected `{wanted}` but the file ends"),
            });
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    fn blanks(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let blank = rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                match trimmed.find("*/") {
                    Some(end) => end + 2,
                    None => return Err("a comment isn't closed".to_owned()),
                }
            } else {
                self.at += blank;
                return Ok(());
            };
            self.at += blank + comment;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        if depth > DEPTH_LIMIT {
            return Err("values are nested too deeply".to_owned());
        }
        let start = self.at;
        let shape = match self.next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Shape::Scalar(Value::String(self.string()?)),
            _ => {
                let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
                let rest = self.rest();
                let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
                let word = rest.get(..length).unwrap_or_default();
                let value = serde_json::from_str(word).map_err(|_| "expected a value".to_owned())?;
                self.at += length;
                Shape::Scalar(value)
            }
        };
        Ok(Node {
            span: start..self.at,
            shape,
        })
    }

    fn string(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let mut escaped = false;
        for (position, letter) in rest.char_indices().skip(1) {
            match letter {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    let literal = rest.get(..=position).unwrap_or_default();
                    let text =
                        serde_json::from_str(literal).map_err(|_| "a string isn't valid JSON".to_owned())?;
                    self.at += position + 1;
                    return Ok(text);
                }
                _ => {}
            }
        }
        Err("a string isn't closed".to_owned())
    }

    fn object(&mut self, depth: usize) -> Result<Shape, String> {
        self.take('{')?;
        let mut members = Vec::new();
        loop {
            self.blanks()?;
            if self.next() == Some('}') {
                self.at += 1;
                return Ok(Shape::Object(members));
            }
            let start = self.at;
            if self.next() != Some('"') {
                return Err("expected a quoted name".to_owned());
            }
            let name = self.string()?;
            self.blanks()?;
            self.take(':')?;
            self.blanks()?;
            let value = self.value(depth + 1)?;
            let comma = self.comma('}')?;
            members.push(Member {
                name,
                start,
                value,
                comma,
            });
        }
    }

    fn array(&mut self, depth: usize) -> Result<Shape, String> {
        self.take('[')?;
        let mut items = Vec::new();
        loop {
            self.blanks()?;
            if self.next() == Some(']') {
                self.at += 1;
                return Ok(Shape::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.comma(']')?;
        }
    }

    /// The comma behind a value. Where there is none, the end must follow.
    fn comma(&mut self, end: char) -> Result<Option<usize>, String> {
        self.blanks()?;
        let at = self.at;
        if self.next() == Some(end) {
            return Ok(None);
        }
        self.take(',')?;
        Ok(Some(at))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_editors_write_is_understood() {
        for (text, expected) in [
            ("", None),
            (" // nothing\n/* at\nall */ ", None),
            ("\u{feff}{}", Some(json!({}))),
            (
                "{ // a\n \"a\": [1, -2.5e3, true, null,], /* b */ \"b\\n\": { \"//\": \"/* \\\" */\" }, }\r\n",
                Some(json!({ "a": [1, -2500.0, true, null], "b\n": { "//": "/* \" */" } })),
            ),
            ("{\"a\":1,\"a\":2}", Some(json!({ "a": 2 }))),
        ] {
            let found = parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(found.map(|node| node.value()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        let deep = "[".repeat(1000);
        for (text, expected) in [
            ("{\n\"a\" 1}", "line 2: expected `:` but found `1`"),
            ("{\"a\": 1 \"b\": 2}", "line 1: expected `,` but found `\\\"`"),
            ("{a: 1}", "line 1: expected a quoted name"),
            ("{} {}", "line 1: unexpected text after the end"),
            ("{\"a\": tru}", "line 1: expected a value"),
            ("{\"a", "line 1: a string isn't closed"),
            ("{ /* ", "line 1: a comment isn't closed"),
            ("{\"a\": ", "line 1: expected a value"),
            (&deep, "line 1: values are nested too deeply"),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
        }
    }
}
