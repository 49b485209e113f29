//! Lines with a limit.

use std::io::{self, BufRead};

/// The longest line of an agent, as long as the daemon takes it; and of the daemon, whose answers have limits of their own.
pub(super) const LINE_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// The longest line of the daemon: a resource of four MiB grows when it is written as JSON.
pub(super) const ANSWER_LIMIT_BYTES: usize = 64 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Line,
    /// One that was too long. It is gone.
    TooLong,
    /// There are no more.
    End,
}

/// Reads the next line into `line`, whose content is replaced. A last line without an end is none.
pub(super) fn read(source: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> io::Result<Read> {
    line.clear();
    let mut too_long = false;
    loop {
        let available = match source.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(Read::End);
        }
        let end = memchr(available).map(|at| at + 1);
        let taken = end.unwrap_or(available.len());
        if line.len() + taken > limit {
            too_long = true;
            line.clear();
        }
        if !too_long {
            line.extend_from_slice(&available[..taken]);
        }
        source.consume(taken);
        match (end, too_long) {
            (Some(_), false) => return Ok(Read::Line),
            (Some(_), true) => return Ok(Read::TooLong),
            (None, _) => {}
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_end_and_have_a_limit() {
        for capacity in [1, 3, 100] {
            let text = "one\n\nfar too long\nlast\nno end";
            let mut source = BufReader::with_capacity(capacity, text.as_bytes());
            let mut line = Vec::new();
            let mut found = Vec::new();
            loop {
                let read = read(&mut source, &mut line, 6).unwrap();
                found.push((read, String::from_utf8(line.clone()).unwrap()));
                if read == Read::End {
                    break;
                }
            }
            let expected = [
                (Read::Line, "one\n"),
                (Read::Line, "\n"),
                (Read::TooLong, ""),
                (Read::Line, "last\n"),
                (Read::End, "no end"),
            ];
            let expected: Vec<(Read, String)> = expected
                .iter()
                .map(|(read, text)| (*read, (*text).to_owned()))
                .collect();
            assert_eq!(found, expected, "{capacity}");
        }
    }
}
