//! The keys by which files are found.

/// A key by which a file is found: a trigram, or a name that is defined or mentioned in it.
///
/// Keys ignore ASCII case. Names are hashed: two names may share a hash, so files found by a name must be
/// verified.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(u64);

/// The kinds of keys, in the top byte.
const TRIGRAM: u64 = 1 << 56;
const DEFINED: u64 = 2 << 56;
const MENTIONED: u64 = 3 << 56;
const PART: u64 = 4 << 56;
const REST: u64 = (1 << 56) - 1;

impl Key {
    /// Three consecutive bytes of the text.
    #[must_use]
    pub fn trigram(bytes: [u8; 3]) -> Self {
        let [one, two, three] = bytes.map(|byte| u64::from(byte.to_ascii_lowercase()));
        Self(TRIGRAM | one << 16 | two << 8 | three)
    }

    #[must_use]
    pub fn defined(name: &str) -> Self {
        Self(DEFINED | hash(name))
    }

    #[must_use]
    pub fn mentioned(name: &str) -> Self {
        Self(MENTIONED | hash(name))
    }

    /// Something with this word in its name is defined, as in [`Term::parts`](crate::Term::parts).
    #[must_use]
    pub fn part(word: &str) -> Self {
        Self(PART | hash(word))
    }

    /// The key as a number, in the order of keys.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

fn hash(name: &str) -> u64 {
    let hashed = blake3::hash(name.to_ascii_lowercase().as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hashed.as_bytes()[..8]);
    u64::from_le_bytes(first) & REST
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn keys_are_the_same_in_capitals_and_differ_by_kind() {
        assert_eq!(Key::trigram(*b"aBc"), Key::trigram(*b"AbC"));
        assert_ne!(Key::trigram(*b"abc"), Key::trigram(*b"abd"));
        assert_eq!(Key::defined("ParseConfig"), Key::defined("parseconfig"));
        let kinds = [
            Key::defined("abc"),
            Key::mentioned("abc"),
            Key::part("abc"),
            Key::trigram(*b"abc"),
        ];
        for (place, one) in kinds.iter().enumerate() {
            assert!(kinds[place + 1..].iter().all(|other| other != one));
        }
    }
}
