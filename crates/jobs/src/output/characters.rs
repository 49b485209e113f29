//! Finds where a text may be cut without splitting a character.

/// How many bytes of an incomplete character there can be.
const PART_BYTES: usize = 3;

/// The length of the text without an incomplete character at its end. Of bytes that aren't text, at most the few
/// that could still become a character are held back.
pub(super) fn whole(text: &[u8]) -> usize {
    for behind in 1..=PART_BYTES.min(text.len()) {
        let start = text.len() - behind;
        match text[start] {
            0x80..=0xBF => {}
            first => return if behind < length(first) { start } else { text.len() },
        }
    }
    text.len()
}

/// The first start of a character from this position on, if there is one soon.
pub(super) fn next_start(text: &[u8], from: usize) -> usize {
    let continued = |byte: &&u8| matches!(byte, 0x80..=0xBF);
    let rest = &text[from..];
    let skipped = rest.iter().take_while(continued).count();
    // More than that isn't text, and then any position is fine.
    if skipped > PART_BYTES {
        from
    } else {
        from + skipped
    }
}

/// The length of a character that begins with this byte.
fn length(first: u8) -> usize {
    match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_only_between_characters() {
        let text = "aß€🦀".as_bytes();
        let wholes: Vec<usize> = (0..=text.len()).map(|end| whole(&text[..end])).collect();
        assert_eq!(wholes, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
        let starts: Vec<usize> = (0..=text.len()).map(|from| next_start(text, from)).collect();
        assert_eq!(starts, [0, 1, 3, 3, 6, 6, 6, 10, 10, 10, 10]);
    }

    #[test]
    fn what_is_no_text_is_not_held_back() {
        for (bytes, expected) in [
            (&b"\x80\x80\x80\x80"[..], 4),
            (b"a\xFF", 2),
            (b"\xC0", 1),
            (b"\xF5", 1),
        ] {
            assert_eq!(whole(bytes), expected, "{bytes:?}");
        }
        assert_eq!(next_start(b"\x80\x80\x80\x80\x80", 1), 1);
    }
}
