//! How large answers may be: a model reads all of them, and pays for each word.

/// The largest text of an answer. What is longer is cut, and the answer says where all of it is.
pub(super) const TEXT_LIMIT_BYTES: usize = 32 * 1024;

/// The largest resource. It is meant to be whole; what is larger than this is read in another way.
pub(super) const RESOURCE_LIMIT_BYTES: usize = 4 * 1024 * 1024;

/// How much of an excerpt from the middle is its beginning: one part in so many. What went wrong stands at the end.
const BEGINNING: usize = 4;

/// The beginning and the end of a text that may be of any length.
#[derive(Clone, Debug)]
pub(super) struct Excerpt {
    limit: usize,
    beginning: Vec<u8>,
    /// What came last. It holds up to twice what is kept, so that it need not be moved for each piece.
    end: Vec<u8>,
    total: usize,
}

impl Excerpt {
    /// An excerpt of at most so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            beginning: Vec::new(),
            end: Vec::new(),
            total: 0,
        }
    }

    pub(super) fn add(&mut self, piece: &[u8]) {
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

    /// How long the whole text is.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The text, and where all of it is if this is not all of it.
    pub(super) fn text(mut self, whole: &str) -> String {
        let kept = self.limit - self.limit / BEGINNING;
        let surplus = self.end.len().saturating_sub(kept);
        self.end.drain(..surplus);
        let left_out = self.total - self.beginning.len() - self.end.len();
        if left_out == 0 {
            self.beginning.append(&mut self.end);
            return String::from_utf8_lossy(&self.beginning).into_owned();
        }
        let beginning = String::from_utf8_lossy(&self.beginning);
        let end = String::from_utf8_lossy(&self.end);
        // Where a character was cut in two, its parts are left out.
        let beginning = beginning.trim_end_matches('\u{fffd}');
        let end = end.trim_start_matches('\u{fffd}');
        let left_out = bytes(left_out);
        format!("{beginning}\n[… {left_out} omitted; {whole} …]\n{end}")
    }
}

/// The beginning of a text, and where all of it is if this is not all of it.
pub(super) fn beginning(text: String, limit: usize, whole: &str) -> String {
    if text.len() <= limit {
        return text;
    }
    let end = text.floor_char_boundary(limit);
    let left_out = bytes(text.len() - end);
    format!("{}\n[… {left_out} omitted; {whole}]\n", &text[..end])
}

fn bytes(count: usize) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_the_beginning_and_the_end() {
        let check = |pieces: &[&str], expected: &str| {
            let mut excerpt = Excerpt::new(8);
            pieces.iter().for_each(|piece| excerpt.add(piece.as_bytes()));
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
    fn a_beginning_ends_between_two_characters() {
        for (text, expected) in [
            ("abc", "abc"),
            ("abcd", "abcd"),
            ("abcdef", "abcd\n[… 2 bytes omitted; see X]\n"),
            ("abcöd", "abc\n[… 3 bytes omitted; see X]\n"),
        ] {
            assert_eq!(beginning(text.to_owned(), 4, "see X"), expected);
        }
    }
}
