//! A question about code: pyright, warm.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::aether::Aether;
use super::python_project::{PythonProject, check_hover};
use super::server_by_hand::ServerByHand;
use super::shared_daemon::SharedDaemon;
use super::turns::{Asker, ask_in_turns};
use crate::programs::{find_server, server_directories};
use crate::report::{BarVerdict, Table};
use crate::statistics::Figure;

const ROUNDS: usize = 61;

/// The time of mcpls 0.9.1 on another machine.
const BAR_MS: f64 = 1.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "A hover through the daemon",
        "pyright on a small project, warm: asked over its pipes with the document open, or through \
         `POST /v1/lsp/hover`, which looks at the file on disk before each question, turns positions and paths \
         round, and cuts answers to size. The bar is what mcpls 0.9.1 took on another machine; there aether-lspd 0.3.6 \
         took 2.4 ms, cclsp 2.0 ms, karellen 3.5 ms, agent-lsp 29 ms and serena 103 ms.",
        &["client", "hover", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let program = find_server("pyright-langserver", &server_directories(tidelock));
    let program = program.context("pyright is not installed; `cargo xtask test` installs it")?;
    let project = PythonProject::new()?;
    let mut direct = ServerByHand::start(tidelock, &program, &["--stdio"], project.root())?;
    direct
        .speaker
        .notify("textDocument/didOpen", &project.open_params(0)?)?;
    let mut aether = Aether::start(tidelock, project.root())?;
    let shared = SharedDaemon::start(tidelock)?;
    let (params, question) = (project.hover_params(0)?, project.question(0));
    let ask = |client: &mut crate::http::HttpClient| {
        let answer = client.post("/v1/lsp/hover", &question)?;
        check_hover(&String::from_utf8_lossy(answer))
    };
    // The first answers take seconds, and a connection that is idle for ten seconds is closed.
    ask(&mut shared.unix()?)?;
    direct.speaker.request("textDocument/hover", &params)?;
    if let Some(aether) = &mut aether {
        aether.request("textDocument/hover", &params)?;
    }
    let (mut unix, mut tcp) = (shared.unix()?, shared.tcp()?);
    let mut askers = vec![
        Asker::new("direct, over pipes", || {
            let answer = direct.speaker.request("textDocument/hover", &params)?;
            check_hover(&answer.to_string())
        }),
        Asker::new("tidelock, Unix socket", || ask(&mut unix)),
        Asker::new("tidelock, TCP", || ask(&mut tcp)),
    ];
    match &mut aether {
        None => table.skipped("aether-lspd is not installed"),
        Some(aether) => {
            let params = &params;
            askers.push(Asker::new("aether-lspd, Unix socket", move || {
                let answer = aether.request("textDocument/hover", params)?;
                check_hover(&answer.to_string())
            }));
        }
    }
    let measured = ask_in_turns(&mut askers, ROUNDS)?;
    drop(askers);
    for each in &measured {
        let figure = Figure::of(&each.samples);
        let (verdict, bar) = if each.name.starts_with("tidelock") {
            (
                BarVerdict::from(figure.median < BAR_MS * 1e6),
                format!("under {BAR_MS:.1} ms"),
            )
        } else {
            (BarVerdict::NotAsked, String::new())
        };
        table.judged_row(vec![each.name.to_owned(), figure.nanoseconds(), bar], verdict);
    }
    Ok(())
}
