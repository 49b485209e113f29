//! One verb per query: what it sends, and how to show the answer.

use std::path::Path;
use std::time::Duration;

use protocol::{CodeQuery, RawAnswer, RawRequest};
use serde_json::Value;

use super::servers::{find, path as server_path};
use super::{PATIENCE, answers, diagnostics, locations};
use crate::cli::{
    Declaration, FileArguments, LspCommand, QueryOptions, RequestArguments, SourcePosition, Waiting,
};
use crate::client::{Client, ClientError, whole_ms};
use crate::environment::search_variables;
use crate::error::{Exit, Failure};
use crate::output::{Palette, Report};
use crate::paths;
use crate::printable::{Answer, printable};
use crate::start::Repeat;

/// How much longer than the query's own timeout the answer may take: the daemon decides when time is up, and reports
/// that.
const GRACE: Duration = Duration::from_secs(15);

/// Formats an answer: the text, and what goes to standard error.
type Describe = fn(Palette, &Value) -> Result<(String, Vec<String>), ClientError>;

/// One query: its route, its parameters, and how to show the answer.
struct Query<'a> {
    name: &'static str,
    body: CodeQuery,
    options: &'a QueryOptions,
    describe: Describe,
}

pub(super) fn run(command: &LspCommand, client: &Client) -> Result<Report, Failure> {
    // Report invalid arguments before starting a daemon.
    let Query {
        name,
        body,
        options,
        describe,
    } = query(command)?;
    let body = with_options(body, options)?;
    let limit = options
        .timeout
        .map_or(PATIENCE, |timeout| timeout.saturating_add(GRACE));
    let answer = client.ask(Repeat::Harmless, |client| {
        client.post_within(&format!("/v1/lsp/{name}"), Some(&body), limit)
    })?;
    let shown = paths::from(&paths::current_directory()?, &answer);
    let (text, notes) = describe(client.palette(), &shown)?;
    Ok(Report::success(answer, text).with_notes(notes))
}

/// A raw protocol request. It may change something, so it is never sent twice.
pub(super) fn raw(arguments: &RequestArguments, client: &Client) -> Result<Report, Failure> {
    let server = find(&arguments.server.server, client)?;
    let request = RawRequest {
        method: arguments.method.clone(),
        params: arguments.params.clone().unwrap_or_default(),
        timeout_ms: Some(whole_ms(arguments.timeout)),
    };
    let limit = arguments.timeout.saturating_add(GRACE);
    let shown: Answer<RawAnswer> = client.ask(Repeat::Harmful, |client| {
        client.post_within(&server_path(&server.id, "/request"), Some(&request), limit)
    })?;
    let mut text = serde_json::to_string_pretty(&shown.result)
        .map_err(|source| ClientError::NotUnderstood { source })?;
    text.push('\n');
    Ok(Report::shown(text, shown))
}

fn query(command: &LspCommand) -> Result<Query<'_>, Failure> {
    use LspCommand as C;
    let (name, body, options, describe): (_, _, _, Describe) = match command {
        C::Diagnostics(about) => (
            "diagnostics",
            of_file(about)?,
            &about.options,
            |palette, answer| Ok(diagnostics::describe(palette, &printable(answer)?)),
        ),
        C::Format(about) => ("format", of_file(about)?, &about.options, edit),
        C::Symbols(about) => ("symbols", of_file(about)?, &about.options, |_, answer| {
            Ok(locations::outline(&printable(answer)?))
        }),
        C::Hover(about) => ("hover", at(&about.place)?, &about.options, |_, answer| {
            Ok(answers::hover(&printable(answer)?))
        }),
        C::Completions(about) => (
            "completions",
            at(&about.place)?,
            &about.options,
            |palette, answer| Ok(answers::completions(palette, &printable(answer)?)),
        ),
        C::Signature(about) => ("signature", at(&about.place)?, &about.options, |_, answer| {
            Ok(answers::signature(&printable(answer)?))
        }),
        C::Definition(about) => ("definition", at(&about.place)?, &about.options, |_, answer| {
            Ok(locations::locations(&printable(answer)?, "no definition"))
        }),
        C::Declaration(about) => ("declaration", at(&about.place)?, &about.options, |_, answer| {
            Ok(locations::locations(&printable(answer)?, "no declaration"))
        }),
        C::TypeDefinition(about) => (
            "type-definition",
            at(&about.place)?,
            &about.options,
            |_, answer| Ok(locations::locations(&printable(answer)?, "no type definition")),
        ),
        C::Implementation(about) => (
            "implementation",
            at(&about.place)?,
            &about.options,
            |_, answer| Ok(locations::locations(&printable(answer)?, "no implementation")),
        ),
        C::References(about) => {
            let body = CodeQuery {
                without_declaration: (about.declaration() == Declaration::LeftOut).then_some(true),
                ..at(&about.at.place)?
            };
            ("references", body, &about.at.options, |_, answer| {
                Ok(locations::locations(&printable(answer)?, "no references"))
            })
        }
        C::Rename(about) => {
            let body = CodeQuery {
                new_name: Some(about.new_name.clone()),
                ..at(&about.at.place)?
            };
            ("rename", body, &about.at.options, edit)
        }
        C::CodeActions(about) => {
            let body = CodeQuery {
                end_line: about.span.end.map(|(line, _)| line),
                end_column: about.span.end.map(|(_, column)| column),
                kinds: about.kinds.clone(),
                ..at(&about.span.start)?
            };
            ("code-actions", body, &about.options, |_, answer| {
                Ok(answers::actions(&printable(answer)?))
            })
        }
        C::WorkspaceSymbols(about) => {
            let directory = about.directory.as_deref().unwrap_or(Path::new("."));
            let body = CodeQuery {
                path: paths::directory(directory)?,
                query: Some(about.query.clone()),
                ..CodeQuery::default()
            };
            ("workspace-symbols", body, &about.options, |_, answer| {
                Ok(locations::symbols(&printable(answer)?))
            })
        }
        C::Calls(about) => {
            let body = CodeQuery {
                direction: Some(about.direction()),
                ..at(&about.at.place)?
            };
            ("calls", body, &about.at.options, |_, answer| {
                Ok(locations::calls(&printable(answer)?))
            })
        }
        C::List
        | C::Start(_)
        | C::Stop(_)
        | C::Restart(_)
        | C::Health(_)
        | C::Log(_)
        | C::Config(_)
        | C::Trust(_)
        | C::Request(_) => return Err(Failure::new(Exit::Usage, "usage", "this is not a query")),
    };
    Ok(Query {
        name,
        body,
        options,
        describe,
    })
}

fn of_file(arguments: &FileArguments) -> Result<CodeQuery, Failure> {
    Ok(CodeQuery {
        path: paths::file(&arguments.file)?,
        ..CodeQuery::default()
    })
}

fn edit(_: Palette, answer: &Value) -> Result<(String, Vec<String>), ClientError> {
    Ok(answers::edit(&printable(answer)?))
}

fn at(place: &SourcePosition) -> Result<CodeQuery, Failure> {
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
