//! Answers, of one server or of several.

use serde::Serialize;

use super::{
    actions::CodeAction,
    calls::Call,
    completions::{Completeness, Completions},
    diagnostics::Diagnostic,
    edits::Edit,
    hover::Hover,
    limits::{Listed, QueryLimits},
    reader::{Location, Surroundings},
    signatures::Signatures,
    symbols::Symbol,
};

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Origin {
    pub server: String,
    pub generation: u64,
    /// The version of the document that was asked about.
    pub document_version: Option<i32>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", content = "result", rename_all = "snake_case")]
pub enum Outcome {
    /// To [`Query::Diagnostics`](super::Query::Diagnostics).
    Diagnostics(Listed<Diagnostic>),
    /// To [`Query::Hover`](super::Query::Hover).
    Hover(Option<Hover>),
    /// To [`Query::Completions`](super::Query::Completions).
    Completions(Completions),
    /// To the questions for definitions, declarations, implementations and references.
    Locations(Listed<Location>),
    /// To [`Query::Rename`](super::Query::Rename) and [`Query::Format`](super::Query::Format). Nothing was done yet.
    Edit(Edit),
    /// To [`Query::CodeActions`](super::Query::CodeActions).
    CodeActions(Listed<CodeAction>),
    /// To [`Query::SignatureHelp`](super::Query::SignatureHelp).
    Signatures(Signatures),
    Symbols(Listed<Symbol>),
    /// To [`Query::Calls`](super::Query::Calls).
    Calls(Listed<Call>),
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Answer {
    pub origins: Vec<Origin>,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Answer {
    pub(super) fn new(around: &Surroundings<'_>, outcome: Outcome) -> Self {
        Self {
            origins: vec![Origin {
                server: around.server.to_owned(),
                generation: around.generation,
                document_version: around.document.map(|document| document.version),
            }],
            outcome,
        }
    }
}

/// One answer out of those that several servers gave to the same question, the most important server first. Lists are
/// put together; of edits and signatures, which cannot be, the first that is not empty counts.
pub fn merge_answers(answers: Vec<Answer>, limits: &QueryLimits) -> Option<Answer> {
    answers.into_iter().reduce(|mut merged, next| {
        merged.origins.extend(next.origins);
        merged.outcome = merge(merged.outcome, next.outcome, limits);
        merged
    })
}

fn merge(left: Outcome, right: Outcome, limits: &QueryLimits) -> Outcome {
    match (left, right) {
        (Outcome::Diagnostics(left), Outcome::Diagnostics(right)) => {
            let mut list = joined(left, right);
            // Stable, so that of two servers that say the same the first one is named.
            list.items.sort_by(|left, right| said(left).cmp(&said(right)));
            dedup(&mut list, |left, right| said(left) == said(right));
            Outcome::Diagnostics(cut(list, limits.diagnostics))
        }
        (Outcome::Locations(left), Outcome::Locations(right)) => {
            let mut list = joined(left, right);
            list.items.sort();
            dedup(&mut list, |left, right| left == right);
            Outcome::Locations(cut(list, limits.locations))
        }
        (Outcome::Completions(left), Outcome::Completions(right)) => {
            let completeness = match (left.completeness, right.completeness) {
                (Completeness::Complete, Completeness::Complete) => Completeness::Complete,
                _ => Completeness::Incomplete,
            };
            let mut list = joined(left.list, right.list);
            list.items
                .sort_by(|left, right| (&left.order, &left.label).cmp(&(&right.order, &right.label)));
            dedup(&mut list, |left, right| {
                left.label == right.label && left.insert == right.insert && left.kind == right.kind
            });
            Outcome::Completions(Completions {
                list: cut(list, limits.completions),
                completeness,
            })
        }
        (Outcome::Symbols(left), Outcome::Symbols(right)) => {
            let mut list = joined(left, right);
            list.items.sort_by(|left, right| {
                (&left.place, &left.location, &left.name).cmp(&(&right.place, &right.location, &right.name))
            });
            dedup(&mut list, |left, right| {
                left.location == right.location && left.name == right.name && left.kind == right.kind
            });
            Outcome::Symbols(cut(list, limits.symbols))
        }
        (Outcome::CodeActions(left), Outcome::CodeActions(right)) => {
            Outcome::CodeActions(cut(joined(left, right), limits.code_actions))
        }
        (Outcome::Calls(left), Outcome::Calls(right)) => {
            let mut list = joined(left, right);
            list.items
                .sort_by(|left, right| left.location.cmp(&right.location));
            dedup(&mut list, |left, right| left.location == right.location);
            Outcome::Calls(cut(list, limits.calls))
        }
        (Outcome::Hover(Some(left)), Outcome::Hover(Some(right))) => {
            let text = if left.text == right.text {
                left.text
            } else {
                format!("{}\n\n---\n\n{}", left.text, right.text)
            };
            Outcome::Hover(Some(Hover {
                text,
                range: left.range.or(right.range),
            }))
        }
        (Outcome::Hover(None), right @ Outcome::Hover(_)) => right,
        (Outcome::Edit(left), right @ Outcome::Edit(_)) if left.changes.is_empty() => right,
        (Outcome::Signatures(left), right @ Outcome::Signatures(_)) if left.signatures.is_empty() => right,
        // Answers to another question are not put together with this one.
        (left, _) => left,
    }
}

fn said(diagnostic: &Diagnostic) -> impl Ord + PartialEq + '_ {
    (
        &diagnostic.location,
        diagnostic.severity,
        &diagnostic.message,
        &diagnostic.code,
    )
}

fn joined<T>(mut left: Listed<T>, right: Listed<T>) -> Listed<T> {
    left.items.extend(right.items);
    left.total += right.total;
    left.truncated |= right.truncated;
    left
}

fn dedup<T>(list: &mut Listed<T>, same: impl Fn(&T, &T) -> bool) {
    let before = list.items.len();
    list.items.dedup_by(|next, kept| same(next, kept));
    list.total -= before - list.items.len();
}

fn cut<T>(mut list: Listed<T>, limit: usize) -> Listed<T> {
    list.truncated |= list.items.len() > limit;
    list.items.truncate(limit);
    list
}
