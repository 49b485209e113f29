//! Answers of a bounded size, and bytes as text.

use std::collections::VecDeque;

/// The most bytes of an answer. It is about 8,000 tokens: more at once does a model more harm than good, and what is left out
/// can be asked for.
pub(super) const ANSWER_LIMIT_BYTES: usize = 32 * 1024;
/// The most bytes of what an answer shows, so that there is room for a word on what is left out.
pub(super) const SHOWN_LIMIT_BYTES: usize = ANSWER_LIMIT_BYTES - 1024;
/// The most characters of a title. It stands in one line of a list.
const TITLE_LIMIT_CHARS: usize = 160;

/// A text in one line, cut if it is long.
pub(super) fn one_line(text: &str) -> String {
    let mut characters = text.chars().map(|character| match character {
        control if control.is_control() => ' ',
        plain => plain,
    });
    let mut line: String = characters.by_ref().take(TITLE_LIMIT_CHARS).collect();
    if characters.next().is_some() {
        line.push_str(" ...");
    }
    line
}

/// The beginning of a text of at most so many bytes, and whether that is less than all.
pub(super) fn beginning(text: &str, limit: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(limit.min(text.len()));
    (&text[..end], end < text.len())
}

/// A text within the limit of answers, whatever it was. Tools say themselves what they leave out; this is for the rest.
pub(super) fn bounded(mut text: String) -> String {
    if text.len() > ANSWER_LIMIT_BYTES {
        let end = text.floor_char_boundary(SHOWN_LIMIT_BYTES);
        let left_out = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[... {left_out} more bytes were left out]"));
    }
    text
}

/// The first and the last part of something that may be long.
#[derive(Debug, Default)]
pub(super) struct BothEnds {
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
}

/// How much of each end is kept.
const END_BYTES: usize = SHOWN_LIMIT_BYTES / 2;

impl BothEnds {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = END_BYTES - self.first.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.first.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(END_BYTES)..];
        self.last.extend(rest);
        let excess = self.last.len().saturating_sub(END_BYTES);
        self.last.drain(..excess);
    }

    /// How much is left out.
    pub(super) fn left_out(&self) -> u64 {
        self.total - (self.first.len() + self.last.len()) as u64
    }

    /// Both parts, with a word in between if something is left out. Bytes that are not text are replaced.
    pub(super) fn shown(mut self, left_out: impl FnOnce(u64) -> String) -> String {
        let between = self.left_out();
        let last = self.last.make_contiguous();
        if between == 0 {
            // Both parts belong together, and a character may lie across the seam.
            self.first.extend_from_slice(last);
            return String::from_utf8_lossy(&self.first).into_owned();
        }
        let (first, last) = (
            String::from_utf8_lossy(&self.first),
            String::from_utf8_lossy(last),
        );
        format!("{first}\n{}\n{last}", left_out(between))
    }
}

/// Bytes that come in pieces, as text. A character that lies across two pieces comes out whole.
#[derive(Debug, Default)]
pub(super) struct TextPieces {
    /// The beginning of a character: at most three bytes.
    begun: Vec<u8>,
}

impl TextPieces {
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &after[length..];
                        }
                        None => {
                            self.begun = after.to_vec();
                            return text;
                        }
                    }
                }
            }
        }
    }

    /// What is left when nothing more comes.
    pub(super) fn finish(self) -> String {
        String::from_utf8_lossy(&self.begun).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let cases = [
            ("", 0, "", false),
            ("abc", 3, "abc", false),
            ("abc", 2, "ab", true),
        ];
        for (text, limit, expected, is_cut) in cases {
            assert_eq!(beginning(text, limit), (expected, is_cut));
        }
        assert_eq!(beginning("a\u{6c34}b", 3), ("a", true));
        assert_eq!(one_line("a\nb\tc"), "a b c");
        let long = "\u{6c34}".repeat(ANSWER_LIMIT_BYTES);
        assert!(bounded(long.clone()).len() <= ANSWER_LIMIT_BYTES);
        assert_eq!(one_line(&long).chars().count(), TITLE_LIMIT_CHARS + 4);
        assert_eq!(bounded("short".to_owned()), "short");
    }

    #[test]
    fn both_ends_are_kept_and_the_middle_is_counted() {
        let mut ends = BothEnds::default();
        ends.push(&vec![b'a'; END_BYTES]);
        ends.push(&[b'x'; 10]);
        ends.push(&vec![b'z'; END_BYTES - 1]);
        assert_eq!(ends.left_out(), 9);
        let (a, z) = ("a".repeat(END_BYTES), "z".repeat(END_BYTES - 1));
        assert_eq!(
            ends.shown(|bytes| format!("[{bytes}]")),
            format!("{a}\n[9]\nx{z}")
        );
    }

    proptest! {
        #[test]
        fn pieces_come_to_the_same_text(pieces in vec(vec(any::<u8>(), 0..6), 0..8)) {
            let mut text = TextPieces::default();
            let mut joined: String = pieces.iter().map(|piece| text.push(piece)).collect();
            joined.push_str(&text.finish());
            let all = pieces.concat();
            prop_assert_eq!(joined, String::from_utf8_lossy(&all));
        }

        #[test]
        fn what_is_short_is_shown_whole(pieces in vec("\\PC{0,40}", 0..20)) {
            let mut ends = BothEnds::default();
            pieces.iter().for_each(|piece| ends.push(piece.as_bytes()));
            prop_assert_eq!(ends.shown(|_| "cut".to_owned()), pieces.concat());
        }
    }
}
