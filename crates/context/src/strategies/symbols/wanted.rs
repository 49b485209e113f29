//! The names that a question asks for.

use crate::query::{Query, Term, TermKind, is_stop_word, parts_of, stem_of};

/// The most names of each kind to search for. A question with more is a document, and its first names matter most.
const LIMIT: usize = 24;
/// The shortest name or word to search for.
const LEAST_LETTERS: usize = 2;
/// The endings of other forms of a word, after its stem.
const ENDINGS: [&str; 13] = [
    "", "e", "s", "es", "y", "ed", "er", "or", "ing", "ion", "ation", "ies", "ity",
];

/// The names and words that a question asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::strategies) struct Wanted {
    pub(super) names: Vec<WantedName>,
    pub(super) words: Vec<WantedWord>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::strategies) struct WantedName {
    pub(super) name: String,
    /// The enclosing definition: `Config` in `Config::parse`.
    pub(super) inside: Option<String>,
    pub(super) parts: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::strategies) struct WantedWord {
    /// All its forms: first the one in the question, then others.
    pub(super) forms: Vec<String>,
    pub(super) stem: String,
}

impl Wanted {
    pub(in crate::strategies) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.words.is_empty()
    }
}

/// The names and words that a question asks for.
pub(in crate::strategies) fn wanted_of(query: &Query) -> Wanted {
    let mut wanted = Wanted::default();
    for term in &query.terms {
        match term.kind {
            TermKind::Identifier | TermKind::Quoted if wanted.names.len() < LIMIT => {
                wanted.names.extend(name_of(term));
            }
            TermKind::Word if wanted.words.len() < LIMIT => wanted.words.extend(word_of(term)),
            _ => {}
        }
    }
    wanted
}

fn name_of(term: &Term) -> Option<WantedName> {
    let is_between = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let text = term.text.split(['(', '<', '[', '!']).next()?;
    if text.contains(char::is_whitespace) {
        return None;
    }
    let mut names = text.split(is_between).filter(|name| !name.is_empty()).rev();
    let name = names.next()?.to_owned();
    let parts = parts_of(&name);
    (name.len() >= LEAST_LETTERS && !parts.is_empty()).then(|| WantedName {
        inside: names.next().map(str::to_owned),
        name,
        parts,
    })
}

fn word_of(term: &Term) -> Option<WantedWord> {
    let word = term.text.to_lowercase();
    if word.len() < LEAST_LETTERS || is_stop_word(&word) {
        return None;
    }
    let stem = stem_of(&word);
    let mut forms = vec![word];
    for ending in stem.iter().flat_map(|_| ENDINGS) {
        let form = format!("{}{ending}", stem.as_deref().unwrap_or_default());
        if !forms.contains(&form) {
            forms.push(form);
        }
    }
    if stem.is_none() {
        // A word that is itself a stem has other forms, too.
        let others = ENDINGS
            .iter()
            .skip(1)
            .map(|ending| format!("{}{ending}", forms[0]));
        let others: Vec<String> = others.collect();
        forms.extend(others);
    }
    let stem = stem.unwrap_or_else(|| forms[0].clone());
    // The stem of the word itself may end in another letter.
    let stem = forms
        .iter()
        .fold(stem.as_str(), |stem, form| beginning(stem, form));
    let stem = stem.to_owned();
    Some(WantedWord { forms, stem })
}

fn beginning<'one>(one: &'one str, other: &str) -> &'one str {
    let same = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other);
    &one[..same.map(|(letter, _)| letter.len_utf8()).sum()]
}

#[cfg(test)]
mod tests {
    use super::{WantedName, wanted_of};
    use crate::query::Query;

    #[test]
    fn names_are_taken_with_what_they_are_inside_of() {
        let name = |inside: Option<&str>, name: &str, parts: &[&str]| WantedName {
            name: name.to_owned(),
            inside: inside.map(str::to_owned),
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        };
        for (query, expected) in [
            (
                "ParseConfig",
                vec![name(None, "ParseConfig", &["parse", "config"])],
            ),
            (
                "parse_config()",
                vec![name(None, "parse_config", &["parse", "config"])],
            ),
            ("words only here", vec![]),
            ("\"two words\"", vec![]),
        ] {
            assert_eq!(wanted_of(&Query::parse(query)).names, expected, "{query}");
        }
        let inside = wanted_of(&Query::parse("Config::parse_all")).names;
        assert_eq!(inside[0], name(Some("Config"), "parse_all", &["parse", "all"]));
    }

    #[test]
    fn words_are_looked_for_in_all_their_forms() {
        let wanted = wanted_of(&Query::parse("how is parsing done"));
        let forms: Vec<&str> = wanted.words[0].forms.iter().map(String::as_str).collect();
        assert_eq!(forms[0], "parsing");
        assert!(forms.contains(&"parse") && forms.contains(&"parser") && forms.contains(&"pars"));
        assert_eq!(wanted.words.len(), 1);
        let retry = wanted_of(&Query::parse("retry"));
        assert!(retry.words[0].forms.contains(&"retries".to_owned()));
    }
}
