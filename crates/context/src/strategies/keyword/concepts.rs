//! The concepts to search for, and their forms.

use crate::query::{Query, Term, TermKind, is_stop_word, stem_of, word_runs};

/// The most concepts of a question: one bit of a mask each.
pub(super) const CONCEPT_LIMIT: usize = 64;
/// The most words that may form one name (`parse config file` for `parse_config_file`).
const NAME_WORDS: usize = 5;
/// How many words of a longer question are joined into a name.
const JOINED_WORDS: usize = 2;

/// The weight of a concept, by its kind.
mod weight {
    pub(super) const QUOTED: f64 = 2.0;
    pub(super) const IDENTIFIER: f64 = 2.0;
    pub(super) const PATH: f64 = 1.0;
    pub(super) const WORD: f64 = 1.0;
    /// A word of a name: it helps where the name itself is missing.
    pub(super) const PART: f64 = 0.35;
    /// All words of a short question as one name.
    pub(super) const NAME: f64 = 2.0;
    /// Some words of a question as one name.
    pub(super) const JOINED: f64 = 0.8;
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Concept {
    pub(super) name: String,
    /// Whether it is a reason to read a file.
    pub(super) role: Role,
    /// Its weight, before its rarity is known.
    pub(super) weight: f64,
    pub(super) forms: Vec<Form>,
}

impl Concept {
    /// Whether one of its forms is too short for a trigram.
    pub(super) fn has_short_form(&self) -> bool {
        self.forms.iter().any(|form| form.text.len() < 3)
    }
}

/// Whether a concept is a reason to read a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    Main,
    /// A word of a requested name. Such words are in every file, and are a reason only where there is no better one.
    Part,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    /// ASCII letters are in lower case. Never empty, and without a line end.
    pub(super) text: String,
    /// Its share of the concept, up to 1.
    pub(super) strength: f64,
    pub(super) fits: Fits,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fits {
    /// Anywhere; it scores better as a whole word.
    Anywhere,
    Beginning,
    /// Only as a whole word, because it is too short to mean anything inside another.
    Word,
}

/// The concepts of a question, the most specific first, and words of names last.
pub(super) fn concepts_of(query: &Query) -> Vec<Concept> {
    let mut concepts = Vec::new();
    for term in &query.terms {
        add(&mut concepts, of_term(term));
    }
    let runs = word_runs(&query.text);
    if let [words] = &runs[..]
        && query.terms.iter().all(|term| term.kind == TermKind::Word)
        && (2..=NAME_WORDS).contains(&words.len())
    {
        add(
            &mut concepts,
            named(&words.join("_"), weight::NAME, names_of(words)),
        );
    }
    for words in &runs {
        for concept in joined(words) {
            add(&mut concepts, concept);
        }
    }
    for term in &query.terms {
        if term.kind != TermKind::Word || term.parts.len() > 1 {
            for part in term
                .parts
                .iter()
                .filter(|part| part.len() > 1 && !is_stop_word(part))
            {
                let part = Concept {
                    role: Role::Part,
                    ..word(part, weight::PART)
                };
                add(&mut concepts, part);
            }
        }
    }
    concepts
}

/// Adds a concept, unless it already exists.
fn add(concepts: &mut Vec<Concept>, concept: Concept) {
    let Some(first) = concept.forms.first() else {
        return;
    };
    let known = concepts
        .iter()
        .any(|known| known.forms.iter().any(|form| form.text == first.text));
    if !known && concepts.len() < CONCEPT_LIMIT {
        concepts.push(concept);
    }
}

fn of_term(term: &Term) -> Concept {
    let written = term.text.to_ascii_lowercase();
    match term.kind {
        TermKind::Quoted => {
            // Lines are searched one by one.
            let longest = written.lines().map(str::trim).max_by_key(|line| line.len());
            named(&term.text, weight::QUOTED, longest.into_iter().map(str::to_owned))
        }
        TermKind::Identifier => {
            let mut forms = vec![written];
            if term.parts.len() > 1 && !term.text.contains([':', '.']) {
                forms.extend(names_of(&term.parts));
            }
            named(&term.text, weight::IDENTIFIER, forms)
        }
        TermKind::Path => {
            let (path, _) = term.place();
            let name = path
                .rsplit(['/', '\\'])
                .next()
                .unwrap_or(path)
                .to_ascii_lowercase();
            named(path, weight::PATH, [name])
        }
        TermKind::Word if term.parts.len() > 1 => {
            let names = names_of(&term.parts);
            named(&term.text, weight::WORD, [written].into_iter().chain(names))
        }
        TermKind::Word => word(&term.text, weight::WORD),
    }
}

fn names_of(words: &[String]) -> [String; 2] {
    [words.join("_"), words.concat()]
}

/// Some of the adjacent words in the question, as names.
fn joined(words: &[String]) -> Vec<Concept> {
    let mut found = Vec::new();
    let most = if words.len() <= NAME_WORDS {
        words.len()
    } else {
        JOINED_WORDS
    };
    for count in (2..=most).rev() {
        for some in words.windows(count) {
            // Stop words alone don't make a name.
            if !some.iter().all(|word| is_stop_word(word)) {
                found.push(named(&some.join("_"), weight::JOINED, names_of(some)));
            }
        }
    }
    found
}

fn named(name: &str, weight: f64, forms: impl IntoIterator<Item = String>) -> Concept {
    let mut found: Vec<Form> = Vec::new();
    for text in forms {
        if !text.is_empty() && found.iter().all(|known| known.text != text) {
            found.push(form(text, 1.0));
        }
    }
    Concept {
        name: name.to_owned(),
        role: Role::Main,
        weight,
        forms: found,
    }
}

fn word(text: &str, weight: f64) -> Concept {
    let small = text.to_lowercase();
    let stem = stem_of(&small);
    let mut concept = named(text, weight, [text.to_ascii_lowercase(), small]);
    concept.forms.extend(stem.map(|stem| Form {
        text: stem,
        strength: 0.7,
        fits: Fits::Beginning,
    }));
    concept
}

fn form(text: String, strength: f64) -> Form {
    let fits = if text.len() < 3 {
        Fits::Word
    } else {
        Fits::Anywhere
    };
    Form { text, strength, fits }
}

#[cfg(test)]
mod tests {
    use super::{CONCEPT_LIMIT, concepts_of};
    use crate::query::Query;

    fn shown(text: &str) -> String {
        let concepts = concepts_of(&Query::parse(text));
        let show = |concept: &super::Concept| {
            let forms: Vec<&str> = concept.forms.iter().map(|form| form.text.as_str()).collect();
            format!("{}*{}", forms.join("|"), concept.weight)
        };
        concepts.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn questions_become_concepts_with_their_forms() {
        for (text, expected) in [
            ("", ""),
            ("parsing", "parsing|pars*1"),
            ("io", "io*1"),
            ("is empty", "empty|empt*1 is_empty|isempty*2"),
            (
                "ParseConfig",
                "parseconfig|parse_config*2 parse|pars*0.35 config*0.35",
            ),
            ("look at src/a.rs:12", "a.rs*1 src*0.35 rs*0.35"),
            ("\"no such file\"", "no such file*2"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
        let many: String = (0..100).map(|number| format!("wordOf{number} ")).collect();
        assert_eq!(concepts_of(&Query::parse(&many)).len(), CONCEPT_LIMIT);
    }
}
