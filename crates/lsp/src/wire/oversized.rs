//! Finds the request that an oversized body answers.
//!
//! Most servers write the id before the result, some after it. So the first and the last few KiB are kept, and the
//! members that are complete in one of them are read. That is enough to tell an answer from a message of the server's
//! own, which has a method and an id that isn't ours.

use std::collections::VecDeque;

use serde::de::DeserializeOwned;

use super::message::MessageId;

/// How much of each end is kept: an id is short, and a server that writes it first or last writes little before or
/// after it.
const KEPT_BYTES: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct Skipped {
    length: u64,
    seen: u64,
    first: Vec<u8>,
    /// The last bytes of what has been seen after `first`.
    last: VecDeque<u8>,
}

impl Skipped {
    pub(super) fn new(length: u64) -> Self {
        Self {
            length,
            seen: 0,
            first: Vec::with_capacity(KEPT_BYTES),
            last: VecDeque::with_capacity(KEPT_BYTES),
        }
    }

    /// Takes the bytes that belong to the body from the beginning of `bytes`, and returns how many.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let left = self.length - self.seen;
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (first, rest) = bytes[..taken].split_at(taken.min(KEPT_BYTES - self.first.len()));
        self.first.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(KEPT_BYTES)..];
        let too_many = (self.last.len() + rest.len()).saturating_sub(KEPT_BYTES);
        self.last.drain(..too_many);
        self.last.extend(rest);
        self.seen += taken as u64;
        taken
    }

    pub(super) fn is_over(&self) -> bool {
        self.seen == self.length
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.first.capacity() + self.last.capacity()
    }

    /// The request that the body answers, if it can be determined.
    pub(super) fn find_answered_id(&mut self) -> Option<MessageId> {
        let mut members = Members::default();
        members.read_forwards(&self.first);
        members.read_backwards(self.last.make_contiguous());
        match members {
            Members { id, is_call: false } => id,
            Members { is_call: true, .. } => None,
        }
    }
}

/// What was found among the outermost members of a message.
#[derive(Debug, Default, PartialEq)]
struct Members {
    id: Option<MessageId>,
    is_call: bool,
}

impl Members {
    fn note(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"\"id\"" if self.id.is_none() => self.id = id(value),
            b"\"method\"" => self.is_call = true,
            _ => {}
        }
    }

    /// Reads members from the beginning of an object as long as they are complete.
    fn read_forwards(&mut self, text: &[u8]) {
        let Some(mut rest) = text.trim_ascii_start().strip_prefix(b"{") else {
            return;
        };
        while let Some((name, value, behind)) = first_member(rest) {
            self.note(name, value);
            rest = behind;
        }
    }

    /// Reads members from the end of an object as long as their values are plain. The last brace of a body closes the
    /// outermost object, so a member of that object comes right before it. A quotation mark inside a string is escaped
    /// with a backslash; the one without begins the string.
    fn read_backwards(&mut self, text: &[u8]) {
        let Some(mut rest) = text.trim_ascii_end().strip_suffix(b"}") else {
            return;
        };
        while let Some((before, name, value)) = last_member(rest) {
            self.note(name, value);
            rest = before;
        }
    }
}

fn id(value: &[u8]) -> Option<MessageId> {
    fn parse<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
        serde_json::from_slice(value).ok()
    }
    parse(value)
        .map(MessageId::Number)
        .or_else(|| parse(value).map(MessageId::Text))
}

/// The first member after a brace or a comma, and the text after it.
fn first_member(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, rest) = string_at_start(text.trim_ascii_start())?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let end = end_of_value(rest)?;
    let behind = rest[end..].strip_prefix(b",").unwrap_or_default();
    Some((name, rest[..end].trim_ascii_end(), behind))
}

fn string_at_start(text: &[u8]) -> Option<(&[u8], &[u8])> {
    text.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = text.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    })?;
    Some(text.split_at(end + 2))
}

/// Where the value at the start of a text ends: at the comma or brace that belongs to the object around it.
fn end_of_value(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let (string, _) = string_at_start(&text[at..])?;
                at += string.len();
                continue;
            }
            b'{' | b'[' => depth += 1,
            b',' | b'}' | b']' if depth == 0 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The last member before a brace or a comma, and the text before it.
fn last_member(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let text = text.trim_ascii_end();
    let value_start = match text.last()? {
        b'"' => start_of_string(text)?,
        byte if is_plain(*byte) => text.iter().rposition(|byte| !is_plain(*byte))? + 1,
        _ => return None,
    };
    let (before, value) = text.split_at(value_start);
    let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    let (before, name) = before.split_at(start_of_string(before)?);
    let before = before.trim_ascii_end();
    match before.last()? {
        b',' => Some((&before[..before.len() - 1], name, value)),
        // The first member of the object, and therefore the last one to read.
        b'{' => Some((&[], name, value)),
        _ => None,
    }
}

fn start_of_string(text: &[u8]) -> Option<usize> {
    let inside = text.strip_suffix(b"\"")?;
    let mut at = inside.len();
    loop {
        at = inside[..at].iter().rposition(|byte| *byte == b'"')?;
        let backslashes = inside[..at]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'\\')
            .count();
        if backslashes % 2 == 0 {
            return Some(at);
        }
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(id: i64) -> Option<MessageId> {
        Some(MessageId::Number(id))
    }

    /// Skips `start`, some filling, and `end`, in pieces of several sizes.
    fn check(start: &str, filling: usize, end: &str, expected: Option<MessageId>) {
        let mut body = start.as_bytes().to_vec();
        body.resize(body.len() + filling, b'x');
        body.extend_from_slice(end.as_bytes());
        for piece in [1, 7, 4096, 5000, body.len()] {
            let mut skipped = Skipped::new(body.len() as u64);
            for bytes in body.chunks(piece) {
                assert_eq!(skipped.take(bytes), bytes.len());
            }
            assert!(skipped.is_over());
            assert_eq!(skipped.take(b"next"), 0);
            assert!(skipped.allocated_bytes() <= 2 * KEPT_BYTES);
            assert_eq!(
                skipped.find_answered_id(),
                expected,
                "{start} … {end} in {piece}s"
            );
        }
    }

    #[test]
    fn the_id_is_found_near_either_end() {
        let long = 20_000;
        check(r#"{"jsonrpc":"2.0","id":7,"result":""#, long, r#""}"#, number(7));
        check(r#" { "id" : -7 , "result":""#, long, r#""}"#, number(-7));
        check(
            r#"{"id":"a\"b","result":""#,
            long,
            r#""}"#,
            Some(MessageId::Text("a\"b".into())),
        );
        check(r#"{"result":""#, long, r#"","id":8}"#, number(8));
        check(
            r#"{"result":""#,
            long,
            r#"" , "id" : 8 , "jsonrpc":"2.0" } "#,
            number(8),
        );
        check(
            r#"{"result":""#,
            long,
            r#"","id":"x"}"#,
            Some(MessageId::Text("x".into())),
        );
        check(
            r#"{"error":null,"extra":{"id":1,"a":["]"]},"id":9,"result":""#,
            long,
            r#""}"#,
            number(9),
        );
        // Too short for a last part: the id is in the first one anyway.
        check(r#"{"result":""#, 10, r#"","id":8}"#, number(8));
    }

    #[test]
    fn what_is_no_answer_of_ours_has_no_id() {
        let long = 20_000;
        check(r#"{"method":"m","params":""#, long, r#""}"#, None);
        check(r#"{"id":7,"method":"m","params":""#, long, r#""}"#, None);
        check(r#"{"params":""#, long, r#"","method":"m","id":7}"#, None);
        check(r#"{"params":""#, long, r#"","id":7,"method":"m"}"#, None);
        check(r#"{"result":{"id":7,"text":""#, long, r#""}}"#, None);
        check(r#"{"result":{"text":""#, long, r#"","id":7}}"#, None);
        check(r#"{"result":"\",\"id\":7}"#, long, r#"\",\"id\":7}"}"#, None);
        check(r#"{"result":[""#, long, r#""],"id":7.5}"#, None);
        check(r#"{"result":[""#, long, r#""],"id":null}"#, None);
        check("", long, "", None);
        check("}", long, "}", None);
        check("{", long, r#":7}"#, None);
    }
}
