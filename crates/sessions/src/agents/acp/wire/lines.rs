//! Lines of a limited length.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::Closed;

/// The longest message. A written file or an image is one line. An agent that sends a longer one is stopped.
pub(super) const LINE_LIMIT_BYTES: usize = 8 * 1024 * 1024;
/// How many bytes to read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Splits the input into lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// How far the buffer has been scanned.
    looked: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            looked: 0,
        }
    }

    /// The next line that isn't blank; `None` at the end. Text after the last line break counts as a line.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Closed> {
        loop {
            let found = self.buffer[self.looked..].iter().position(|byte| *byte == b'\n');
            let line = match found {
                Some(place) => {
                    let end = self.looked + place;
                    let line = self.buffer[self.start..end].to_vec();
                    self.start = end + 1;
                    self.looked = self.start;
                    line
                }
                None => {
                    self.looked = self.buffer.len();
                    if self.looked - self.start > LINE_LIMIT_BYTES {
                        return Err(Closed::TooLong);
                    }
                    if self.fill().await? {
                        continue;
                    }
                    let line = self.buffer.split_off(self.start);
                    self.buffer.clear();
                    (self.start, self.looked) = (0, 0);
                    if line.trim_ascii().is_empty() {
                        return Ok(None);
                    }
                    line
                }
            };
            if line.len() > LINE_LIMIT_BYTES {
                return Err(Closed::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Reads more; returns false at the end.
    async fn fill(&mut self) -> Result<bool, Closed> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.looked -= self.start;
            self.start = 0;
        }
        self.buffer.reserve(CHUNK_BYTES);
        let read = self.reader.read_buf(&mut self.buffer).await;
        read.map(|bytes| bytes > 0)
            .map_err(|error| Closed::Broken(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8]) -> (Vec<String>, Option<Closed>) {
        let mut lines = Lines::new(bytes);
        let mut found = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => found.push(String::from_utf8_lossy(&line).into_owned()),
                Ok(None) => return (found, None),
                Err(closed) => return (found, Some(closed)),
            }
        }
    }

    #[tokio::test]
    async fn bytes_become_lines() {
        let cases: [(&[u8], &[&str]); 5] = [
            (b"", &[]),
            (b"\n  \n", &[]),
            (b"one\ntwo\n", &["one", "two"]),
            (b"one\r\n\ntwo", &["one\r", "two"]),
            (b"\n\none", &["one"]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(
                all(bytes).await,
                (expected.iter().map(ToString::to_string).collect(), None)
            );
        }
    }

    #[tokio::test]
    async fn a_long_line_is_taken_and_one_that_is_too_long_is_not() {
        let mut bytes = vec![b'x'; LINE_LIMIT_BYTES];
        bytes.push(b'\n');
        bytes.extend_from_slice(b"next\n");
        let (lines, closed) = all(&bytes).await;
        assert_eq!(
            (lines[0].len(), lines[1].as_str(), closed),
            (LINE_LIMIT_BYTES, "next", None)
        );
        bytes.insert(0, b'x');
        assert_eq!(all(&bytes).await, (Vec::new(), Some(Closed::TooLong)));
        let endless = vec![b'x'; LINE_LIMIT_BYTES + CHUNK_BYTES];
        assert_eq!(all(&endless).await, (Vec::new(), Some(Closed::TooLong)));
    }
}
