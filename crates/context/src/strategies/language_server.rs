//! Asks language servers where names are defined, where the definitions in focus are used, and which diagnostics there
//! are.
//!
//! No server is started for a question without a focus: the port asks only those that are already running. Servers read
//! the files on disk. If the question is about a plan, their answers about files that differ there are left out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use kernel::{Deadline, Scope};

use super::not_as_on_disk;
use crate::answer::Depth;
use crate::executor::on_thread;
use crate::lines::Lines;
use crate::outline::{Definition, SymbolKind, outline};
use crate::path::TreePath;
use crate::ports::{CodeLocation, CodeQuestion, LanguageServers, PortError};
use crate::query::{Query, TermKind};
use crate::strategy::{Ask, Hit, Strategy, StrategyError, StrategyName};
use crate::view::View;

/// How many names of a question are looked up.
const NAMES: usize = 4;
/// How many files in focus are examined.
const FILES: usize = 6;
/// For how many definitions in focus the uses are requested.
const DEFINITIONS: usize = 4;
/// The fraction of the time that is reserved for the steps after the servers.
const KEPT_PART: u32 = 8;
/// The weight of each kind of answer.
const WRONG_HERE: f64 = 4.0;
const NAMED_SO: f64 = 3.0;
const NAMED_ALIKE: f64 = 2.0;
const USED_HERE: f64 = 1.0;

#[derive(Debug)]
pub(super) struct LanguageServer {
    servers: Arc<dyn LanguageServers>,
}

type Answered = (CodeQuestion, Result<Vec<CodeLocation>, PortError>);

impl LanguageServer {
    pub(super) fn new(servers: Arc<dyn LanguageServers>) -> Self {
        Self { servers }
    }

    async fn ask(&self, question: CodeQuestion, ask: &Ask, scope: &Scope, deadline: &Deadline) -> Answered {
        // A server that misses its deadline doesn't cost the answers of the others.
        let answer = tokio::select! {
            biased;
            answer = self.servers.ask(&ask.searched.root, &question, scope, deadline) => answer,
            () = deadline.clone().passed() => Err(PortError::Failed("a language server took too long".to_owned())),
        };
        (question, answer)
    }
}

#[async_trait]
impl Strategy for LanguageServer {
    fn name(&self) -> StrategyName {
        StrategyName::new("language-server")
    }

    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Result<Vec<Hit>, StrategyError> {
        let changed = not_as_on_disk(&ask.searched, &scope).await?;
        let questions = {
            let (ask, changed) = (Arc::clone(&ask), Arc::clone(&changed));
            on_thread(scope.clone(), move |scope| questions(&ask, &changed, scope)).await?
        };
        if questions.is_empty() {
            return Err(StrategyError::NotApplicable(
                "the question names nothing that code defines, and no file on disk is in focus".to_owned(),
            ));
        }
        let kept = deadline.remaining().unwrap_or(Duration::ZERO) / KEPT_PART;
        let soon = deadline.sooner(kept);
        let asking = questions
            .into_iter()
            .map(|question| self.ask(question, &ask, &scope, &soon));
        let answers = tokio::select! {
            biased;
            _ = scope.wait() => return Err(StrategyError::Cancelled),
            answers = join_all(asking) => answers,
        };
        let hits = hits(answers)?;
        on_thread(scope, move |scope| there(hits, &ask, &changed, scope)).await
    }
}

/// The questions to ask. It blocks.
fn questions(ask: &Ask, changed: &[TreePath], scope: &Scope) -> Result<Vec<CodeQuestion>, StrategyError> {
    let mut questions: Vec<CodeQuestion> = names(&ask.query)
        .into_iter()
        .map(|name| CodeQuestion::Symbols {
            name,
            near: ask.focus.clone(),
        })
        .collect();
    let is_on_disk = |file: &&TreePath| changed.binary_search(file).is_err();
    let mut places = Vec::new();
    for file in ask.focus.iter().filter(is_on_disk).take(FILES) {
        if scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        questions.push(CodeQuestion::Diagnostics { file: file.clone() });
        places.extend(definitions(ask.searched.view.as_ref(), file, &ask.query, scope));
    }
    // Those that fit the question first; otherwise in the order of the focus.
    places.sort_by_key(|(fits, _)| std::cmp::Reverse(*fits));
    questions.extend(places.into_iter().take(DEFINITIONS).map(|(_, question)| question));
    Ok(questions)
}

/// The identifiers in a question, without duplicates: the last segment of `a::b`.
fn names(query: &Query) -> Vec<String> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
    };
    let mut names: Vec<String> = Vec::new();
    let terms = query
        .terms
        .iter()
        .filter(|term| matches!(term.kind, TermKind::Identifier | TermKind::Quoted));
    for term in terms {
        let text = term.text.trim_end_matches("()");
        let name = text.rsplit([':', '.', '>']).next().unwrap_or(text);
        if is_name(name) && !names.iter().any(|known| known == name) && names.len() < NAMES {
            names.push(name.to_owned());
        }
    }
    names
}

/// The definitions of a file, with how well each fits the question. Without a question, all public ones fit equally.
fn definitions(view: &dyn View, file: &TreePath, query: &Query, scope: &Scope) -> Vec<(usize, CodeQuestion)> {
    let Some((text, outline)) = view
        .read(file)
        .ok()
        .and_then(|text| Some((Arc::clone(&text), outline(file, &text, scope)?)))
    else {
        return Vec::new();
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for definition in &outline.definitions {
        let fits = fits(definition, query);
        let is_of_use = fits > 0 || query.terms.is_empty() && is_for_others(definition);
        if let (true, Some((line, column))) = (is_of_use, place_of(definition, &lines)) {
            let name = definition.name.clone();
            let file = file.clone();
            found.push((
                fits,
                CodeQuestion::References {
                    file,
                    line,
                    column,
                    name,
                },
            ));
        }
    }
    found
}

/// How well a definition fits a question: by its exact name, or by the number of its words.
fn fits(definition: &Definition, query: &Query) -> usize {
    let parts = crate::query::parts_of(&definition.name);
    let of_term = |term: &crate::query::Term| {
        if term.text == definition.name {
            100
        } else {
            term.parts.iter().filter(|part| parts.contains(part)).count()
        }
    };
    query.terms.iter().map(of_term).sum()
}

fn is_for_others(definition: &Definition) -> bool {
    definition.parent.is_none() && !matches!(definition.kind, SymbolKind::Module)
}

/// The line and the column of the name of a definition, from 1, in characters.
fn place_of(definition: &Definition, lines: &[&str]) -> Option<(u32, u32)> {
    (definition.signature.first()..=definition.signature.last()).find_map(|number| {
        let line = lines.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        let byte = whole_word(line, &definition.name)?;
        let column = u32::try_from(line[..byte].chars().count()).ok()?;
        Some((number, column.checked_add(1)?))
    })
}

/// The offset of a word that isn't part of a longer one.
fn whole_word(line: &str, word: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).map(|(place, _)| place).find(|place| {
        let before = line[..*place].chars().next_back();
        let after = line[place + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The hits from all answers, best first. Fails only if no server answered.
fn hits(answers: Vec<Answered>) -> Result<Vec<Hit>, StrategyError> {
    let (mut hits, mut has_answer) = (Vec::new(), false);
    let (mut nobody, mut failed) = (None, None);
    for (question, answer) in answers {
        match answer {
            Ok(places) => {
                has_answer = true;
                hits.extend(places.into_iter().map(|place| hit(&question, place)));
            }
            Err(PortError::Unavailable(why)) => nobody = nobody.or(Some(why)),
            Err(PortError::Failed(why)) => failed = failed.or(Some(why)),
        }
    }
    match (has_answer, failed, nobody) {
        (false, Some(why), _) => return Err(StrategyError::Failed(why)),
        (false, None, why) => return Err(StrategyError::NotApplicable(why.unwrap_or_default())),
        (true, _, _) => {}
    }
    hits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| (&one.path, one.lines, &one.why).cmp(&(&other.path, other.lines, &other.why)))
    });
    let mut seen = BTreeSet::new();
    hits.retain(|hit| seen.insert((hit.path.clone(), hit.lines)));
    Ok(hits)
}

fn hit(question: &CodeQuestion, place: CodeLocation) -> Hit {
    let (score, why) = match question {
        CodeQuestion::Symbols { name, .. } => {
            let is_same = whole_word(&place.what, name).is_some();
            let score = if is_same { NAMED_SO } else { NAMED_ALIKE };
            (score, format!("defines {}", place.what))
        }
        CodeQuestion::Diagnostics { .. } => (WRONG_HERE, format!("diagnostic: {}", place.what)),
        CodeQuestion::References { file, name, .. } => (USED_HERE, format!("uses {name} of {file}")),
    };
    Hit {
        path: place.path,
        lines: Some(place.lines),
        score,
        why,
        depth: Depth::Body,
    }
}

/// Drops hits that don't exist. It blocks.
fn there(hits: Vec<Hit>, ask: &Ask, changed: &[TreePath], scope: &Scope) -> Result<Vec<Hit>, StrategyError> {
    let mut found = Vec::new();
    for mut hit in hits {
        if scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        if found.len() == ask.most_hits {
            break;
        }
        if changed.binary_search(&hit.path).is_ok() {
            continue;
        }
        let Ok(text) = ask.searched.view.read(&hit.path) else {
            continue;
        };
        // A server may be slightly behind the file.
        let count = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        let lines = hit
            .lines
            .map(|lines| Lines::new(lines.first(), lines.last().min(count)));
        if let Some(Some(lines)) = lines {
            hit.lines = Some(lines);
            found.push(hit);
        }
    }
    Ok(found)
}

#[cfg(test)]
#[path = "language_server_tests.rs"]
mod tests;
