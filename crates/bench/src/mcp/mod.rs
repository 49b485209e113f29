//! A Model Context Protocol tool: one read through the daemon, next to a server that only echoes.

mod echo;
mod lines;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

pub(crate) use echo::echo_if_asked;

use crate::http::HttpClient;
use crate::language_servers::turns::{Asker, ask_in_turns};
use crate::own_daemon::Daemon;
use crate::report::{Bar, Table};
use lines::Lines;

const ROUNDS: usize = 101;
/// How much longer than the bare server a read may take.
const BAR: f64 = 1.5;
/// What is read, and what is echoed.
const TEXT: &str = "fn main() {\n    println!(\"hello\");\n}\n";

/// Identifies the caller in a request without a handshake.
const HEADERS: &str = "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
                       mcp-method: tools/call\r\n";

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "A tool of the Model Context Protocol",
        "`plan_read` of a small file: a client writes a call and reads its answer. Over stdio it goes through `tidelock mcp` \
         to the daemon and back; the peer is a server made with the same library (rmcp) that only echoes, started by the \
         client, on the library's usual stdio and on its faster one for pipes. Over HTTP both answer single requests \
         without a session, on a connection that is kept. A figure is the median over the rounds of the median of a turn.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?;
    std::fs::write(root.join("main.rs"), TEXT)?;
    let daemon = Daemon::start(tidelock, |_| Ok(()))?;

    let mut joined = daemon.command(&["mcp"]);
    joined.current_dir(&root);
    let mut ours = Lines::start(&mut joined)?;
    ours.call("plan_open", &json!({}))?;
    let program = std::env::current_exe()?;
    let mut usual = Lines::start(Command::new(&program).arg(echo::STDIO))?;
    let mut pipes = Lines::start(Command::new(&program).arg(echo::PIPES))?;
    let (read, echoed) = (json!({ "path": "main.rs" }), json!({ "text": TEXT }));
    ensure!(
        ours.call("plan_read", &read)?.contains("println!"),
        "nothing was read"
    );
    ensure!(
        usual.call("echo", &echoed)?.contains("println!"),
        "nothing was echoed"
    );

    let mut askers = [
        Asker::new("tidelock", || ours.call("plan_read", &read).map(drop)),
        Asker::new("rmcp, stdio", || usual.call("echo", &echoed).map(drop)),
        Asker::new("rmcp, pipes", || pipes.call("echo", &echoed).map(drop)),
    ];
    let measured = ask_in_turns(&mut askers, ROUNDS)?;
    table.compare("over stdio", &measured[0], &measured[1], Bar::WithinTimes(BAR));
    table.compare("over stdio", &measured[0], &measured[2], Bar::None);
    over_http(table, &daemon, &root, &program)
}

fn over_http(table: &mut Table, daemon: &Daemon, root: &Path, program: &Path) -> Result<()> {
    let status = daemon.status()?;
    let address = status["address"].as_str().context("the daemon has no address")?;
    let mut ours = HttpClient::tcp(address, &daemon.token()?)?;
    let (_echo, echo_address) = echo::listening(program)?;
    let mut bare = HttpClient::tcp(&echo_address, "")?;
    let opened = single(&mut ours, "plan_open", &json!({ "directory": root }))?;
    ensure!(opened.contains("plan_"), "no plan was opened: {opened}");
    let (read, echoed) = (json!({ "path": "main.rs" }), json!({ "text": TEXT }));
    ensure!(
        single(&mut ours, "plan_read", &read)?.contains("println!"),
        "nothing was read"
    );
    ensure!(
        single(&mut bare, "echo", &echoed)?.contains("println!"),
        "nothing was echoed"
    );
    let mut askers = [
        Asker::new("tidelock", || single(&mut ours, "plan_read", &read).map(drop)),
        Asker::new("rmcp, HTTP", || single(&mut bare, "echo", &echoed).map(drop)),
    ];
    let measured = ask_in_turns(&mut askers, ROUNDS)?;
    table.compare("over HTTP", &measured[0], &measured[1], Bar::WithinTimes(BAR));
    Ok(())
}

/// One call without a session.
fn single(client: &mut HttpClient, tool: &str, arguments: &Value) -> Result<String> {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": tool, "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let headers = format!("{HEADERS}mcp-name: {tool}\r\n");
    let answer = client.post_with("/mcp", &headers, &body.to_string())?;
    Ok(String::from_utf8_lossy(answer).into_owned())
}
