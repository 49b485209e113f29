//! The name under which a client's work stands in plans and jobs.
//!
//! It is what the client calls itself and, for one that stays, a short id: two of the same program are two actors. The id is
//! made where the client's life is known: in `tidelock mcp`, so that it survives the daemon, or with a session over HTTP.

use protocol::BootId;

/// The longest name of a client. With the id it fits into what names an actor everywhere else.
const NAME_CHARACTERS: usize = 60;
/// How long an id is that is made here.
const ID_CHARACTERS: usize = 6;
/// The longest id that somebody else may give.
const LONGEST_ID: usize = 32;
/// Whoever has no name of its own.
const NAMELESS: &str = "mcp";

/// A name as it can stand in a header and in one line.
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

/// The actor of a client that stays.
pub(super) fn of(name: &str, id: &ShortId) -> String {
    format!("{}#{}", cleaned(name), id.0)
}

/// What tells two clients of one name apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShortId(String);

impl ShortId {
    /// One that nobody has.
    pub(super) fn generate() -> Self {
        // The end of an id of ours is random.
        let id = BootId::generate().to_string().to_ascii_lowercase();
        Self(id[id.len() - ID_CHARACTERS..].to_owned())
    }

    /// One that was made elsewhere, if it can be one.
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
