//! Lines of a bounded length, from whoever started us.

use std::io::{self, BufRead};

/// The longest message. A picture or a file that comes with a prompt is in one line; the daemon takes less, and says so.
pub(super) const LINE_LIMIT_BYTES: usize = 32 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line that is not blank, without its end.
    Whole(Vec<u8>),
    /// A line that is longer than any message. It was read to its end and thrown away.
    TooLong,
    /// Nothing more comes.
    End,
}

/// Reads the next line. Never more than a line of the longest kind is kept.
pub(super) fn next(reader: &mut impl BufRead, limit_bytes: usize) -> io::Result<Line> {
    loop {
        let mut line = Vec::new();
        let mut is_too_long = false;
        let ended = loop {
            let piece = match reader.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (used, ends) = match piece.iter().position(|byte| *byte == b'\n') {
                Some(place) => (place, true),
                None => (piece.len(), piece.is_empty()),
            };
            if line.len() + used > limit_bytes {
                is_too_long = true;
                line = Vec::new();
            }
            if !is_too_long {
                line.extend_from_slice(&piece[..used]);
            }
            let is_end = piece.is_empty();
            reader.consume(if ends && !is_end { used + 1 } else { used });
            if ends {
                break is_end;
            }
        };
        if is_too_long {
            return Ok(Line::TooLong);
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Line::Whole(line));
        }
        if ended {
            return Ok(Line::End);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(bytes: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut reader = BufReader::with_capacity(buffer, bytes);
        let mut found = Vec::new();
        loop {
            match next(&mut reader, limit).unwrap() {
                Line::End => return found,
                line => found.push(line),
            }
        }
    }

    #[test]
    fn bytes_become_lines_whatever_the_pieces() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        let cases: [(&[u8], Vec<Line>); 6] = [
            (b"", vec![]),
            (b"\n  \n", vec![]),
            (b"one\ntwo\n", vec![whole("one"), whole("two")]),
            (b"one\r\n\ntwo", vec![whole("one\r"), whole("two")]),
            (
                b"123456\n1234567\nx\n",
                vec![whole("123456"), Line::TooLong, whole("x")],
            ),
            (b"1234567890123", vec![Line::TooLong]),
        ];
        for (bytes, expected) in cases {
            for buffer in [1, 2, 5, 100] {
                assert_eq!(all(bytes, 6, buffer), expected, "{bytes:?} in pieces of {buffer}");
            }
        }
    }
}
