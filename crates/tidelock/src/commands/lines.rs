//! Lines of bounded length, from a program that may send anything.

use std::io::{self, BufRead};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Line,
    /// The line was too long. It was read to its end and discarded.
    TooLong,
    /// There are no more. An unterminated last line is in the buffer.
    End,
}

/// Reads the next line with its newline into `line`, replacing its content. Never keeps more than `limit_bytes`.
pub(super) fn read(source: &mut impl BufRead, line: &mut Vec<u8>, limit_bytes: usize) -> io::Result<Read> {
    line.clear();
    let mut is_too_long = false;
    loop {
        let available = match source.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        if line.len() + taken > limit_bytes {
            is_too_long = true;
            line.clear();
        }
        if !is_too_long {
            line.extend_from_slice(&available[..taken]);
        }
        source.consume(taken);
        match (taken, end, is_too_long) {
            (0, ..) if !is_too_long => return Ok(Read::End),
            (0, ..) | (_, Some(_), true) => return Ok(Read::TooLong),
            (_, Some(_), false) => return Ok(Read::Line),
            (_, None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn bytes_become_lines_whatever_the_pieces() {
        let cases: [(&str, &[(Read, &str)]); 5] = [
            ("", &[(Read::End, "")]),
            (
                "\n  \n",
                &[(Read::Line, "\n"), (Read::Line, "  \n"), (Read::End, "")],
            ),
            (
                "one\r\n\ntwo",
                &[(Read::Line, "one\r\n"), (Read::Line, "\n"), (Read::End, "two")],
            ),
            (
                "12345\n123456\nlast\nno end",
                &[
                    (Read::Line, "12345\n"),
                    (Read::TooLong, ""),
                    (Read::Line, "last\n"),
                    (Read::End, "no end"),
                ],
            ),
            ("1234567890123", &[(Read::TooLong, ""), (Read::End, "")]),
        ];
        for (text, expected) in cases {
            for buffer in [1, 2, 3, 5, 100] {
                let mut source = BufReader::with_capacity(buffer, text.as_bytes());
                let mut line = Vec::new();
                for (read_as, kept) in expected {
                    let found = read(&mut source, &mut line, 6).unwrap();
                    assert_eq!(
                        (found, String::from_utf8_lossy(&line).as_ref()),
                        (*read_as, *kept),
                        "{text:?} in pieces of {buffer}"
                    );
                }
            }
        }
    }
}
