//! From the death of a server to the next answer.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::python_project::{PythonProject, check_hover};
use super::server_by_hand::ServerByHand;
use super::shared_daemon::SharedDaemon;
use crate::programs::{find_server, server_directories};
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, nanoseconds, short};

/// Each takes seconds. Each has its own daemon: one with a server that keeps dying would wait before it tries again.
const ROUNDS: usize = 5;

const BAR_MS: f64 = 100.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "After kill -9 of a server",
        "pyright, warm, is killed, and a hover is asked at once: the time from the kill to the answer, beside the time from \
         the start of a pyright by hand to its first answer to the same question. An answer that is an error ends the \
         measurement. On another machine serena took 0.54 s, mcpls 1.63 s with one error, aether-lspd 1.97 s; cclsp, \
         karellen and agent-lsp never answered again.",
        &["from kill -9 to an answer", "cold, by hand", "more", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let program = find_server("pyright-langserver", &server_directories(tidelock));
    let program = program.context("pyright is not installed; `cargo xtask test` installs it")?;
    let project = PythonProject::new()?;
    let (mut recovered, mut cold, mut more) = (Vec::new(), Vec::new(), Vec::new());
    // The first round fills the caches of the machine and does not count.
    for round in 0..=ROUNDS {
        let took = (
            kill_and_ask(tidelock, &project)?,
            start_and_ask(tidelock, &program, &project)?,
        );
        if round > 0 {
            recovered.push(took.0);
            cold.push(took.1);
            more.push(took.0 - took.1);
        }
    }
    let more = Figure::of(&more).median / 1e6;
    table.judged_row(
        vec![
            Figure::of(&recovered).nanoseconds(),
            Figure::of(&cold).nanoseconds(),
            format!("{} ms", short(more)),
            format!("at most {BAR_MS} ms"),
        ],
        BarVerdict::from(more <= BAR_MS),
    );
    Ok(())
}

fn kill_and_ask(tidelock: &Path, project: &PythonProject) -> Result<f64> {
    let shared = SharedDaemon::start(tidelock)?;
    let mut client = shared.unix()?;
    let question = project.question(0);
    let mut ask = || check_hover(&String::from_utf8_lossy(client.post("/v1/lsp/hover", &question)?));
    ask()?;
    let pid = i32::try_from(shared.server_pid()?)?;
    // The daemon has not reported its end, so the pid is still the server's.
    let pid = Pid::from_raw(pid).context("the server has no pid")?;
    let began = Instant::now();
    kill_process(pid, Signal::KILL)?;
    ask()?;
    Ok(nanoseconds(began.elapsed()))
}

fn start_and_ask(tidelock: &Path, program: &Path, project: &PythonProject) -> Result<f64> {
    let began = Instant::now();
    let mut server = ServerByHand::start(tidelock, program, &["--stdio"], project.root())?;
    let speaker = &mut server.speaker;
    speaker.notify("textDocument/didOpen", &project.open_params(0)?)?;
    let answer = speaker.request("textDocument/hover", &project.hover_params(0)?)?;
    check_hover(&answer.to_string())?;
    Ok(nanoseconds(began.elapsed()))
}
