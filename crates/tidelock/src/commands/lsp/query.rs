//! One verb per query: what is sent, and how the answer reads.

use std::path::Path;
use std::time::Duration;

use protocol::{CodeQuery, RawAnswer, RawRequest};
use serde_json::Value;

use super::servers::{find, path as server_path};
use super::{PATIENCE, diagnostics, places, words};
use crate::cli::{
    CallsArguments, CodeActionsArguments, Declaration, FileArguments, LspCommand, Place, PlaceArguments,
    QueryOptions, ReferencesArguments, RenameArguments, RequestArguments, Waiting, WorkspaceSymbolsArguments,
};
use crate::client::{Client, ClientError, whole_ms};
use crate::environment::search_variables;
use crate::error::{Exit, Failure};
use crate::output::{Palette, Report};
use crate::paths;
use crate::printable::printable;
use crate::start::Repeat;

/// How much longer than the query itself its answer may take: the daemon decides when the time is over, and says so.
const GRACE: Duration = Duration::from_secs(15);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Diagnostics,
    Hover,
    Completions,
    Definition,
    Declaration,
    TypeDefinition,
    Implementation,
    References,
    Rename,
    CodeActions,
    Format,
    Signature,
    Symbols,
    WorkspaceSymbols,
    Calls,
}

impl Verb {
    fn path(self) -> &'static str {
        match self {
            Self::Diagnostics => "/v1/lsp/diagnostics",
            Self::Hover => "/v1/lsp/hover",
            Self::Completions => "/v1/lsp/completions",
            Self::Definition => "/v1/lsp/definition",
            Self::Declaration => "/v1/lsp/declaration",
            Self::TypeDefinition => "/v1/lsp/type-definition",
            Self::Implementation => "/v1/lsp/implementation",
            Self::References => "/v1/lsp/references",
            Self::Rename => "/v1/lsp/rename",
            Self::CodeActions => "/v1/lsp/code-actions",
            Self::Format => "/v1/lsp/format",
            Self::Signature => "/v1/lsp/signature",
            Self::Symbols => "/v1/lsp/symbols",
            Self::WorkspaceSymbols => "/v1/lsp/workspace-symbols",
            Self::Calls => "/v1/lsp/calls",
        }
    }
}

pub(super) fn run(command: &LspCommand, client: &Client) -> Result<Report, Failure> {
    // What is wrong with the arguments is said before a daemon is started for them.
    let (verb, query, timeout) = build(command)?;
    let limit = timeout.map_or(PATIENCE, |timeout| timeout.saturating_add(GRACE));
    let answer = client.ask(Repeat::Harmless, |client| {
        client.post_within(verb.path(), Some(&query), limit)
    })?;
    let shown = paths::from(&paths::current_directory()?, &answer);
    let (text, notes) = describe(verb, client.palette(), &shown)?;
    Ok(Report::success(answer, text).with_notes(notes))
}

/// A request of the protocol itself. Nobody knows whether it changes something, so it is never sent twice.
pub(super) fn raw(arguments: &RequestArguments, client: &Client) -> Result<Report, Failure> {
    let server = find(&arguments.server.server, client)?;
    let request = RawRequest {
        method: arguments.method.clone(),
        params: arguments.params.clone().unwrap_or_default(),
        timeout_ms: Some(whole_ms(arguments.timeout)),
    };
    let limit = arguments.timeout.saturating_add(GRACE);
    let answer = client.ask(Repeat::Harmful, |client| {
        client.post_within(&server_path(&server.id, "/request"), Some(&request), limit)
    })?;
    let shown: RawAnswer = printable(&answer)?;
    let mut text = serde_json::to_string_pretty(&shown.result)
        .map_err(|source| ClientError::NotUnderstood { source })?;
    text.push('\n');
    Ok(Report::success(answer, text))
}

fn build(command: &LspCommand) -> Result<(Verb, CodeQuery, Option<Duration>), Failure> {
    let (verb, query, options) = match command {
        LspCommand::Diagnostics(arguments) => about_file(Verb::Diagnostics, arguments)?,
        LspCommand::Format(arguments) => about_file(Verb::Format, arguments)?,
        LspCommand::Symbols(arguments) => about_file(Verb::Symbols, arguments)?,
        LspCommand::Hover(arguments) => about_place(Verb::Hover, arguments)?,
        LspCommand::Completions(arguments) => about_place(Verb::Completions, arguments)?,
        LspCommand::Definition(arguments) => about_place(Verb::Definition, arguments)?,
        LspCommand::Declaration(arguments) => about_place(Verb::Declaration, arguments)?,
        LspCommand::TypeDefinition(arguments) => about_place(Verb::TypeDefinition, arguments)?,
        LspCommand::Implementation(arguments) => about_place(Verb::Implementation, arguments)?,
        LspCommand::Signature(arguments) => about_place(Verb::Signature, arguments)?,
        LspCommand::References(arguments) => references(arguments)?,
        LspCommand::Rename(arguments) => rename(arguments)?,
        LspCommand::CodeActions(arguments) => code_actions(arguments)?,
        LspCommand::WorkspaceSymbols(arguments) => workspace_symbols(arguments)?,
        LspCommand::Calls(arguments) => calls(arguments)?,
        LspCommand::List
        | LspCommand::Start(_)
        | LspCommand::Stop(_)
        | LspCommand::Restart(_)
        | LspCommand::Health(_)
        | LspCommand::Log(_)
        | LspCommand::Config(_)
        | LspCommand::Trust(_)
        | LspCommand::Request(_) => {
            return Err(Failure::new(Exit::Usage, "usage", "this is not a query"));
        }
    };
    Ok((verb, with_options(query, options)?, options.timeout))
}

type Built<'a> = Result<(Verb, CodeQuery, &'a QueryOptions), Failure>;

fn about_file(verb: Verb, arguments: &FileArguments) -> Built<'_> {
    let query = CodeQuery {
        path: paths::file(&arguments.file)?,
        ..CodeQuery::default()
    };
    Ok((verb, query, &arguments.options))
}

fn about_place(verb: Verb, arguments: &PlaceArguments) -> Built<'_> {
    Ok((verb, at(&arguments.place)?, &arguments.options))
}

fn references(arguments: &ReferencesArguments) -> Built<'_> {
    let without = match arguments.declaration() {
        Declaration::Included => None,
        Declaration::LeftOut => Some(true),
    };
    let query = CodeQuery {
        without_declaration: without,
        ..at(&arguments.at.place)?
    };
    Ok((Verb::References, query, &arguments.at.options))
}

fn rename(arguments: &RenameArguments) -> Built<'_> {
    let query = CodeQuery {
        new_name: Some(arguments.new_name.clone()),
        ..at(&arguments.at.place)?
    };
    Ok((Verb::Rename, query, &arguments.at.options))
}

fn code_actions(arguments: &CodeActionsArguments) -> Built<'_> {
    let query = CodeQuery {
        end_line: arguments.span.end.map(|(line, _)| line),
        end_column: arguments.span.end.map(|(_, column)| column),
        kinds: arguments.kinds.clone(),
        ..at(&arguments.span.start)?
    };
    Ok((Verb::CodeActions, query, &arguments.options))
}

fn workspace_symbols(arguments: &WorkspaceSymbolsArguments) -> Built<'_> {
    let directory = arguments.directory.as_deref().unwrap_or(Path::new("."));
    let query = CodeQuery {
        path: paths::directory(directory)?,
        query: Some(arguments.query.clone()),
        ..CodeQuery::default()
    };
    Ok((Verb::WorkspaceSymbols, query, &arguments.options))
}

fn calls(arguments: &CallsArguments) -> Built<'_> {
    let query = CodeQuery {
        direction: Some(arguments.direction()),
        ..at(&arguments.at.place)?
    };
    Ok((Verb::Calls, query, &arguments.at.options))
}

fn at(place: &Place) -> Result<CodeQuery, Failure> {
    Ok(CodeQuery {
        path: paths::file(&place.file)?,
        line: Some(place.line),
        column: Some(place.column),
        ..CodeQuery::default()
    })
}

fn with_options(query: CodeQuery, options: &QueryOptions) -> Result<CodeQuery, Failure> {
    let waiting = options.waiting();
    Ok(CodeQuery {
        environment: search_variables(),
        wait_ready: (waiting == Waiting::UntilReady).then_some(true),
        no_wait: (waiting == Waiting::Not).then_some(true),
        timeout_ms: options.timeout.map(whole_ms),
        server: options.server.clone(),
        workspace: options.workspace.as_deref().map(paths::directory).transpose()?,
        ..query
    })
}

fn describe(verb: Verb, palette: Palette, answer: &Value) -> Result<(String, Vec<String>), ClientError> {
    Ok(match verb {
        Verb::Diagnostics => diagnostics::describe(palette, &printable(answer)?),
        Verb::Hover => words::hover(&printable(answer)?),
        Verb::Completions => words::completions(palette, &printable(answer)?),
        Verb::Definition => places::locations(&printable(answer)?, "no definition"),
        Verb::Declaration => places::locations(&printable(answer)?, "no declaration"),
        Verb::TypeDefinition => places::locations(&printable(answer)?, "no type definition"),
        Verb::Implementation => places::locations(&printable(answer)?, "no implementation"),
        Verb::References => places::locations(&printable(answer)?, "no references"),
        Verb::Rename | Verb::Format => words::edit(&printable(answer)?),
        Verb::CodeActions => words::actions(&printable(answer)?),
        Verb::Signature => words::signature(&printable(answer)?),
        Verb::Symbols => places::outline(&printable(answer)?),
        Verb::WorkspaceSymbols => places::symbols(&printable(answer)?),
        Verb::Calls => places::calls(&printable(answer)?),
    })
}
