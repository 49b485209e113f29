//! What others wrote, made fit for a terminal.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::ClientError;
use crate::output::speaks_to_terminal;

/// An answer whose texts can be printed: what speaks to a terminal, but for line ends and tabs, is replaced.
pub(crate) fn printable<T: DeserializeOwned>(answer: &Value) -> Result<T, ClientError> {
    let mut answer = answer.clone();
    scrub(&mut answer);
    serde_json::from_value(answer).map_err(|source| ClientError::NotUnderstood { source })
}

/// An answer as it is, for what is done with it: a path with a strange character in it is no other path.
pub(crate) fn as_it_is<T: DeserializeOwned>(answer: &Value) -> Result<T, ClientError> {
    T::deserialize(answer).map_err(|source| ClientError::NotUnderstood { source })
}

/// A text in one line.
pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// A text in one line that is not longer than so many characters.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= limit {
        return line;
    }
    let mut kept: String = line.chars().take(limit.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// The first so many characters of a text, and a sign if there are more.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn scrub(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(speaks_to_terminal) => *text = scrubbed(text),
        Value::Array(values) => values.iter_mut().for_each(scrub),
        Value::Object(members) => members.values_mut().for_each(scrub),
        _ => {}
    }
}

fn scrubbed(text: &str) -> String {
    // A carriage return is harmless only in front of a line end, where files have it.
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
