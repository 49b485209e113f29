//! The steps of the strategy, in order.

use kernel::{Deadline, Scope};

use super::candidates::{Candidates, WantedPath, candidates};
use super::concepts::{Concept, Role, concepts_of};
use super::pattern::{Mask, Pattern};
use super::place::{Wishes, factor};
use super::postings::Postings;
use super::reading::{ReadFile, Time, read_all};
use super::score::{FileScore, rarity, score};
use super::walk::walk;
use crate::answer::Depth;
use crate::lines::Lines;
use crate::path::TreePath;
use crate::query::{Query, TermKind};
use crate::strategy::{Ask, Hit, StrategyError};

/// The bonus of a file that the question names.
const NAMED_BONUS: f64 = 40.0;
/// How many lines around a named one are shown.
const AROUND_LINES: u32 = 10;
/// The factor for each further location in the same file.
const FURTHER_PLACE: f64 = 0.75;
/// The most concepts that are named in a reason.
const NAMED_CONCEPTS: usize = 4;

/// Searches, with the index if there is one. It blocks.
pub(in crate::strategies) fn look(
    ask: &Ask,
    index: Option<&impl Postings>,
    scope: &Scope,
    deadline: Deadline,
) -> Result<Vec<Hit>, StrategyError> {
    let concepts = concepts_of(&ask.query);
    if concepts.is_empty() {
        return Err(StrategyError::NotApplicable(
            "there is no word to look for".to_owned(),
        ));
    }
    let search = Search {
        ask,
        wanted: wanted_paths(&ask.query),
        pattern: Pattern::new(&concepts)?,
        time: Time::new(scope, &deadline),
    };
    let main = concepts
        .iter()
        .take_while(|concept| concept.role == Role::Main)
        .count();
    let mut looked = search.by(index, &concepts[..main])?;
    if main < concepts.len() && looked.read.is_empty() {
        looked = search.by(index, &concepts)?;
    }
    if index.is_some() && looked.read.is_empty() && concepts.iter().any(Concept::has_short_form) {
        // For such short terms, an index only knows where they are names.
        looked = search.by(index.filter(|_| false), &concepts)?;
    }
    let Looked { found, read } = looked;
    let ranking = Ranking {
        worth: worth(&concepts, &found, &read),
        concepts,
        pattern: search.pattern,
        wanted: search.wanted,
        wishes: Wishes::of(&ask.query),
    };
    let mut hits: Vec<Hit> = read.iter().flat_map(|file| ranking.hits(file)).collect();
    let first = |hit: &Hit| hit.lines.map(Lines::first);
    hits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score
            .then_with(|| one.path.cmp(&other.path))
            .then_with(|| first(one).cmp(&first(other)))
    });
    hits.truncate(ask.most_hits);
    Ok(hits)
}

struct Search<'a> {
    ask: &'a Ask,
    wanted: Vec<WantedPath>,
    /// All concepts, including those that aren't a reason to read a file.
    pattern: Pattern,
    time: Time<'a>,
}

struct Looked {
    found: Candidates,
    read: Vec<ReadFile>,
}

impl Search<'_> {
    /// Reads the files that match some of the concepts, which are the first ones of the pattern.
    fn by(&self, index: Option<&impl Postings>, concepts: &[Concept]) -> Result<Looked, StrategyError> {
        let searched = &self.ask.searched;
        let time = self.time;
        let reasons = Pattern::new(concepts)?;
        let found = match index {
            Some(index) => candidates(index, concepts, &reasons, &self.wanted, &searched.beside_index),
            None => walk(&*searched.view, concepts, &reasons, &self.wanted, time),
        };
        let found = found.map_err(|error| StrategyError::Failed(error.to_string()))?;
        let is_named = |path: &TreePath| {
            reasons.in_path(path).0 != Mask::default() || self.wanted.iter().any(|wanted| wanted.fits(path))
        };
        let may_matter = |path: &TreePath, bytes: &[u8]| reasons.may_be_in(bytes) || is_named(path);
        let mut read = read_all(&*searched.view, &self.pattern, &found.files, &may_matter, time);
        if time.scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        let is_reason = |file: &ReadFile| {
            file.marks
                .iter()
                .any(|mark| usize::from(mark.concept) < concepts.len())
                || is_named(&file.path)
        };
        // The index only knows where something may be. A file without a match would only have words of names.
        read.retain(is_reason);
        Ok(Looked { found, read })
    }
}

fn wanted_paths(query: &Query) -> Vec<WantedPath> {
    let paths = query.terms.iter().filter(|term| term.kind == TermKind::Path);
    let wanted = paths.map(|term| {
        let (path, line) = term.place();
        WantedPath {
            path: path.replace('\\', "/").to_ascii_lowercase(),
            line,
        }
    });
    wanted.collect()
}

/// The weight of each concept: the rarer, the higher.
fn worth(concepts: &[Concept], found: &Candidates, read: &[ReadFile]) -> Vec<f64> {
    let mut counts = vec![0; concepts.len()];
    for file in read {
        let mut last = vec![false; concepts.len()];
        for mark in &file.marks {
            let concept = usize::from(mark.concept);
            if !std::mem::replace(&mut last[concept], true) {
                counts[concept] += 1;
            }
        }
    }
    let rarity_of = |place: usize| match found.known.get(place) {
        Some(known) => rarity(found.of_files, known.unwrap_or(counts[place])),
        // It wasn't a reason to read a file, so its rarity comes only from the files that were read.
        None => rarity(read.len(), counts[place]),
    };
    let worth = concepts.iter().enumerate();
    worth
        .map(|(place, concept)| concept.weight * rarity_of(place))
        .collect()
}

struct Ranking {
    concepts: Vec<Concept>,
    worth: Vec<f64>,
    pattern: Pattern,
    wanted: Vec<WantedPath>,
    wishes: Wishes,
}

impl Ranking {
    fn hits(&self, file: &ReadFile) -> Vec<Hit> {
        let (in_path, fits) = self.pattern.in_path(&file.path);
        let found = score(file, &self.worth, &fits);
        let total = found.score * factor(&file.path, self.wishes);
        if let Some(wanted) = self.wanted.iter().find(|wanted| wanted.fits(&file.path)) {
            return vec![named(file, wanted, total)];
        }
        let hit = |lines, score, depth| Hit {
            path: file.path.clone(),
            lines,
            score,
            why: self.why(&found, in_path.0 != 0),
            depth,
        };
        if found.places.is_empty() {
            // Only the path matches, so its outline is enough.
            let speaks = total > 0.0;
            return speaks
                .then(|| hit(None, total, Depth::Signature))
                .into_iter()
                .collect();
        }
        let mut rest = 1.0;
        let mut hits = Vec::new();
        for (lines, part) in &found.places {
            hits.push(hit(Some(*lines), total * part * rest, Depth::Body));
            rest *= FURTHER_PLACE;
        }
        hits
    }

    fn why(&self, found: &FileScore, in_path: bool) -> String {
        let names: Vec<&str> = (0..self.concepts.len())
            .filter(|concept| found.mask.has(*concept))
            .map(|concept| self.concepts[concept].name.as_str())
            .collect();
        let mut why = match found.defines {
            Some(concept) => format!("defines {}", self.concepts[concept].name),
            None if names.is_empty() => "its path".to_owned(),
            None => names[..names.len().min(NAMED_CONCEPTS)].join(", "),
        };
        if names.len() > 1 && found.defines.is_some() {
            why.push_str(&format!(", {} of {} words", names.len(), self.concepts.len()));
        }
        if in_path && !names.is_empty() {
            why.push_str(", and its path");
        }
        why
    }
}

fn named(file: &ReadFile, wanted: &WantedPath, score: f64) -> Hit {
    let lines = wanted.line.filter(|line| *line <= file.lines).and_then(|line| {
        let first = line.saturating_sub(AROUND_LINES).max(1);
        Lines::new(first, line.saturating_add(AROUND_LINES).min(file.lines))
    });
    Hit {
        path: file.path.clone(),
        lines,
        score: score + NAMED_BONUS,
        why: "it is named in the question".to_owned(),
        depth: Depth::Body,
    }
}
