//! Answers of a limited size, and bytes as text.

/// The most bytes of an answer, about 8,000 tokens. More at once does a model more harm than good, and it can ask for
/// the rest.
pub const ANSWER_LIMIT_BYTES: usize = 32 * 1024;
/// The most bytes of content in an answer, which leaves room for a note about what is left out.
pub const SHOWN_LIMIT_BYTES: usize = ANSWER_LIMIT_BYTES - 1024;
/// The most characters of a title. It has to fit on one line of a list.
const TITLE_LIMIT_CHARS: usize = 160;

/// A text as a single line, truncated if it's long.
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

/// The first `limit` bytes of a text at most, and whether anything was cut.
pub(super) fn beginning(text: &str, limit: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(limit.min(text.len()));
    (&text[..end], end < text.len())
}

/// Truncates a text to a limit. `rest` says how to get what is left out.
#[must_use]
pub fn cut(mut text: String, limit: usize, rest: &str) -> String {
    if text.len() > limit {
        let end = text.floor_char_boundary(limit);
        let omitted = bytes(text.len() - end);
        text.truncate(end);
        text.push_str(&format!("\n[… {omitted} omitted; {rest}]\n"));
    }
    text
}

/// Truncates any answer to its limit. Tools describe what they leave out themselves; this is a safety net.
pub(super) fn bounded(text: String) -> String {
    match text.len() > ANSWER_LIMIT_BYTES {
        true => cut(text, SHOWN_LIMIT_BYTES, "ask for less"),
        false => text,
    }
}

/// The start and the end of a text of any length.
#[derive(Clone, Debug)]
pub struct Excerpt {
    limit: usize,
    beginning: Vec<u8>,
    /// The latest bytes. It holds up to twice what is kept, so that they needn't be moved for each piece.
    end: Vec<u8>,
    total: usize,
}

/// The start takes up one part in this many of an excerpt. Errors are usually at the end.
const BEGINNING: usize = 4;

impl Excerpt {
    /// Creates an excerpt of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            beginning: Vec::new(),
            end: Vec::new(),
            total: 0,
        }
    }

    /// Appends the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        self.total += piece.len();
        let room = (self.limit / BEGINNING).saturating_sub(self.beginning.len());
        let (first, rest) = piece.split_at(room.min(piece.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        let kept = self.limit - self.limit / BEGINNING;
        if self.end.len() > 2 * kept {
            self.end.drain(..self.end.len() - kept);
        }
    }

    /// The length of the whole text.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether the excerpt contains the whole text.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.total <= self.limit
    }

    /// The excerpt as text. If something is left out, `rest` says where to find all of it.
    #[must_use]
    pub fn text(mut self, rest: &str) -> String {
        let kept = self.limit - self.limit / BEGINNING;
        let surplus = self.end.len().saturating_sub(kept);
        self.end.drain(..surplus);
        let omitted = self.total - self.beginning.len() - self.end.len();
        if omitted == 0 {
            self.beginning.append(&mut self.end);
            return String::from_utf8_lossy(&self.beginning).into_owned();
        }
        let beginning = String::from_utf8_lossy(&self.beginning);
        let end = String::from_utf8_lossy(&self.end);
        // If a character was cut in two, both parts are left out.
        let beginning = beginning.trim_end_matches('\u{fffd}');
        let end = end.trim_start_matches('\u{fffd}');
        format!("{beginning}\n[… {} omitted; {rest} …]\n{end}", bytes(omitted))
    }
}

fn bytes(count: usize) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}

/// Turns bytes that arrive in pieces into text. A character split across two pieces comes out whole.
#[derive(Debug, Default)]
pub(super) struct TextPieces {
    /// The start of a character: at most three bytes.
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

    /// What is left at the end of the input.
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
    fn an_excerpt_is_the_beginning_and_the_end() {
        let check = |pieces: &[&str], expected: &str| {
            let mut excerpt = Excerpt::new(8);
            pieces.iter().for_each(|piece| excerpt.add(piece.as_bytes()));
            assert_eq!(excerpt.is_whole(), !expected.contains("omitted"), "{pieces:?}");
            assert_eq!(excerpt.text("see X"), expected, "{pieces:?}");
        };
        check(&[], "");
        check(&["abcdefgh"], "abcdefgh");
        check(&["a", "bcd", "efgh"], "abcdefgh");
        check(&["abcdefghi"], "ab\n[… 1 byte omitted; see X …]\ndefghi");
        let long = "x".repeat(100);
        check(
            &["ab", &long, "cdefgh"],
            "ab\n[… 100 bytes omitted; see X …]\ncdefgh",
        );
        check(&["aöxxxxxxöbcde"], "a\n[… 7 bytes omitted; see X …]\nöbcde");
    }

    #[test]
    fn a_cut_is_between_two_characters() {
        for (text, expected) in [
            ("abc", "abc"),
            ("abcd", "abcd"),
            ("abcdef", "abcd\n[… 2 bytes omitted; see X]\n"),
            ("abcöd", "abc\n[… 3 bytes omitted; see X]\n"),
        ] {
            assert_eq!(cut(text.to_owned(), 4, "see X"), expected);
        }
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
            let mut excerpt = Excerpt::new(SHOWN_LIMIT_BYTES);
            pieces.iter().for_each(|piece| excerpt.add(piece.as_bytes()));
            prop_assert_eq!(excerpt.text("cut"), pieces.concat());
        }
    }
}
