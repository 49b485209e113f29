//! Parses questions of the API.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lsp::{Ask, At, Declarations, Environment, Indentation, Query, WhenIndexing, WhenStarting};
use protocol::{CodeQuery, CodeVerb, ErrorCode, Position, Range, SEARCH_VARIABLES};

use crate::http::Problem;

/// Four spaces, as in most languages; servers that know better ignore it.
const INDENTATION: Indentation = Indentation::Spaces(4);

/// Parses a question, and rejects fields that its verb doesn't take.
pub(super) fn read(verb: CodeVerb, query: CodeQuery) -> Result<Ask, Problem> {
    refuse_strangers(verb, &query)?;
    let path: Arc<Path> = Path::new(&query.path).into();
    let at = || {
        let line = query.line.ok_or_else(|| missing("line"))?;
        let position = Position {
            line,
            column: query.column.unwrap_or(1),
        };
        Ok::<At, Problem>(At {
            path: Arc::clone(&path),
            position,
        })
    };
    let question = match verb {
        CodeVerb::Diagnostics => Query::Diagnostics {
            path: Arc::clone(&path),
        },
        CodeVerb::Hover => Query::Hover(at()?),
        CodeVerb::Completions => Query::Completions(at()?),
        CodeVerb::Definition => Query::Definition(at()?),
        CodeVerb::Declaration => Query::Declaration(at()?),
        CodeVerb::TypeDefinition => Query::TypeDefinition(at()?),
        CodeVerb::Implementation => Query::Implementation(at()?),
        CodeVerb::References => Query::References {
            at: at()?,
            declarations: match query.without_declaration {
                Some(true) => Declarations::LeftOut,
                Some(false) | None => Declarations::Included,
            },
        },
        CodeVerb::Rename => Query::Rename {
            at: at()?,
            new_name: query.new_name.clone().ok_or_else(|| missing("new_name"))?,
        },
        CodeVerb::CodeActions => Query::CodeActions {
            path: Arc::clone(&path),
            range: range(&query, at()?.position),
            kinds: query.kinds.clone(),
        },
        CodeVerb::Format => Query::Format {
            path: Arc::clone(&path),
            range: match query.line {
                Some(_) => Some(range(&query, at()?.position)),
                None => None,
            },
            indentation: INDENTATION,
        },
        CodeVerb::Signature => Query::SignatureHelp(at()?),
        CodeVerb::Symbols => Query::DocumentSymbols {
            path: Arc::clone(&path),
        },
        CodeVerb::WorkspaceSymbols => Query::WorkspaceSymbols {
            name: query.query.clone().unwrap_or_default(),
        },
        CodeVerb::Calls => Query::Calls {
            at: at()?,
            direction: query.direction.unwrap_or_default(),
        },
    };
    Ok(Ask {
        query: question,
        path: PathBuf::from(&query.path),
        workspace: query.workspace.map(PathBuf::from),
        environment: searched(query.environment),
        server: query.server,
        when_starting: match query.no_wait {
            Some(true) => WhenStarting::Refuse,
            Some(false) | None => WhenStarting::Wait,
        },
        when_indexing: match (query.wait_ready, query.no_wait) {
            (Some(true), _) => WhenIndexing::Wait,
            (Some(false), _) | (None, Some(true)) => WhenIndexing::Refuse,
            (None, _) => WhenIndexing::WaitBriefly,
        },
        timeout: query.timeout_ms.map(Duration::from_millis),
    })
}

pub(super) fn searched(given: BTreeMap<String, String>) -> Environment {
    let named = given
        .into_iter()
        .filter(|(name, _)| SEARCH_VARIABLES.contains(&name.as_str()));
    Environment::new(named.map(|(name, value)| (OsString::from(name), OsString::from(value))))
}

/// From a position to the given end, or the position itself.
fn range(query: &CodeQuery, start: Position) -> Range {
    let end = Position {
        line: query.end_line.unwrap_or(start.line),
        column: query.end_column.unwrap_or(start.column),
    };
    Range { start, end }
}

/// Refuses members that the verb doesn't take: they are probably mistakes.
fn refuse_strangers(verb: CodeVerb, query: &CodeQuery) -> Result<(), Problem> {
    let members = [
        ("line", query.line.is_some()),
        ("column", query.column.is_some()),
        ("end_line", query.end_line.is_some()),
        ("end_column", query.end_column.is_some()),
        ("new_name", query.new_name.is_some()),
        ("query", query.query.is_some()),
        ("without_declaration", query.without_declaration.is_some()),
        ("kinds", !query.kinds.is_empty()),
        ("direction", query.direction.is_some()),
    ];
    let is_strange = |(name, given): &(&str, bool)| *given && !verb.takes().contains(name);
    match members.into_iter().find(is_strange) {
        None => Ok(()),
        Some((name, _)) => {
            let detail = format!("In `{name}`: this query does not take it.");
            Err(Problem::new(ErrorCode::InvalidRequest, detail).in_field(name))
        }
    }
}

fn missing(name: &str) -> Problem {
    Problem::new(
        ErrorCode::InvalidRequest,
        format!("In `{name}`: this query needs it."),
    )
    .in_field(name)
}
