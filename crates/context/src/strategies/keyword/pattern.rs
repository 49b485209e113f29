//! Finds all concepts in one pass over a text.
//!
//! Ripgrep's engine finds the lines that may contain a match, which is fast if there are few matches. Each such line is
//! then searched for all forms at once, including overlapping ones.

use std::io;

use aho_corasick::{AhoCorasick, MatchKind};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Bytes;
use grep_searcher::{Searcher, SearcherBuilder};

use super::concepts::{CONCEPT_LIMIT, Concept, Fits};
use super::line::{defined_part, fit};
use crate::path::TreePath;
use crate::strategy::StrategyError;

/// The most marks of one concept in one file. Further ones add nothing.
const MARKS_OF_CONCEPT: usize = 512;
/// The shortest form to search lines for, unless all are shorter: the same as in the index.
const SHORTEST_ROOT: usize = 3;
/// The weight of a word in the path, relative to one in the file name.
const DIRECTORY_PART: f64 = 0.4;

#[derive(Debug)]
pub(super) struct Pattern {
    lines: RegexMatcher,
    forms: AhoCorasick,
    targets: Vec<Target>,
}

/// The concept behind a form, by the form's index.
#[derive(Debug)]
struct Target {
    concept: usize,
    strength: f64,
    fits: Fits,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) concept: u8,
    /// How well it fits, up to 1.
    pub(super) strength: f32,
    /// The share of a defined name that it covers; 0 if no name is defined here.
    pub(super) defined: f32,
}

/// A set of concepts: one bit each.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Mask(pub(super) u64);

impl Mask {
    pub(super) fn has(self, concept: usize) -> bool {
        self.0 >> concept & 1 == 1
    }

    /// The concepts in the set, in order.
    pub(super) fn concepts(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let concept = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(concept)
        })
    }

    pub(super) fn set(&mut self, concept: usize) {
        self.0 |= 1 << concept;
    }
}

impl Pattern {
    pub(super) fn new(concepts: &[Concept]) -> Result<Self, StrategyError> {
        let mut texts = Vec::new();
        let mut targets = Vec::new();
        for (concept, form) in concepts.iter().enumerate().flat_map(|(place, concept)| {
            let forms = concept.forms.iter();
            forms.map(move |form| (place, form))
        }) {
            texts.push(form.text.as_str());
            targets.push(Target {
                concept,
                strength: form.strength,
                fits: form.fits,
            });
        }
        let forms = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&texts)
            .map_err(|error| StrategyError::Failed(error.to_string()))?;
        let alternatives: Vec<String> = roots(&texts).into_iter().map(escaped).collect();
        let lines = RegexMatcherBuilder::new()
            .case_insensitive(true)
            .unicode(false)
            .line_terminator(Some(b'\n'))
            .build(&alternatives.join("|"))
            .map_err(|error| StrategyError::Failed(error.to_string()))?;
        Ok(Self {
            lines,
            forms,
            targets,
        })
    }

    /// Creates a searcher; each thread has one.
    pub(super) fn searcher() -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .bom_sniffing(false)
            .build()
    }

    /// The matches of the concepts in a text, in the order of its lines.
    pub(super) fn marks(&self, searcher: &mut Searcher, text: &str) -> io::Result<Vec<Mark>> {
        let mut marks = Vec::new();
        let mut counts = [0; CONCEPT_LIMIT];
        let sink = Bytes(|number, line| {
            let found = self.in_line(line);
            for concept in found.mask.concepts() {
                if counts[concept] == MARKS_OF_CONCEPT {
                    continue;
                }
                counts[concept] += 1;
                let (strength, defined) = found.best[concept];
                #[expect(clippy::cast_possible_truncation, reason = "within 0 and 1; concepts are few")]
                marks.push(Mark {
                    line: u32::try_from(number).unwrap_or(u32::MAX),
                    concept: concept as u8,
                    strength: strength as f32,
                    defined: defined as f32,
                });
            }
            Ok(true)
        });
        searcher.search_slice(&self.lines, text.as_bytes(), sink)?;
        Ok(marks)
    }

    /// Whether a text may contain a match. Much faster than finding the matches.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        self.lines.is_match(text).unwrap_or(true)
    }

    pub(super) fn mask(&self, searcher: &mut Searcher, text: &[u8]) -> io::Result<Mask> {
        let mut mask = Mask::default();
        let all = self.targets.iter().fold(Mask::default(), |mut all, target| {
            all.set(target.concept);
            all
        });
        let sink = Bytes(|_, line| {
            mask.0 |= self.in_line(line).mask.0;
            Ok(mask != all)
        });
        searcher.search_slice(&self.lines, text, sink)?;
        Ok(mask)
    }

    pub(super) fn in_path(&self, path: &TreePath) -> (Mask, [f64; CONCEPT_LIMIT]) {
        let mut fits = [0.0; CONCEPT_LIMIT];
        if !self.forms.is_match(path.as_str()) {
            return (Mask::default(), fits);
        }
        let name_at = path.as_str().len() - path.name().len();
        let (directories, name) = path.as_str().split_at(name_at);
        let mut mask = Mask::default();
        for (text, part) in [(name, 1.0), (directories, DIRECTORY_PART)] {
            let found = self.in_line(text.as_bytes());
            mask.0 |= found.mask.0;
            for (fit, (strength, _)) in fits.iter_mut().zip(found.best) {
                *fit = f64::max(*fit, strength * part);
            }
        }
        (mask, fits)
    }

    fn in_line(&self, line: &[u8]) -> InLine {
        let mut found = InLine {
            mask: Mask::default(),
            best: [(0.0, 0.0); CONCEPT_LIMIT],
        };
        for matched in self.forms.find_overlapping_iter(line) {
            let target = &self.targets[matched.pattern()];
            let (start, end) = (matched.start(), matched.end());
            let Some(fit) = fit(line, start, end, target.fits) else {
                continue;
            };
            found.mask.set(target.concept);
            let best = &mut found.best[target.concept];
            best.0 = f64::max(best.0, fit * target.strength);
            // Inside a word, a match is a coincidence.
            if fit > 0.5
                && let Some(part) = defined_part(line, start, end)
            {
                best.1 = f64::max(best.1, part);
            }
        }
        found
    }
}

/// The matches in a line: which concepts, and for each how well it fits and its share of a defined name.
struct InLine {
    mask: Mask,
    best: [(f64, f64); CONCEPT_LIMIT],
}

/// The forms that contain no other form: searching for them finds all others.
fn roots<'a>(texts: &[&'a str]) -> Vec<&'a str> {
    let mut long: Vec<&str> = texts.to_vec();
    if texts.iter().any(|text| text.len() >= SHORTEST_ROOT) {
        long.retain(|text| text.len() >= SHORTEST_ROOT);
    }
    long.sort_unstable_by_key(|text| (text.len(), *text));
    let mut roots: Vec<&str> = Vec::new();
    for text in long {
        if !roots.iter().any(|root| text.contains(root)) {
            roots.push(text);
        }
    }
    roots
}

/// A text as a regular expression over bytes.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("\\x{byte:02x}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::concepts::concepts_of;
    use super::{Pattern, roots};
    use crate::path::TreePath;
    use crate::query::Query;

    fn pattern(query: &str) -> Pattern {
        Pattern::new(&concepts_of(&Query::parse(query))).unwrap()
    }

    #[test]
    fn lines_are_found_by_the_shortest_forms() {
        assert_eq!(
            roots(&["parsing", "pars", "parse_config", "io", "config"]),
            ["pars", "config"]
        );
        assert_eq!(roots(&["io", "x"]), ["x", "io"]);
        assert_eq!(roots(&["io", "ioctl"]), ["ioctl"]);
    }

    #[test]
    fn every_concept_of_a_line_is_marked_once() {
        let text = "nothing\nfn parse_config(config: Config)\r\n\nGRÖSSE größe\n";
        let shown = |query: &str| {
            let marks = pattern(query).marks(&mut Pattern::searcher(), text).unwrap();
            let show = |mark: &super::Mark| {
                format!(
                    "{}:{}:{}:{:.2}",
                    mark.line, mark.concept, mark.strength, mark.defined
                )
            };
            marks.iter().map(show).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("config"), "2:0:1:0.50");
        assert_eq!(shown("ParseConfig"), "2:0:1:1.00 2:1:0.85:0.42 2:2:1:0.50");
        assert_eq!(shown("größe"), "4:0:1:0.00");
        assert_eq!(shown("absent"), "");
        let mask = pattern("config absent größe")
            .mask(&mut Pattern::searcher(), text.as_bytes())
            .unwrap();
        assert_eq!(mask.0, 0b101);
    }

    #[test]
    fn the_name_of_a_file_counts_more_than_its_directory() {
        let path = TreePath::new("config/parse.rs").unwrap();
        let (mask, fits) = pattern("parse config").in_path(&path);
        assert_eq!((mask.0 & 0b11, fits[0], fits[1]), (0b11, 1.0, 0.4));
        assert_eq!(pattern("absent").in_path(&path).0.0, 0);
    }
}
