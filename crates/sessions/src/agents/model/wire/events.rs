//! Server-sent events from bytes, within limits.

use super::fault::Fault;

/// The longest line. A whole file as the argument of a tool fits; more than that is no answer any more.
const LINE_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// How much of a line that makes no sense is shown.
const SHOWN_BYTES: usize = 120;

/// What a server sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) enum StreamItem {
    /// The data of an event.
    Data(String),
    /// A sign of life.
    Comment,
}

/// Takes bytes as they come, and gives events.
#[derive(Debug, Default)]
pub(in super::super) struct EventReader {
    buffer: Vec<u8>,
    /// How much of the buffer has been given out.
    taken: usize,
    /// How much of it was searched for the end of a line.
    searched: usize,
    /// The data of the event that is not complete yet.
    data: Option<String>,
}

impl EventReader {
    /// Takes more bytes. Whatever can be given out should be taken before.
    pub(in super::super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next item; nothing if more bytes are needed.
    pub(in super::super) fn next(&mut self) -> Result<Option<StreamItem>, Fault> {
        while let Some(line) = self.line()? {
            if line.is_empty() {
                if let Some(data) = self.data.take() {
                    return Ok(Some(StreamItem::Data(data)));
                }
            } else if line.starts_with(':') {
                return Ok(Some(StreamItem::Comment));
            } else {
                self.field(&line)?;
            }
        }
        Ok(None)
    }

    /// The bytes are at their end: an event without an empty line behind it counts as well.
    pub(in super::super) fn finish(&mut self) -> Result<Option<StreamItem>, Fault> {
        self.push(b"\n\n");
        self.next()
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<Option<String>, Fault> {
        let Some(found) = self.buffer[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n')
        else {
            self.searched = self.buffer.len();
            if self.buffer.len() - self.taken > LINE_LIMIT_BYTES {
                return Err(Fault::Garbled(format!(
                    "a line has more than {LINE_LIMIT_BYTES} bytes"
                )));
            }
            return Ok(None);
        };
        let end = self.searched + found;
        let line = &self.buffer[self.taken..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LINE_LIMIT_BYTES {
            return Err(Fault::Garbled(format!(
                "a line has more than {LINE_LIMIT_BYTES} bytes"
            )));
        }
        let line = str::from_utf8(line)
            .map_err(|_| Fault::Garbled("a line is not UTF-8".to_owned()))?
            .to_owned();
        self.taken = end + 1;
        self.searched = end + 1;
        Ok(Some(line))
    }

    fn field(&mut self, line: &str) -> Result<(), Fault> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match name {
            "data" => {
                let value = value.strip_prefix(' ').unwrap_or(value);
                match &mut self.data {
                    None => self.data = Some(value.to_owned()),
                    Some(data) if data.len() + value.len() > LINE_LIMIT_BYTES => {
                        return Err(Fault::Garbled(format!(
                            "an event has more than {LINE_LIMIT_BYTES} bytes"
                        )));
                    }
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                }
                Ok(())
            }
            "event" | "id" | "retry" => Ok(()),
            _ => Err(Fault::Garbled(format!("a line is no event: `{}`", shown(line)))),
        }
    }
}

/// The beginning of a text, for a message.
pub(super) fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES.min(text.len()));
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", text[..end].escape_debug())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> (Vec<StreamItem>, Option<Fault>) {
        let mut reader = EventReader::default();
        let mut items = Vec::new();
        for piece in pieces {
            reader.push(piece);
            loop {
                match reader.next() {
                    Ok(Some(item)) => items.push(item),
                    Ok(None) => break,
                    Err(fault) => return (items, Some(fault)),
                }
            }
        }
        match reader.finish() {
            Ok(last) => items.extend(last),
            Err(fault) => return (items, Some(fault)),
        }
        (items, None)
    }

    fn data(text: &str) -> StreamItem {
        StreamItem::Data(text.to_owned())
    }

    #[test]
    fn events_are_read() {
        let cases: [(&str, Vec<StreamItem>); 8] = [
            ("", vec![]),
            ("data: a\n\ndata:b\r\n\r\n", vec![data("a"), data("b")]),
            ("data: a\ndata: b\n\n", vec![data("a\nb")]),
            (": here\n\ndata: a\n\n", vec![StreamItem::Comment, data("a")]),
            ("event: x\nid: 7\nretry: 1\ndata: a\n\n", vec![data("a")]),
            ("data: [DONE]", vec![data("[DONE]")]),
            ("data\n\n", vec![data("")]),
            ("\n\n\ndata: grüß\n\n", vec![data("grüß")]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(read(&[bytes.as_bytes()]), (expected, None), "{bytes:?}");
        }
    }

    #[test]
    fn garbage_is_refused_and_memory_does_not_grow() {
        let fault = |pieces: &[&[u8]]| read(pieces).1;
        let garbled = |text: &str| Some(Fault::Garbled(text.to_owned()));
        assert_eq!(
            fault(&[b"<html>\n<body>"]),
            garbled("a line is no event: `<html>`")
        );
        assert_eq!(fault(&[b"data: \xff\n\n"]), garbled("a line is not UTF-8"));
        let flood = vec![b'x'; LINE_LIMIT_BYTES + 1];
        let long = garbled("a line has more than 4194304 bytes");
        assert_eq!(fault(&[&flood]), long);
        assert_eq!(fault(&[b"data: ", &flood, b"\n\n"]), long);
        let half = [b"data: ", &flood[..LINE_LIMIT_BYTES - 6], b"\n"].concat();
        assert_eq!(
            fault(&[&half, &half]),
            garbled("an event has more than 4194304 bytes")
        );
    }

    proptest! {
        /// However bytes are cut, the same comes out; and nothing panics.
        #[test]
        fn any_split_gives_the_same(
            text in "(data: [a-z ü]{0,6}\r?\n|:x\n|\n|event: y\n|[a-z<]{1,3}\n){0,20}",
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[bytes]));
        }
    }
}
