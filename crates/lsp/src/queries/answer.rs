//! Answers of one or several servers.

use protocol::{Call, Diagnostic, Location, Symbol};
use serde::Serialize;

use super::{
    actions::CodeAction,
    completions::Completions,
    edits::Edit,
    hover::Hover,
    limits::{Listed, QueryLimits},
    reader::Surroundings,
    signatures::Signatures,
};

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Origin {
    pub server: String,
    pub generation: u64,
    /// The version of the document in the question.
    pub document_version: Option<i32>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", content = "result", rename_all = "snake_case")]
pub enum QueryResult {
    Diagnostics(Listed<Diagnostic>),
    Hover(Option<Hover>),
    Completions(Completions),
    /// Definitions, declarations, implementations or references.
    Locations(Listed<Location>),
    /// A rename or formatting. Nothing has been changed yet.
    Edit(Edit),
    CodeActions(Listed<CodeAction>),
    Signatures(Signatures),
    Symbols(Listed<Symbol>),
    Calls(Listed<Call>),
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Answer {
    pub origins: Vec<Origin>,
    #[serde(flatten)]
    pub result: QueryResult,
}

impl Answer {
    pub(super) fn new(around: &Surroundings<'_>, result: QueryResult) -> Self {
        Self {
            origins: vec![Origin {
                server: around.server.to_owned(),
                generation: around.generation,
                document_version: around.document.map(|document| document.version),
            }],
            result,
        }
    }
}

/// Merges the answers of several servers, the most important server first. Lists are joined; for edits, the first one
/// that isn't empty counts.
pub fn merge_answers(answers: Vec<Answer>, limits: &QueryLimits) -> Option<Answer> {
    answers.into_iter().reduce(|mut merged, next| {
        merged.origins.extend(next.origins);
        merged.result = merge(merged.result, next.result, limits);
        merged
    })
}

fn merge(left: QueryResult, right: QueryResult, limits: &QueryLimits) -> QueryResult {
    match (left, right) {
        (QueryResult::Diagnostics(mut list), QueryResult::Diagnostics(right)) => {
            list.append(right);
            // Stable, so that if two servers report the same, the first one is named.
            list.items.sort_by(|left, right| key(left).cmp(&key(right)));
            let before = list.items.len();
            list.items.dedup_by(|next, kept| key(next) == key(kept));
            list.total -= before - list.items.len();
            list.cut(limits.diagnostics);
            QueryResult::Diagnostics(list)
        }
        (QueryResult::CodeActions(mut list), QueryResult::CodeActions(right)) => {
            list.append(right);
            list.cut(limits.code_actions);
            QueryResult::CodeActions(list)
        }
        (QueryResult::Edit(left), right @ QueryResult::Edit(_)) if left.files.is_empty() => right,
        // All other questions go to one server.
        (left, _) => left,
    }
}

/// Files of the workspace sort first, then others, then virtual ones that only a server knows.
fn key(diagnostic: &Diagnostic) -> impl Ord + '_ {
    let path = &diagnostic.path;
    (
        path.contains("://"),
        path.starts_with('/'),
        path,
        diagnostic.range,
        diagnostic.severity,
        &diagnostic.message,
        &diagnostic.code,
    )
}
