//! Classifies a piece of a question.

use super::parts::parts_of;
use super::types::TermKind;

/// Extensions that make a piece with a dot a file rather than a field.
const FILE_ENDINGS: &str = "\
    bash c cc cfg conf cpp cs css csv cxx ex feature go gradle h hpp hs html ini java js json jsx kt lock lua md mjs \
    ml php pl proto py pyi rb rs rst scala sh sql svg swift toml ts tsx txt vue xml yaml yml zig";

/// Whether a character can be inside a name, a path or a word. Others separate them.
pub(super) fn is_inside(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | ':' | '.' | '/' | '\\' | '-')
}

/// The kind of a piece; `None` if it has no letter and no digit. `called` means that a bracket follows it.
pub(super) fn shape_of(piece: &str, called: bool) -> Option<(&str, TermKind)> {
    let bare = piece.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '_');
    if !bare.contains(char::is_alphanumeric) {
        return None;
    }
    let (path, _) = split_place(bare);
    let is_hidden = !called && piece.starts_with('.') && !piece.starts_with("..");
    if bare.contains("::") {
        Some((bare, TermKind::Identifier))
    } else if is_path(path) {
        Some((bare, TermKind::Path))
    } else if is_hidden && piece[1..].starts_with(char::is_alphabetic) && !bare.contains('.') {
        let end = piece.len() - (piece.len() - 1 - bare.len());
        Some((&piece[..end], TermKind::Path))
    } else if called || bare.contains('_') || is_chain(bare) {
        Some((bare, TermKind::Identifier))
    } else if bare.contains(['-', '.', ':']) || parts_of(bare).len() < 2 {
        Some((bare, TermKind::Word))
    } else {
        Some((bare, TermKind::Identifier))
    }
}

/// The path and the position in it: `a.rs` and `12:5` of `a.rs:12:5`.
fn split_place(piece: &str) -> (&str, &str) {
    let (path, place) = piece.split_once(':').unwrap_or((piece, ""));
    let is_place = place
        .split(':')
        .all(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    if is_place { (path, place) } else { (piece, "") }
}

fn is_path(piece: &str) -> bool {
    let has_ending = || {
        let Some((stem, ending)) = piece.rsplit_once('.') else {
            return false;
        };
        !stem.is_empty() && FILE_ENDINGS.split(' ').any(|known| known == ending)
    };
    !piece.contains(':') && (piece.contains(['/', '\\']) || has_ending())
}

/// Names separated by dots, but not decimal numbers or `e.g`.
fn is_chain(piece: &str) -> bool {
    let mut names = piece.split('.');
    let is_name = |name: &str| {
        let begins = name.chars().next();
        begins.is_some_and(|letter| letter.is_alphabetic() || letter == '_')
    };
    piece.contains('.') && !piece.contains(['-', ':']) && names.all(is_name) && {
        piece.split('.').any(|name| name.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{TermKind, shape_of};

    #[test]
    fn pieces_look_like_what_they_are() {
        use TermKind::{Identifier, Path, Word};
        for (piece, called, expected) in [
            ("config", false, Some(("config", Word))),
            ("config.", false, Some(("config", Word))),
            ("Config", false, Some(("Config", Word))),
            ("HTTP", false, Some(("HTTP", Word))),
            ("URLs", false, Some(("URLs", Word))),
            ("three-way", false, Some(("three-way", Word))),
            ("--dry-run", false, Some(("dry-run", Word))),
            ("1.2.3", false, Some(("1.2.3", Word))),
            ("e.g.", false, Some(("e.g", Word))),
            ("load", true, Some(("load", Identifier))),
            (".map", true, Some(("map", Identifier))),
            ("parse_config", false, Some(("parse_config", Identifier))),
            ("__init__", false, Some(("__init__", Identifier))),
            ("ParseConfig", false, Some(("ParseConfig", Identifier))),
            ("std::io", false, Some(("std::io", Identifier))),
            ("self.config", false, Some(("self.config", Identifier))),
            ("a.rs", false, Some(("a.rs", Path))),
            ("a.rs:12", false, Some(("a.rs:12", Path))),
            ("src/a.rs:12:5:", false, Some(("src/a.rs:12:5", Path))),
            ("src/a/", false, Some(("src/a", Path))),
            ("./src/a", false, Some(("src/a", Path))),
            (".gitignore,", false, Some((".gitignore", Path))),
            ("::", false, None),
            ("...", false, None),
            ("__", false, None),
        ] {
            assert_eq!(shape_of(piece, called), expected, "{piece:?} {called}");
        }
    }
}
