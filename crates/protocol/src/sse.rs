//! Parses server-sent events incrementally.
//!
//! `sse-stream`, which is in the dependency tree, buffers a line until it ends, regardless of its length, and
//! fails on unknown fields, which the standard says to ignore.

use std::borrow::Cow;
use std::mem;

/// The default size limit for a line, and for the data of an event. The daemon's own events have a few
/// hundred bytes.
const DEFAULT_LIMIT_BYTES: usize = 1 << 20;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerEvent {
    /// The id to resume after. Absent if the event has none.
    pub id: Option<String>,
    /// The event type.
    pub kind: String,
    /// The data of the event.
    pub data: String,
}

/// An item of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseItem {
    /// A complete event.
    Event(ServerEvent),
    /// A comment, which shows that the server is still connected.
    Comment,
    /// A line with a field that isn't in the standard. It has no effect on the event around it.
    Unknown(String),
    /// Something had to be dropped or replaced.
    Flaw(SseFlaw),
}

/// Why a line couldn't be used unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseFlaw {
    /// The line was cut at this limit.
    #[error("a line has more than {0} bytes")]
    LongLine(usize),
    /// A line was dropped, because the data of its event would have exceeded this limit.
    #[error("an event has more than {0} bytes")]
    LongEvent(usize),
    /// Bytes that aren't UTF-8 were replaced.
    #[error("a line is not UTF-8")]
    NotUtf8,
}

/// An incremental parser. It holds the incomplete part of a stream.
#[derive(Debug)]
pub struct EventReader {
    limit_bytes: usize,
    line: Vec<u8>,
    /// Whether the line has been cut.
    is_cut: bool,
    event: ServerEvent,
    /// Whether the event has data, even if it is empty.
    has_data: bool,
}

impl Default for EventReader {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT_BYTES)
    }
}

impl EventReader {
    /// Creates a reader that keeps at most this many bytes of a line, and of the data of an event.
    #[must_use]
    pub fn with_limit(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            line: Vec::new(),
            is_cut: false,
            event: ServerEvent::default(),
            has_data: false,
        }
    }

    /// Consumes a piece and returns the events it completes. Events without data are dropped.
    pub fn read(&mut self, piece: &[u8]) -> Vec<ServerEvent> {
        let items = self.items(piece).into_iter();
        let events = items.filter_map(|item| match item {
            SseItem::Event(event) if !event.data.is_empty() => Some(event),
            _ => None,
        });
        events.collect()
    }

    /// Consumes a piece and returns everything it completes.
    pub fn items(&mut self, piece: &[u8]) -> Vec<SseItem> {
        let mut items = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            let room = self.limit_bytes - self.line.len();
            if text.len() > room && !mem::replace(&mut self.is_cut, true) {
                items.push(SseItem::Flaw(SseFlaw::LongLine(self.limit_bytes)));
            }
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < part.len() {
                self.end_line(&mut items);
            }
        }
        items
    }

    /// Ends the stream, and returns the last event if no empty line followed it.
    pub fn finish(&mut self) -> Vec<SseItem> {
        self.items(b"\n\n")
    }

    fn end_line(&mut self, items: &mut Vec<SseItem>) {
        let line = mem::take(&mut self.line);
        self.is_cut = false;
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line));
        if let Cow::Owned(_) = line {
            items.push(SseItem::Flaw(SseFlaw::NotUtf8));
        }
        if line.is_empty() {
            let event = mem::take(&mut self.event);
            if mem::take(&mut self.has_data) {
                items.push(SseItem::Event(event));
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => items.push(SseItem::Comment),
            "id" => self.event.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.event.kind),
            "data" if self.event.data.len() + value.len() > self.limit_bytes => {
                items.push(SseItem::Flaw(SseFlaw::LongEvent(self.limit_bytes)));
            }
            "data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // The reconnection time only matters to browsers.
            "retry" => {}
            _ => items.push(SseItem::Unknown(line.into_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 64;

    fn items(pieces: &[&[u8]]) -> Vec<SseItem> {
        let mut reader = EventReader::with_limit(LIMIT);
        let mut items: Vec<SseItem> = pieces.iter().flat_map(|piece| reader.items(piece)).collect();
        items.extend(reader.finish());
        items
    }

    fn data(text: &str) -> SseItem {
        SseItem::Event(ServerEvent {
            data: text.to_owned(),
            ..ServerEvent::default()
        })
    }

    fn unknown(line: &str) -> SseItem {
        SseItem::Unknown(line.to_owned())
    }

    #[test]
    fn events_are_read_whatever_the_pieces() {
        let text = "retry: 1000\n\n: a comment\n\nid: 1\nevent: reset\ndata: {\"a\": 1}\n\n\
                    event:x\r\ndata: one\r\ndata:two\r\n\r\nid: 3\ndata: unfinished\n";
        let expected = [
            ServerEvent {
                id: Some("1".to_owned()),
                kind: "reset".to_owned(),
                data: "{\"a\": 1}".to_owned(),
            },
            ServerEvent {
                id: None,
                kind: "x".to_owned(),
                data: "one\ntwo".to_owned(),
            },
        ];
        for size in [1, 2, 3, 7, text.len()] {
            let mut reader = EventReader::default();
            let found: Vec<_> = text
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| reader.read(piece))
                .collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn everything_in_a_stream_is_an_item() {
        let named = SseItem::Event(ServerEvent {
            id: Some("7".to_owned()),
            kind: "x".to_owned(),
            data: "a".to_owned(),
        });
        let cases: [(&str, Vec<SseItem>); 9] = [
            ("", vec![]),
            ("data: a\n\ndata:b\r\n\r\n", vec![data("a"), data("b")]),
            ("data: a\ndata: b\n\n", vec![data("a\nb")]),
            (": here\n\ndata: a\n\n", vec![SseItem::Comment, data("a")]),
            ("event: x\nid: 7\nretry: 1\ndata: a\n\n", vec![named]),
            ("data: [DONE]", vec![data("[DONE]")]),
            ("data\n\n", vec![data("")]),
            ("\n\n\ndata: grüß\n\n", vec![data("grüß")]),
            (
                "data: a\nother: b\n<html>\n\n",
                vec![unknown("other: b"), unknown("<html>"), data("a")],
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(items(&[bytes.as_bytes()]), expected, "{bytes:?}");
        }
    }

    #[test]
    fn flaws_are_reported_and_memory_does_not_grow() {
        let long = SseItem::Flaw(SseFlaw::LongLine(LIMIT));
        assert_eq!(
            items(&[b"data: \xff\n\n"]),
            [SseItem::Flaw(SseFlaw::NotUtf8), data("\u{fffd}")]
        );
        let flood = vec![b'x'; LIMIT + 1];
        let mut reader = EventReader::with_limit(LIMIT);
        assert_eq!(reader.items(&flood), std::slice::from_ref(&long));
        assert_eq!(reader.items(&flood), []);
        assert_eq!(reader.line.len(), LIMIT);
        assert_eq!(
            items(&[b"data: ", &flood, b"\n\n"]),
            [long, data(&"x".repeat(LIMIT - 6))]
        );
        let half = [b"data: ", &flood[..LIMIT - 6], b"\n"].concat();
        assert_eq!(
            items(&[&half, &half]),
            [
                SseItem::Flaw(SseFlaw::LongEvent(LIMIT)),
                data(&"x".repeat(LIMIT - 6))
            ]
        );
    }

    proptest! {
        /// The result doesn't depend on how the bytes are split, and nothing panics.
        #[test]
        fn any_split_gives_the_same(
            text in "(data: [a-z ü]{0,6}\r?\n|:x\n|\n|event: y\n|[a-z<]{1,3}\n|[a-z]{60,70}\n){0,20}",
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(items(&pieces), items(&[bytes]));
        }
    }
}
