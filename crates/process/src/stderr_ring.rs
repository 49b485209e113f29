//! The end of a child's standard error.

use std::collections::VecDeque;

/// How much is kept. It is for error messages: the end says what went wrong, and 64 KiB is some 800 lines.
pub(crate) const RING_BYTES: usize = 64 * 1024;

/// A ring of bytes. Older bytes are dropped.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    bytes: VecDeque<u8>,
}

impl Ring {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(RING_BYTES)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(RING_BYTES);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
    }

    /// The content as text. If the ring has cut a character, its rest is left out.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let is_full = bytes.len() == RING_BYTES;
        let is_rest = |byte: &&u8| is_full && **byte & 0b1100_0000 == 0b1000_0000;
        // A character has at most three bytes after its first one.
        let rest = bytes.iter().take(3).take_while(is_rest).count();
        String::from_utf8_lossy(&bytes[rest..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_whatever_the_pieces() {
        let text: String = (0..30_000).map(|number| format!("{number}\n")).collect();
        for step in [1, 7, 4096, RING_BYTES, text.len()] {
            let mut ring = Ring::default();
            for piece in text.as_bytes().chunks(step) {
                ring.add(piece);
            }
            assert_eq!(ring.text(), text[text.len() - RING_BYTES..], "in steps of {step}");
        }
    }

    #[test]
    fn broken_text_is_shown_as_far_as_it_can_be() {
        let mut ring = Ring::default();
        ring.add(b"a\xffb\x80");
        assert_eq!(ring.text(), "a\u{fffd}b\u{fffd}");
        ring.add("é".repeat(RING_BYTES / 2).as_bytes());
        ring.add(b"x");
        assert_eq!(ring.text(), "é".repeat(RING_BYTES / 2 - 1) + "x");
    }
}
