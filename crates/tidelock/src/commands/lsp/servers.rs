//! Manages language servers.

use std::path::Path;

use protocol::{ChangeServer, Server, ServerHealth, ServerList, ServerLog, StartServer};
use serde_json::Value;

use super::PATIENCE;
use super::pick::pick;
use super::server_table::{describe, healthy, lines, rows};
use crate::cli::{RestartArguments, StartArguments, StopArguments};
use crate::client::{Client, path_segment};
use crate::environment::search_variables;
use crate::error::Failure;
use crate::output::{Palette, Report, fields};
use crate::paths;
use crate::printable::{Answer, printable};
use crate::start::Repeat;

const SERVERS: &str = "/v1/lsp/servers";

pub(super) fn list(client: &Client) -> Result<Report, Failure> {
    let answer = client.fetch(SERVERS)?;
    several(
        client.palette(),
        answer,
        "No language servers have been used yet. A query starts the ones it needs.",
    )
}

pub(super) fn start(arguments: &StartArguments, client: &Client) -> Result<Report, Failure> {
    let request = StartServer {
        environment: search_variables(),
        ..what_to_start(arguments, client)?
    };
    let answer = client.ask(Repeat::Harmless, |client| {
        client.post_within(SERVERS, Some(&request), PATIENCE)
    })?;
    several(client.palette(), answer, "Nothing to start.")
}

fn what_to_start(arguments: &StartArguments, client: &Client) -> Result<StartServer, Failure> {
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
    // If it looks like a path, it is one; otherwise it may be the name of a server that was used before.
    if path.exists() || arguments.what.contains(['/', '.']) {
        return Ok(StartServer {
            path: paths::existing(path)?,
            server: arguments.server.clone(),
            workspace,
            ..StartServer::default()
        });
    }
    let server = find(&arguments.what, client).map_err(|failure| {
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
        // Start it at the same root as before, not at one further up.
        workspace: workspace.or(Some(server.root)),
        ..StartServer::default()
    })
}

pub(super) fn stop(arguments: &StopArguments, client: &Client) -> Result<Report, Failure> {
    let Some(wanted) = &arguments.server else {
        let answer = client.ask(Repeat::Harmless, |client| {
            client.post_within("/v1/lsp/stop", None::<&()>, PATIENCE)
        })?;
        return several(client.palette(), answer, "No language servers were running.");
    };
    let server = find(wanted, client)?;
    change(&server, "/stop", arguments.generation, Repeat::Harmless, client)
}

pub(super) fn restart(arguments: &RestartArguments, client: &Client) -> Result<Report, Failure> {
    let server = find(&arguments.server.server, client)?;
    change(&server, "/restart", arguments.generation, Repeat::Harmful, client)
}

fn change(
    server: &Server,
    action: &str,
    generation: Option<u64>,
    repeat: Repeat,
    client: &Client,
) -> Result<Report, Failure> {
    let answer = client.ask(repeat, |client| {
        client.post_within(
            &path(&server.id, action),
            Some(&ChangeServer { generation }),
            PATIENCE,
        )
    })?;
    let server: Server = printable(&answer)?;
    Ok(Report::success(
        answer,
        fields(client.palette(), describe(&server)),
    ))
}

pub(super) fn health(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let server = find(wanted, client)?;
    let health: Answer<ServerHealth> = client.ask(Repeat::Harmless, |client| {
        client.get_within(&path(&server.id, "/health"), PATIENCE)
    })?;
    Ok(Report::shown(healthy(client.palette(), &health), health))
}

pub(super) fn log(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let server = find(wanted, client)?;
    let log: Answer<ServerLog> = client.fetch(&path(&server.id, "/log"))?;
    Ok(Report::shown(lines(client.palette(), &log), log))
}

/// Finds a server by id or name.
pub(super) fn find(wanted: &str, client: &Client) -> Result<Server, Failure> {
    let directory = paths::current_directory()?;
    let answer = client.fetch(SERVERS)?;
    let list: ServerList = printable(&answer)?;
    pick(&list.servers, wanted, &directory).cloned()
}

pub(super) fn path(id: &str, action: &str) -> String {
    format!("{SERVERS}/{}{action}", path_segment(id))
}

fn several(palette: Palette, answer: Value, none: &str) -> Result<Report, Failure> {
    let list: ServerList = printable(&answer)?;
    Ok(Report::success(answer, rows(palette, &list.servers, none)))
}
