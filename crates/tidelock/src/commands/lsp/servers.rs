//! Servers as people look after them.

use std::path::Path;

use protocol::{ChangeServer, Server, ServerHealth, ServerList, ServerLog, StartServer};
use serde_json::Value;

use super::PATIENCE;
use super::paths;
use super::pick::pick;
use super::printable::printable;
use super::server_table::{describe, healthy, lines, rows};
use crate::cli::{RestartArguments, StartArguments, StopArguments};
use crate::client::{Client, ClientError, path_segment};
use crate::context::Context;
use crate::environment::search_variables;
use crate::error::Failure;
use crate::output::{Palette, Report, fields};
use crate::start::{Repeat, with_daemon};

const SERVERS: &str = "/v1/lsp/servers";

pub(super) fn list(context: &Context, client: &Client) -> Result<Report, Failure> {
    let answer = ask(context, client, Repeat::Harmless, |client| client.get(SERVERS))?;
    several(
        context.palette,
        answer,
        "No language servers have been used yet. A query starts the ones it needs.",
    )
}

pub(super) fn start(
    arguments: &StartArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let request = StartServer {
        environment: search_variables(),
        ..what_to_start(arguments, context, client)?
    };
    let answer = ask(context, client, Repeat::Harmless, |client| {
        client.post_within(SERVERS, Some(&request), PATIENCE)
    })?;
    several(context.palette, answer, "Nothing to start.")
}

fn what_to_start(
    arguments: &StartArguments,
    context: &Context,
    client: &Client,
) -> Result<StartServer, Failure> {
    let workspace = arguments.workspace.as_deref().map(paths::directory).transpose()?;
    if let Some(directory) = &arguments.directory {
        return Ok(StartServer {
            path: paths::directory(directory)?,
            server: Some(arguments.what.clone()),
            workspace,
            ..StartServer::default()
        });
    }
    let path = Path::new(&arguments.what);
    // What looks like a path is one; what does not may be the name of a server that was used.
    if path.exists() || arguments.what.contains(['/', '.']) {
        return Ok(StartServer {
            path: paths::existing(path)?,
            server: arguments.server.clone(),
            workspace,
            ..StartServer::default()
        });
    }
    let server = find(&arguments.what, context, client).map_err(|failure| {
        let advice = format!(
            "`tidelock lsp start {} --in DIR` starts one by its name",
            arguments.what
        );
        match failure.code.as_str() {
            "server_not_found" => failure.advise(advice),
            _ => failure,
        }
    })?;
    Ok(StartServer {
        path: server.root.clone(),
        server: Some(server.server),
        // It shall be the one that was, and not one further up.
        workspace: workspace.or(Some(server.root)),
        ..StartServer::default()
    })
}

pub(super) fn stop(arguments: &StopArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let Some(wanted) = &arguments.server else {
        let answer = ask(context, client, Repeat::Harmless, |client| {
            client.post_within("/v1/lsp/stop", None::<&()>, PATIENCE)
        })?;
        return several(context.palette, answer, "No language servers were running.");
    };
    let server = find(wanted, context, client)?;
    change(
        &server,
        "/stop",
        arguments.generation,
        Repeat::Harmless,
        context,
        client,
    )
}

pub(super) fn restart(
    arguments: &RestartArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let server = find(&arguments.server.server, context, client)?;
    change(
        &server,
        "/restart",
        arguments.generation,
        Repeat::Harmful,
        context,
        client,
    )
}

fn change(
    server: &Server,
    action: &str,
    generation: Option<u64>,
    repeat: Repeat,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let answer = ask(context, client, repeat, |client| {
        client.post_within(
            &path(&server.id, action),
            Some(&ChangeServer { generation }),
            PATIENCE,
        )
    })?;
    let server: Server = printable(&answer)?;
    Ok(Report::success(
        answer,
        fields(context.palette, describe(&server)),
    ))
}

pub(super) fn health(wanted: &str, context: &Context, client: &Client) -> Result<Report, Failure> {
    let server = find(wanted, context, client)?;
    let answer = ask(context, client, Repeat::Harmless, |client| {
        client.get_within(&path(&server.id, "/health"), PATIENCE)
    })?;
    let health: ServerHealth = printable(&answer)?;
    Ok(Report::success(answer, healthy(context.palette, &health)))
}

pub(super) fn log(wanted: &str, context: &Context, client: &Client) -> Result<Report, Failure> {
    let server = find(wanted, context, client)?;
    let answer = ask(context, client, Repeat::Harmless, |client| {
        client.get(&path(&server.id, "/log"))
    })?;
    let log: ServerLog = printable(&answer)?;
    Ok(Report::success(answer, lines(context.palette, &log)))
}

/// The server that is meant by an id or a name.
pub(super) fn find(wanted: &str, context: &Context, client: &Client) -> Result<Server, Failure> {
    let directory = paths::current_directory()?;
    let answer = ask(context, client, Repeat::Harmless, |client| client.get(SERVERS))?;
    let list: ServerList = printable(&answer)?;
    pick(&list.servers, wanted, &directory).cloned()
}

pub(super) fn path(id: &str, action: &str) -> String {
    format!("{SERVERS}/{}{action}", path_segment(id))
}

pub(super) fn ask(
    context: &Context,
    client: &Client,
    repeat: Repeat,
    work: impl Fn(&Client) -> Result<Value, ClientError>,
) -> Result<Value, Failure> {
    with_daemon(context, client, repeat, work).map(|(answer, _)| answer)
}

fn several(palette: Palette, answer: Value, none: &str) -> Result<Report, Failure> {
    let list: ServerList = printable(&answer)?;
    let text = if list.servers.is_empty() {
        format!("{none}\n")
    } else {
        rows(palette, &list.servers)
    };
    Ok(Report::success(answer, text))
}
