//! The units in which a server counts along a line.

/// The unit of a position's `character`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PositionEncoding {
    /// Bytes.
    Utf8,
    /// 16-bit units; the default if a server names no encoding.
    #[default]
    Utf16,
    Utf32,
}

impl PositionEncoding {
    /// All of them, in order of preference: bytes need no counting.
    pub const OFFERED: [Self; 3] = [Self::Utf8, Self::Utf32, Self::Utf16];

    /// The encoding of that name, if we know it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::OFFERED.into_iter().find(|encoding| encoding.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    /// How many units a character has.
    pub(crate) const fn units(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// How many units a text has.
    pub(crate) fn length(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 | Self::Utf32 if text.is_ascii() => text.len(),
            Self::Utf16 | Self::Utf32 => text.chars().map(|character| self.units(character)).sum(),
        }
    }

    /// How many bytes of a text the first `units` take. A position inside a character is moved to its beginning, one
    /// beyond the end to the end.
    pub(crate) fn bytes(self, text: &str, units: usize) -> usize {
        let mut counted = 0;
        for (offset, character) in text.char_indices() {
            counted += self.units(character);
            if counted > units {
                return offset;
            }
        }
        text.len()
    }
}
