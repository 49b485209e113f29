//! Makes text from others safe to print on a terminal.

use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error as _, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Value};

use crate::client::ClientError;
use crate::output::speaks_to_terminal;

/// An answer of the daemon: unchanged for programs, and printable for people.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) sent: Value,
    shown: T,
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.shown
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Answer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = Value::deserialize(deserializer)?;
        let shown = T::deserialize(Printable(&sent)).map_err(D::Error::custom)?;
        Ok(Self { sent, shown })
    }
}

/// An answer with printable texts: characters that would control a terminal are replaced, except newlines and tabs.
pub(crate) fn printable<T: DeserializeOwned>(answer: &Value) -> Result<T, ClientError> {
    T::deserialize(Printable(answer)).map_err(|source| ClientError::NotUnderstood { source })
}

/// An unmodified answer, for further processing: replacing a strange character in a path would make it another path.
pub(crate) fn as_it_is<T: DeserializeOwned>(answer: &Value) -> Result<T, ClientError> {
    T::deserialize(answer).map_err(|source| ClientError::NotUnderstood { source })
}

pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A text in one line of at most `limit` characters.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= limit {
        return line;
    }
    let mut kept: String = line.chars().take(limit.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// The first `limit` characters of a text, with a mark if there are more.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Deserializes a value and makes its texts printable on the way.
#[derive(Clone, Copy)]
struct Printable<'de>(&'de Value);

impl<'de> IntoDeserializer<'de, Error> for Printable<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Printable<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) if text.contains(speaks_to_terminal) => visitor.visit_string(scrubbed(text)),
            Value::Array(values) => visitor.visit_seq(SeqDeserializer::new(values.iter().map(Printable))),
            Value::Object(members) => visitor.visit_map(members_of(members)),
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(members) => visitor.visit_enum(MapAccessDeserializer::new(members_of(members))),
            named => named.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

fn members_of<'de>(
    members: &'de serde_json::Map<String, Value>,
) -> MapDeserializer<'de, impl Iterator<Item = (&'de str, Printable<'de>)>, Error> {
    MapDeserializer::new(
        members
            .iter()
            .map(|(name, value)| (name.as_str(), Printable(value))),
    )
}

fn scrubbed(text: &str) -> String {
    // A carriage return is harmless only before a newline, as in CRLF files.
    let mut characters = text.chars().peekable();
    let mut kept = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        let harmless = match character {
            '\n' | '\t' => true,
            '\r' => characters.peek() == Some(&'\n'),
            other => !speaks_to_terminal(other),
        };
        kept.push(if harmless { character } else { '\u{fffd}' });
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_a_server_says_reaches_the_terminal_as_a_command() {
        let answer =
            json!({ "a": ["\u{1b}]0;owned\u{7}x\r\n\ty\rz\u{9b}1m", 3, null, "plain é", "a\u{202e}b"] });
        let shown: Value = printable(&answer).unwrap();
        assert_eq!(
            shown,
            json!({ "a": ["\u{fffd}]0;owned\u{fffd}x\r\n\ty\u{fffd}z\u{fffd}1m", 3, null, "plain é", "a\u{fffd}b"] })
        );
    }

    #[test]
    fn long_lines_are_cut_by_characters() {
        for (text, limit, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("größer", 4, "grö…"),
            ("a\n  b", 9, "a b"),
            ("", 3, ""),
        ] {
            assert_eq!(cut(text, limit), expected, "{text}");
        }
    }
}
