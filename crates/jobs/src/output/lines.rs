//! Lines that speak of progress, found in the output of a program: `::progress N/M text` and `::progress N text`.
//!
//! Such a line is taken out of the output. One that only looks like it stays. Bytes come in pieces of any size, so a
//! line that has begun like one is held back until it is whole; nothing else is.

use protocol::JobProgress;

/// How such a line begins.
const MARK: &[u8] = b"::progress ";
/// The longest such line. A longer one is output, so that not much is ever held back.
const LINE_LIMIT_BYTES: usize = 1024;

/// What was found, in order.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Said<'a> {
    /// Output, as it came.
    Text(&'a [u8]),
    /// How far it is.
    Progress(JobProgress),
}

/// Where in a line the bytes are that have come so far.
#[derive(Debug, Default)]
enum Place {
    /// Before the first byte of a line.
    #[default]
    Start,
    /// In a line that is output.
    Text,
    /// In a line that may speak of progress: this is all of it so far.
    Held(Vec<u8>),
}

/// The lines of one channel.
#[derive(Debug, Default)]
pub(super) struct Lines {
    place: Place,
}

impl Lines {
    /// Takes the next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut say: impl FnMut(Said<'_>)) {
        while let Some(&first) = bytes.first() {
            match std::mem::take(&mut self.place) {
                Place::Start if first == MARK[0] => self.place = Place::Held(Vec::new()),
                Place::Start | Place::Text => {
                    let end = self.end_of_text(bytes);
                    say(Said::Text(&bytes[..end]));
                    bytes = &bytes[end..];
                }
                Place::Held(mut line) => {
                    let end = memchr::memchr(b'\n', bytes);
                    line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                    bytes = &bytes[end.map_or(bytes.len(), |end| end + 1)..];
                    match end {
                        Some(_) => end_line(line, Some(b'\n'), &mut say),
                        None if may_speak_of_progress(&line) => self.place = Place::Held(line),
                        None => {
                            say(Said::Text(&line));
                            self.place = Place::Text;
                        }
                    }
                }
            }
        }
    }

    /// There are no more bytes: what is held back is the last line.
    pub(super) fn finish(&mut self, mut say: impl FnMut(Said<'_>)) {
        if let Place::Held(line) = std::mem::take(&mut self.place) {
            end_line(line, None, &mut say);
        }
    }

    /// Where the output ends that begins here: at a line that may speak of progress, or with the bytes.
    fn end_of_text(&mut self, bytes: &[u8]) -> usize {
        for end in memchr::memchr_iter(b'\n', bytes) {
            match bytes.get(end + 1) {
                Some(&first) if first != MARK[0] => {}
                _ => return end + 1,
            }
        }
        self.place = Place::Text;
        bytes.len()
    }
}

/// Whether a line that has begun so may still speak of progress.
fn may_speak_of_progress(line: &[u8]) -> bool {
    let begins = line.starts_with(MARK) || MARK.starts_with(line);
    begins && line.len() <= LINE_LIMIT_BYTES
}

fn end_line(mut line: Vec<u8>, end: Option<u8>, say: &mut impl FnMut(Said<'_>)) {
    if let Some(progress) = parse(&line) {
        return say(Said::Progress(progress));
    }
    line.extend(end);
    if !line.is_empty() {
        say(Said::Text(&line));
    }
}

/// What a line says, if it speaks of progress. A terminal ends lines in its own way, which is fine too.
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

/// A number in digits and nothing else.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;

    /// What comes of bytes that are cut at some places: the output, and what was said of progress and after how much
    /// output.
    fn said(bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, Vec<(usize, JobProgress)>) {
        let (mut text, mut progress) = (Vec::new(), Vec::new());
        let mut hear = |said: Said<'_>| match said {
            Said::Text(bytes) => {
                assert!(!bytes.is_empty());
                text.extend_from_slice(bytes);
            }
            Said::Progress(said) => progress.push((text.len(), said)),
        };
        let mut lines = Lines::default();
        let mut start = 0;
        for &end in cuts.iter().chain([&bytes.len()]) {
            lines.take(&bytes[start..end], &mut hear);
            start = end;
        }
        lines.finish(&mut hear);
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
            let hear = |said: Said<'_>| match said {
                Said::Text(bytes) => text.extend_from_slice(bytes),
                Said::Progress(_) => {}
            };
            Lines::default().take(bytes.as_bytes(), hear);
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
            let mut cuts: Vec<usize> = places.iter().map(|place| place.index(text.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(said(&text, &cuts), said(&text, &[]));
        }
    }
}
