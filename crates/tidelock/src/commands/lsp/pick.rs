//! Finds the server the user means: by an id, or by a name if it is unambiguous.

use std::path::Path;

use protocol::Server;

use crate::error::{Exit, Failure};

/// Finds a server by id or name. If several have the name, picks the one whose root is nearest above `directory`: a
/// user in a project means its server.
pub(super) fn pick<'a>(servers: &'a [Server], wanted: &str, directory: &Path) -> Result<&'a Server, Failure> {
    if let Some(server) = servers.iter().find(|server| server.id == wanted) {
        return Ok(server);
    }
    let named: Vec<&Server> = servers.iter().filter(|server| server.server == wanted).collect();
    if let [only] = named[..] {
        return Ok(only);
    }
    let depth = |server: &Server| Path::new(&server.root).components().count();
    let here = named
        .iter()
        .filter(|server| directory.starts_with(&server.root))
        .max_by_key(|server| depth(server));
    match here {
        Some(server) => Ok(server),
        None if named.is_empty() => Err(unknown(servers, wanted)),
        None => Err(ambiguous(&named, wanted)),
    }
}

fn unknown(servers: &[Server], wanted: &str) -> Failure {
    let shown = wanted.escape_debug();
    let advice = if servers.is_empty() {
        "no servers have been used yet; a query starts the ones it needs, for example: `tidelock lsp hover FILE:LINE:COL`"
    } else {
        "`tidelock lsp list` shows the servers that were used, `tidelock lsp config` the configured ones"
    };
    Failure::new(
        Exit::Refused,
        "server_not_found",
        format!("no language server with the id or name `{shown}` has been used"),
    )
    .advise(advice)
}

fn ambiguous(named: &[&Server], wanted: &str) -> Failure {
    let candidates: Vec<String> = named
        .iter()
        .map(|server| format!("{} ({})", server.id, server.root))
        .collect();
    Failure::new(
        Exit::Refused,
        "server_ambiguous",
        format!(
            "there are {} servers named `{wanted}`: {}",
            named.len(),
            candidates.join(", ")
        ),
    )
    .advise("use the id of one, or change to its directory")
}

#[cfg(test)]
mod tests {
    use super::super::server_table::tests::server;
    use super::*;

    #[test]
    fn an_id_is_clear_and_a_name_where_it_is_used() {
        let servers = [
            server("pyright-1", "/code"),
            server("pyright-2", "/code/inner"),
            server("pyright-3", "/other"),
            server("ruff-1", "/code"),
        ];
        for (wanted, directory, expected) in [
            ("pyright-3", "/code", Ok("pyright-3")),
            ("ruff", "/nowhere", Ok("ruff-1")),
            ("pyright", "/code", Ok("pyright-1")),
            ("pyright", "/code/src", Ok("pyright-1")),
            ("pyright", "/code/inner/src", Ok("pyright-2")),
            ("pyright", "/codelings", Err("server_ambiguous")),
            ("gopls", "/code", Err("server_not_found")),
        ] {
            let found = pick(&servers, wanted, Path::new(directory));
            let found = found.map(|server| server.id.as_str());
            assert_eq!(
                found.as_deref().map_err(|failure| failure.code.as_str()),
                expected,
                "{wanted} in {directory}"
            );
        }
        let failure = pick(&servers, "pyright", Path::new("/")).unwrap_err();
        assert_eq!(
            failure.message,
            "there are 3 servers named `pyright`: pyright-1 (/code), pyright-2 (/code/inner), pyright-3 (/other)"
        );
    }
}
