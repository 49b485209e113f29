//! Takes the escape sequences of terminals out of a text that comes in pieces.

/// Where in a sequence the last piece ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// In none.
    #[default]
    Text,
    /// Behind the escape character.
    Escape,
    /// In a sequence such as that of a colour, which ends with a letter.
    Control,
    /// In a text for the terminal, such as a title or the address of a link, which ends with a bell or a terminator.
    Message,
    /// Behind an escape character in such a text.
    MessageEscape,
    /// Behind the first byte of a sequence that has one more, such as the choice of a character set.
    Charset,
}

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// What remains of a text without escape sequences. Everything else stays as it is, byte for byte.
#[derive(Debug, Default)]
pub(super) struct Stripper {
    within: Within,
}

impl Stripper {
    /// Takes a piece, and returns what is left of it.
    pub(super) fn strip(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(piece.len());
        for &byte in piece {
            self.within = match (self.within, byte) {
                (Within::Text, ESCAPE) => Within::Escape,
                (Within::Text, byte) => {
                    kept.push(byte);
                    Within::Text
                }
                (Within::Escape, b'[') => Within::Control,
                (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Within::Message,
                (Within::Escape, b' '..=b'/') => Within::Charset,
                (Within::Escape, ESCAPE) => Within::Escape,
                // A sequence of two characters is over. Anything else was none.
                (Within::Escape, _) => Within::Text,
                (Within::Control, ESCAPE) => Within::Escape,
                (Within::Control, b'@'..=b'~') => Within::Text,
                (Within::Control, b'\n') => {
                    // No sequence has a line in it: this one was never ended, and the text goes on.
                    kept.push(b'\n');
                    Within::Text
                }
                (Within::Control, _) => Within::Control,
                (Within::Message, BELL) => Within::Text,
                (Within::Message, ESCAPE) => Within::MessageEscape,
                (Within::Message, b'\n') => {
                    kept.push(b'\n');
                    Within::Text
                }
                (Within::Message, _) => Within::Message,
                (Within::MessageEscape, b'\\') => Within::Text,
                (Within::MessageEscape, _) => Within::Message,
                (Within::Charset, b' '..=b'/') => Within::Charset,
                (Within::Charset, _) => Within::Text,
            };
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_taken_out_wherever_the_pieces_end() {
        for (text, expected) in [
            ("plain\ttext\r\nü", "plain\ttext\r\nü"),
            ("\u{1b}[1;31mred\u{1b}[0m!", "red!"),
            ("a\u{1b}[38;2;1;2;3mb\u{1b}[Kc", "abc"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\.", "link."),
            ("\u{1b}(Bx\u{1b}7y\u{1b}=z", "xyz"),
            ("\u{1b}\u{1b}[1mx", "x"),
            // One that is never ended costs a line, not the rest.
            ("\u{1b}]0;never\nx", "\nx"),
            ("\u{1b}[12\nx", "\nx"),
            ("x\u{1b}", "x"),
        ] {
            for size in [1, 2, 3, text.len()] {
                let mut stripper = Stripper::default();
                let kept: Vec<u8> = text
                    .as_bytes()
                    .chunks(size)
                    .flat_map(|piece| stripper.strip(piece))
                    .collect();
                assert_eq!(
                    String::from_utf8_lossy(&kept),
                    expected,
                    "{text:?} in pieces of {size}"
                );
            }
        }
    }
}
