//! Recognizes progress lines in the output of a program: `::progress N/M text` and `::progress N text`.
//!
//! Such a line is removed from the output. A line that only looks similar stays. Bytes arrive in pieces of any
//! size, so a line that starts like one is held back until it is complete; nothing else is.

use protocol::JobProgress;

/// The start of a progress line.
const MARK: &[u8] = b"::progress ";
/// The longest progress line. A longer one is output, so that little is ever held back.
const LINE_LIMIT_BYTES: usize = 1024;

/// A part of the output, in order.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum LinePart<'a> {
    /// Output, unchanged.
    Text(&'a [u8]),
    Progress(JobProgress),
}

#[derive(Debug, Default)]
enum LinePosition {
    /// Before the first byte of a line.
    #[default]
    Start,
    /// In a line that is output.
    Text,
    /// In a line that may be a progress line, with its bytes so far.
    Held(Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    position: LinePosition,
}

impl Lines {
    /// Processes the next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut emit: impl FnMut(LinePart<'_>)) {
        while let Some(&first) = bytes.first() {
            match std::mem::take(&mut self.position) {
                LinePosition::Start if first == MARK[0] => self.position = LinePosition::Held(Vec::new()),
                LinePosition::Start | LinePosition::Text => {
                    let end = self.end_of_text(bytes);
                    emit(LinePart::Text(&bytes[..end]));
                    bytes = &bytes[end..];
                }
                LinePosition::Held(mut line) => {
                    let end = memchr::memchr(b'\n', bytes);
                    line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                    bytes = &bytes[end.map_or(bytes.len(), |end| end + 1)..];
                    match end {
                        Some(_) => end_line(line, Some(b'\n'), &mut emit),
                        None if may_speak_of_progress(&line) => self.position = LinePosition::Held(line),
                        None => {
                            emit(LinePart::Text(&line));
                            self.position = LinePosition::Text;
                        }
                    }
                }
            }
        }
    }

    /// Ends the input: what is held back is the last line.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(LinePart<'_>)) {
        if let LinePosition::Held(line) = std::mem::take(&mut self.position) {
            end_line(line, None, &mut emit);
        }
    }

    /// Where the output that begins here ends: at a possible progress line, or with the bytes.
    fn end_of_text(&mut self, bytes: &[u8]) -> usize {
        for end in memchr::memchr_iter(b'\n', bytes) {
            match bytes.get(end + 1) {
                Some(&first) if first != MARK[0] => {}
                _ => return end + 1,
            }
        }
        self.position = LinePosition::Text;
        bytes.len()
    }
}

fn may_speak_of_progress(line: &[u8]) -> bool {
    let begins = line.starts_with(MARK) || MARK.starts_with(line);
    begins && line.len() <= LINE_LIMIT_BYTES
}

fn end_line(mut line: Vec<u8>, end: Option<u8>, emit: &mut impl FnMut(LinePart<'_>)) {
    if let Some(progress) = parse(&line) {
        return emit(LinePart::Progress(progress));
    }
    line.extend(end);
    if !line.is_empty() {
        emit(LinePart::Text(&line));
    }
}

/// The progress in a line, if it is a progress line. The line ending of a terminal is fine too.
fn parse(line: &[u8]) -> Option<JobProgress> {
    if line.len() > LINE_LIMIT_BYTES {
        return None;
    }
    let rest = std::str::from_utf8(line.strip_prefix(MARK)?).ok()?;
    let rest = rest.strip_suffix('\r').unwrap_or(rest);
    let (numbers, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let (done, total) = match numbers.split_once('/') {
        Some((done, total)) => (number(done)?, Some(number(total)?)),
        None => (number(numbers)?, None),
    };
    Some(JobProgress {
        done,
        total,
        text: text.trim().to_owned(),
    })
}

/// A number of digits only.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::collection;
    use proptest::prelude::*;

    use super::*;

    /// Splits the bytes at some positions, and returns the output, and each progress with the length of the
    /// output before it.
    fn said(bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<(usize, JobProgress)>) {
        let (mut text, mut progress) = (Vec::new(), Vec::new());
        let mut accept = |said: LinePart<'_>| match said {
            LinePart::Text(bytes) => {
                assert!(!bytes.is_empty());
                text.extend_from_slice(bytes);
            }
            LinePart::Progress(said) => progress.push((text.len(), said)),
        };
        let mut lines = Lines::default();
        let mut start = 0;
        for &end in cuts.iter().chain([&bytes.len()]) {
            lines.take(&bytes[start..end], &mut accept);
            start = end;
        }
        lines.finish(&mut accept);
        (text, progress)
    }

    fn progress(done: u64, total: Option<u64>, text: &str) -> JobProgress {
        let text = text.to_owned();
        JobProgress { done, total, text }
    }

    #[test]
    fn lines_that_speak_of_progress_are_taken_out_and_others_stay() {
        let long = format!("::progress 1 {}\n", "x".repeat(LINE_LIMIT_BYTES));
        let longest = format!("::progress 1 {}\n", "x".repeat(LINE_LIMIT_BYTES - MARK.len() - 2));
        type Case<'a> = (&'a str, &'a str, &'a [(usize, JobProgress)]);
        let cases: &[Case<'_>] = &[
            ("", "", &[]),
            ("a\nb", "a\nb", &[]),
            (
                "a\n::progress 1/2 half\nb\n",
                "a\nb\n",
                &[(2, progress(1, Some(2), "half"))],
            ),
            ("::progress 3\n", "", &[(0, progress(3, None, ""))]),
            (
                "::progress 3 so far \r\n",
                "",
                &[(0, progress(3, None, "so far"))],
            ),
            ("::progress 0/0\n", "", &[(0, progress(0, Some(0), ""))]),
            (
                "x\n::progress 1/1 end",
                "x\n",
                &[(2, progress(1, Some(1), "end"))],
            ),
            (
                "::progress 1/9\n::progress 2/9\n",
                "",
                &[(0, progress(1, Some(9), "")), (0, progress(2, Some(9), ""))],
            ),
            (
                &longest,
                "",
                &[(
                    0,
                    progress(1, None, &"x".repeat(LINE_LIMIT_BYTES - MARK.len() - 2)),
                )],
            ),
            (&long, &long, &[]),
            ("a ::progress 1/2\n", "a ::progress 1/2\n", &[]),
            ("::progress\n", "::progress\n", &[]),
            ("::progress \n", "::progress \n", &[]),
            ("::progress x\n", "::progress x\n", &[]),
            ("::progress +1\n", "::progress +1\n", &[]),
            ("::progress 1/\n", "::progress 1/\n", &[]),
            ("::progress 1/2/3\n", "::progress 1/2/3\n", &[]),
            ("::progress  1\n", "::progress  1\n", &[]),
            (
                "::progress 99999999999999999999\n",
                "::progress 99999999999999999999\n",
                &[],
            ),
            ("::progres", "::progres", &[]),
            (":\n::\n:::progress 1\n", ":\n::\n:::progress 1\n", &[]),
        ];
        for (input, text, progress) in cases {
            let expected = (text.as_bytes().to_vec(), progress.to_vec());
            assert_eq!(said(input.as_bytes(), &[]), expected, "{input:?}");
            let everywhere: Vec<usize> = (0..input.len()).collect();
            assert_eq!(
                said(input.as_bytes(), &everywhere),
                expected,
                "{input:?}, byte by byte"
            );
        }
    }

    #[test]
    fn nothing_is_held_back_that_cannot_speak_of_progress() {
        let long = format!("::progress 1 {}", "x".repeat(LINE_LIMIT_BYTES));
        for (bytes, expected) in [
            ("a", "a"),
            ("a\n", "a\n"),
            ("::x", "::x"),
            ("::prog", ""),
            ("a\n:", "a\n"),
            (&long, &long),
        ] {
            let mut text = Vec::new();
            let accept = |said: LinePart<'_>| match said {
                LinePart::Text(bytes) => text.extend_from_slice(bytes),
                LinePart::Progress(_) => {}
            };
            Lines::default().take(bytes.as_bytes(), accept);
            assert_eq!(text, expected.as_bytes(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_of_any_text_says_the_same(
            parts in collection::vec(
                prop_oneof![
                    Just("\n"), Just("::progress "), Just("::"), Just("1/2"), Just("7"), Just(" "), Just("\r\n"),
                    Just("ß€"), Just("text"),
                ],
                0..40,
            ),
            places in collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let text = parts.concat().into_bytes();
            let mut cuts: Vec<usize> = places.iter().map(|position| position.index(text.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(said(&text, &cuts), said(&text, &[]));
        }
    }
}
