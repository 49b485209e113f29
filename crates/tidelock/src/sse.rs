//! Reads server-sent events from the pieces that they come in.

use std::mem;

/// The longest line that is kept, where nothing else is said. Ours have some hundred bytes.
const LINE_LIMIT_BYTES: usize = 1 << 20;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    /// The place to go on after, if the event names one.
    pub(crate) id: Option<String>,
    /// What happened.
    pub(crate) kind: String,
    /// The rest.
    pub(crate) data: String,
}

/// What has come of an event that is not whole yet.
#[derive(Debug)]
pub(crate) struct EventReader {
    limit_bytes: usize,
    line: Vec<u8>,
    event: ServerEvent,
}

impl Default for EventReader {
    fn default() -> EventReader {
        EventReader::with_limit(LINE_LIMIT_BYTES)
    }
}

impl EventReader {
    /// For streams whose lines may be as long as this. What is longer is cut.
    pub(crate) fn with_limit(limit_bytes: usize) -> EventReader {
        EventReader {
            limit_bytes,
            line: Vec::new(),
            event: ServerEvent::default(),
        }
    }

    /// Takes a piece, and returns the events that it completes.
    pub(crate) fn read(&mut self, piece: &[u8]) -> Vec<ServerEvent> {
        let mut whole = Vec::new();
        for byte in piece {
            match byte {
                b'\n' => whole.extend(self.end_line()),
                byte if self.line.len() < self.limit_bytes => self.line.push(*byte),
                _ => {}
            }
        }
        whole
    }

    /// Takes a line; an empty one ends an event.
    fn end_line(&mut self) -> Option<ServerEvent> {
        let line = mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            let event = mem::take(&mut self.event);
            // Without data it is a comment, or an advice on when to come back.
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.event.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A comment, or something that only browsers heed.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
