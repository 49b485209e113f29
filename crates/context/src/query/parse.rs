//! From the text of a question to its terms.

use std::collections::BTreeSet;

use super::parts::parts_of;
use super::shape::{is_inside, shape_of};
use super::types::{Term, TermKind};
use super::words::is_stop_word;

/// The most terms of a question. A question has a handful; the rest of a pasted text adds little.
const TERM_LIMIT: usize = 32;
/// The longest term. A longer quotation is found by its beginning.
const TERM_LIMIT_BYTES: usize = 128;
/// The most words that are joined into names.
const RAW_WORD_LIMIT: usize = 64;
/// Segments of a name that carry no information.
const EMPTY_SEGMENTS: &[&str] = &["crate", "self", "Self", "std", "super", "this"];

/// The terms of a question, the most specific kind first, and within a kind in order.
pub(super) fn terms_of(text: &str) -> Vec<Term> {
    let mut found = ParsedTerms::default();
    let mut rest = text;
    while let Some((before, quoted, after)) = split_quoted(rest) {
        found.plain(before);
        found.quoted(quoted);
        rest = after;
    }
    found.plain(rest);
    found.into_terms()
}

/// Adjacent words of a question, in lower case, including stop words: a name may be made of them (`is empty`
/// of `is_empty`). Names, paths and punctuation separate them.
pub(crate) fn word_runs(text: &str) -> Vec<Vec<String>> {
    let mut runs = vec![Vec::new()];
    for chunk in text.split_whitespace().take(RAW_WORD_LIMIT) {
        let word = chunk.trim_matches(|letter: char| !letter.is_alphanumeric());
        let is_word = word.chars().all(char::is_alphanumeric) && word.len() <= TERM_LIMIT_BYTES;
        let small = parts_of(word);
        match (runs.last_mut(), &small[..]) {
            (Some(run), [small]) if is_word => {
                run.push(small.clone());
            }
            _ => runs.push(Vec::new()),
        }
        if !chunk.ends_with(char::is_alphanumeric) {
            runs.push(Vec::new());
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

#[derive(Default)]
struct ParsedTerms {
    terms: Vec<Term>,
    /// Stop words; used if there are no other words.
    empty: Vec<Term>,
}

impl ParsedTerms {
    /// Adds text outside quotes.
    fn plain(&mut self, text: &str) {
        let mut rest = text;
        while let Some(first) = rest.find(is_inside) {
            rest = &rest[first..];
            let end = rest.find(|letter| !is_inside(letter)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            let called =
                after.starts_with('(') && !after.starts_with("( ") && !piece.ends_with(['.', ':', '-']);
            self.piece(piece, called);
            rest = after;
        }
    }

    fn piece(&mut self, piece: &str, called: bool) {
        let Some((text, kind)) = shape_of(piece, called) else {
            return;
        };
        match kind {
            TermKind::Identifier => {
                self.add(text, kind);
                for segment in text.split("::").flat_map(|segment| segment.split('.')) {
                    if segment.len() > 1 && !EMPTY_SEGMENTS.contains(&segment) {
                        self.add(segment, kind);
                    }
                }
            }
            // A colon between words is punctuation: `error:cannot`.
            TermKind::Word if text.contains(':') => {
                for word in text.split(':') {
                    self.piece(word, false);
                }
            }
            _ => self.add(text, kind),
        }
    }

    /// Adds a quoted text. A single name counts as a name, because many people quote names.
    fn quoted(&mut self, text: &str) {
        let text = text.trim();
        let name = text.trim_end_matches("()");
        match shape_of(name, name.len() < text.len()) {
            None => {}
            Some((bare, kind))
                if bare.len() == name.len() && kind != TermKind::Word && name.chars().all(is_inside) =>
            {
                self.piece(name, name.len() < text.len());
            }
            Some(_) => self.add(text, TermKind::Quoted),
        }
    }

    fn add(&mut self, text: &str, kind: TermKind) {
        let text = &text[..text.floor_char_boundary(TERM_LIMIT_BYTES)];
        let mut named = text;
        if let (TermKind::Path, Some((path, _))) = (kind, text.split_once(':')) {
            named = path;
        }
        let term = Term {
            text: text.to_owned(),
            kind,
            parts: parts_of(named),
        };
        let is_short = text.len() == 1 || text == "e.g" || text == "i.e";
        let is_empty = kind == TermKind::Word && (is_short || is_stop_word(&text.to_lowercase()));
        if is_empty {
            self.empty.push(term);
        } else {
            self.terms.push(term);
        }
    }

    fn into_terms(self) -> Vec<Term> {
        let mut terms = if self.terms.is_empty() {
            self.empty
        } else {
            self.terms
        };
        let mut known = BTreeSet::new();
        terms.sort_by_key(|term| term.kind);
        terms.retain(|term| known.insert(term.text.to_lowercase()));
        terms.truncate(TERM_LIMIT);
        terms
    }
}

/// Splits a text into the parts before, in and after its first quotation. An unclosed quote or an apostrophe
/// doesn't count.
fn split_quoted(text: &str) -> Option<(&str, &str, &str)> {
    for (at, open) in text.char_indices() {
        let close = match open {
            '"' | '`' | '\'' => open,
            '“' | '„' => '”',
            '‘' => '’',
            _ => continue,
        };
        let before = &text[..at];
        if open == '\'' && before.ends_with(char::is_alphanumeric) {
            continue;
        }
        let inner = &text[at + open.len_utf8()..];
        let ends = inner.match_indices(close).map(|(end, _)| end).find(|end| {
            let after = &inner[end + close.len_utf8()..];
            !matches!(close, '\'' | '’') || !after.starts_with(char::is_alphanumeric)
        });
        if let Some(end) = ends.filter(|end| *end > 0) {
            return Some((before, &inner[..end], &inner[end + close.len_utf8()..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::super::{Query, TermKind};
    use super::{RAW_WORD_LIMIT, TERM_LIMIT, TERM_LIMIT_BYTES, word_runs};

    fn check(text: &str, expected: &str) {
        let show = |kind| match kind {
            TermKind::Quoted => "q",
            TermKind::Identifier => "i",
            TermKind::Path => "p",
            TermKind::Word => "w",
        };
        let terms = Query::parse(text).terms;
        let shown: Vec<String> = terms
            .iter()
            .map(|term| format!("{}:{}", show(term.kind), term.text))
            .collect();
        assert_eq!(shown.join(" | "), expected, "{text:?}");
    }

    #[test]
    fn questions_are_taken_apart() {
        for (text, expected) in [
            ("", ""),
            ("?!", ""),
            ("where is the config parsed?", "w:config | w:parsed"),
            ("how does it work", "w:how | w:does | w:it | w:work"),
            ("the function that parses ParseConfig", "i:ParseConfig | w:parses"),
            ("call load() twice, load", "i:load | w:twice"),
            (
                "Slot::transition fails",
                "i:Slot::transition | i:Slot | i:transition | w:fails",
            ),
            (
                "self.config.load(path)",
                "i:self.config.load | i:config | i:load | w:path",
            ),
            ("look at src/a.rs:12 and b.rs", "p:src/a.rs:12 | p:b.rs"),
            ("find \"no such file\" in errors", "q:no such file | w:errors"),
            ("what is `parse_config`", "i:parse_config"),
            ("`load()` or `let x`", "q:let x | i:load"),
            (
                "don't lose the user's 'two words' here",
                "q:two words | w:lose | w:user",
            ),
            ("error:cannot", "w:error | w:cannot"),
            ("three-way merge, Merge, MERGE", "w:three-way | w:merge"),
            ("an open \"quote", "w:open | w:quote"),
            ("e.g. x", "w:e.g | w:x"),
            ("größe der Straße", "w:größe | w:der | w:Straße"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn terms_have_their_parts_and_places() {
        let terms = Query::parse("src/parseConfig.rs:12:5 HTTPServer").terms;
        let parts: Vec<String> = terms.iter().map(|term| term.parts.join(" ")).collect();
        assert_eq!(parts, ["http server", "src parse config rs"]);
        assert_eq!(terms[1].place(), ("src/parseConfig.rs", Some(12)));
        assert_eq!(terms[0].place(), ("HTTPServer", None));
        let runs = word_runs("Is it empty? one two_three four, five");
        let runs: Vec<String> = runs.iter().map(|run| run.join(" ")).collect();
        assert_eq!(runs, ["is it empty", "one", "four", "five"]);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart_within_bounds(text in any::<String>(), code in "[a-zA-Z_:./\\\\()'\"` 0-9äß日-]{0,200}") {
            for text in [text, code] {
                let query = Query::parse(&text);
                assert_eq!(query, Query::parse(&text));
                assert!(query.terms.len() <= TERM_LIMIT);
                for (place, term) in query.terms.iter().enumerate() {
                    assert!(!term.text.is_empty() && term.text.len() <= TERM_LIMIT_BYTES, "{term:?}");
                    assert!(query.terms[place + 1..].iter().all(|other| other.text != term.text));
                    assert!(text.contains(&term.text), "{term:?}");
                    assert!(term.parts.iter().all(|part| !part.is_empty()));
                }
                assert!(word_runs(&text).concat().len() <= RAW_WORD_LIMIT);
            }
        }
    }
}
