//! Strips terminal escape sequences from a text that arrives in chunks.
//!
//! This is our own parser, because the bytes it keeps must be exactly those that came in. `anstyle-parse` and `vte`
//! decode text as UTF-8, drop control characters beyond ASCII, and return the parameters of a color as numbers, which
//! can't be written back unchanged. They also let an unterminated sequence swallow the lines after it.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Within {
    /// Not in a sequence.
    #[default]
    Text,
    Escape,
    /// In a sequence such as a color, which ends with a letter.
    Control,
    /// In a string for the terminal, such as a title or a link's address, which ends with a bell or a terminator.
    Message,
    MessageEscape,
    /// After the first byte of a sequence that has one more, such as a character set selection.
    Charset,
    /// After the first of two bytes that may form a control character.
    Lead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::commands) enum Kept {
    /// No sequences; everything else stays unchanged, byte for byte.
    #[default]
    Text,
    /// Colors, but no other sequence or control character that a terminal would act on: for viewing output that
    /// someone else's program wrote.
    Colours,
}

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
const DELETE: u8 = 0x7f;
/// The first byte of the control characters beyond ASCII; `0x80` to `0x9f` follows.
const LEAD: u8 = 0xc2;
/// Colors are shorter; anything longer is not a color.
const COLOUR_LIMIT_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(in crate::commands) struct Stripper {
    within: Within,
    kept: Kept,
    parameters: Vec<u8>,
}

impl Stripper {
    pub(in crate::commands) fn keeping(kept: Kept) -> Stripper {
        Stripper {
            kept,
            ..Stripper::default()
        }
    }

    pub(in crate::commands) fn strip(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(piece.len());
        for &byte in piece {
            self.within = match (self.within, byte) {
                (Within::Text, ESCAPE) => Within::Escape,
                (Within::Lead, 0x80..=0x9f) => Within::Text,
                (Within::Lead, byte) => {
                    kept.push(LEAD);
                    self.text(byte, &mut kept)
                }
                (Within::Text, byte) => self.text(byte, &mut kept),
                (Within::Escape, b'[') => {
                    self.parameters.clear();
                    Within::Control
                }
                (Within::Escape, b']' | b'P' | b'X' | b'^' | b'_') => Within::Message,
                (Within::Escape, b' '..=b'/') => Within::Charset,
                (Within::Escape, ESCAPE) => Within::Escape,
                // A two-character sequence is complete. Anything else was not a sequence.
                (Within::Escape, _) => Within::Text,
                (Within::Control, ESCAPE) => Within::Escape,
                (Within::Control, b'@'..=b'~') => {
                    if byte == b'm' && self.is_colour() {
                        kept.extend([ESCAPE, b'[']);
                        kept.append(&mut self.parameters);
                        kept.push(b'm');
                    }
                    Within::Text
                }
                (Within::Control, b'\n') => {
                    // No sequence contains a newline: this one was never terminated, and the text continues.
                    kept.push(b'\n');
                    Within::Text
                }
                (Within::Control, byte) => {
                    // One byte over the limit is enough to know that it is not a color.
                    if self.parameters.len() <= COLOUR_LIMIT_BYTES {
                        self.parameters.push(byte);
                    }
                    Within::Control
                }
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

    fn text(&self, byte: u8, kept: &mut Vec<u8>) -> Within {
        match (self.kept, byte) {
            (_, ESCAPE) => return Within::Escape,
            (Kept::Colours, LEAD) => return Within::Lead,
            (Kept::Colours, DELETE) => {}
            (Kept::Colours, byte) if byte < b' ' && !matches!(byte, b'\n' | b'\r' | b'\t') => {}
            (_, byte) => kept.push(byte),
        }
        Within::Text
    }

    fn is_colour(&self) -> bool {
        let is_parameter = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
        self.kept == Kept::Colours
            && self.parameters.len() <= COLOUR_LIMIT_BYTES
            && self.parameters.iter().all(is_parameter)
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
            // An unterminated sequence costs a line, not the rest.
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

    #[test]
    fn a_terminal_gets_colours_and_no_other_command() {
        for (text, expected) in [
            ("\u{1b}[1;31mred\u{1b}[m\tü\r\n", "\u{1b}[1;31mred\u{1b}[m\tü\r\n"),
            ("\u{1b}[38:2::1:2:3mx", "\u{1b}[38:2::1:2:3mx"),
            ("\u{1b}[2Ja\u{1b}[1;1Hb\u{1b}[?25lc\u{1b}[>4md", "abcd"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y", "xy"),
            ("a\u{8}b\u{7f}c\u{7}d\0", "abcd"),
            ("a\u{9b}2Jb\u{9d}0;c\u{9c}é\u{a0}", "a2Jb0;cé\u{a0}"),
            ("\u{1b}\u{1b}[31mx", "\u{1b}[31mx"),
        ] {
            for size in [1, 2, 3, text.len()] {
                let mut stripper = Stripper::keeping(Kept::Colours);
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
        let long = format!("\u{1b}[{}mx", "1;".repeat(100));
        assert_eq!(Stripper::keeping(Kept::Colours).strip(long.as_bytes()), b"x");
    }
}
