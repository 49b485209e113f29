//! The name that a client's work has in plans and jobs.
//!
//! It consists of the client's own name and, for a client that stays connected, a short id: two instances of the same
//! program are two actors. The id is created where the client's lifetime is known: in `tidelock mcp`, so that it
//! survives the daemon, or with a session over HTTP.

use protocol::BootId;

/// The longest client name. With the id, it fits the limit for actors everywhere else.
const NAME_CHARACTERS: usize = 60;
/// The length of an id that is created here.
const ID_CHARACTERS: usize = 6;
/// The longest id that a client may choose.
const LONGEST_ID: usize = 32;
/// The actor of clients without a name.
const NAMELESS: &str = "mcp";

/// A name that fits into a header and one line.
pub(super) fn cleaned(name: &str) -> String {
    let plain = |character: char| match character {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '.' => character,
        _ => '-',
    };
    let name: String = name.trim().chars().take(NAME_CHARACTERS).map(plain).collect();
    let name = name.trim_matches('-');
    match name {
        "" => NAMELESS.to_owned(),
        name => name.to_owned(),
    }
}

/// The actor of a client that stays connected.
pub(super) fn of(name: &str, id: &ShortId) -> String {
    format!("{}#{}", cleaned(name), id.0)
}

/// Distinguishes clients with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShortId(String);

impl ShortId {
    pub(super) fn generate() -> Self {
        // The end of our ids is random.
        let id = BootId::generate().to_string().to_ascii_lowercase();
        Self(id[id.len() - ID_CHARACTERS..].to_owned())
    }

    /// Accepts an id that was created elsewhere, if it is valid.
    pub(super) fn read(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(is_plain);
        fits.then(|| Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_into_a_header() {
        let long = "x".repeat(NAME_CHARACTERS + 1);
        for (name, expected) in [
            ("claude-code", "claude-code"),
            (" Visual Studio Code ", "Visual-Studio-Code"),
            ("a#b\r\nc", "a-b--c"),
            ("", "mcp"),
            ("###", "mcp"),
            ("größe", "gr--e"),
            (&long, &long[1..]),
        ] {
            assert_eq!(cleaned(name), expected, "{name:?}");
        }
    }

    #[test]
    fn an_id_is_short_and_plain() {
        let (first, second) = (ShortId::generate(), ShortId::generate());
        assert_ne!(first, second);
        assert_eq!(ShortId::read(&first.0), Some(first));
        for text in ["", "A", "a b", "a#b", &"a".repeat(LONGEST_ID + 1)] {
            assert_eq!(ShortId::read(text), None, "{text:?}");
        }
        assert_eq!(of("zed", &second), format!("zed#{}", second.0));
    }
}
