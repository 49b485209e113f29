//! Four clients: one server for all of them, or one for each.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::python_project::PythonProject;
use super::server_by_hand::ServerByHand;
use super::shared_daemon::SharedDaemon;
use crate::memory::tree_mib;
use crate::programs::{find_server, server_directories};
use crate::report::{BarVerdict, Table};
use crate::statistics::short;

const CLIENTS: usize = 4;
/// How long servers are left alone before their memory is measured.
const SETTLE: Duration = Duration::from_secs(2);
/// How long a server may take until its first answer, and how often to ask one that is not ready yet.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

struct Subject {
    name: &'static str,
    program: PathBuf,
    arguments: &'static [&'static str],
    root: PathBuf,
    /// For each client: the question to the daemon, the notification to a server, and the question to it.
    questions: Vec<(String, Value, Value)>,
}

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Four clients, one server",
        "Resident memory of language servers and everything that they start, after each of four clients has had an \
         answer: the one server that the daemon shares between them, and four that were started by hand. On another \
         machine lspmux 0.3.0 with rust-analyzer had 624 MB in place of 1,888 MB.",
        &["server", "shared by four", "four by hand", "ratio", "bar", "met"],
    );
    let python = PythonProject::new();
    let rust = tempfile::tempdir();
    let subjects = [
        python.and_then(|project| {
            let measured =
                pyright(tidelock, &project).and_then(|subject| fill(&mut table, tidelock, &subject));
            drop(project);
            measured
        }),
        rust.map_err(Into::into).and_then(|directory| {
            let subject = rust_analyzer(tidelock, directory.path())?;
            fill(&mut table, tidelock, &subject)
        }),
    ];
    for error in subjects.into_iter().filter_map(Result::err) {
        table.skipped(&format!("{error:#}"));
    }
    Ok(table)
}

fn pyright(tidelock: &Path, project: &PythonProject) -> Result<Subject> {
    let question = |number| {
        Ok((
            project.question(number),
            project.open_params(number)?,
            project.hover_params(number)?,
        ))
    };
    Ok(Subject {
        name: "pyright",
        program: found(tidelock, "pyright-langserver")?,
        arguments: &["--stdio"],
        root: project.root().to_owned(),
        questions: (0..CLIENTS).map(question).collect::<Result<_>>()?,
    })
}

fn rust_analyzer(tidelock: &Path, directory: &Path) -> Result<Subject> {
    const TEXT: &str =
        "fn main() {\n    let names = vec![\"a\", \"b\"];\n    println!(\"{}\", names.len());\n}\n";
    let root = directory.canonicalize()?;
    let manifest =
        "[package]\nname = \"bench-subject\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(root.join("Cargo.toml"), manifest)?;
    fs::create_dir(root.join("src"))?;
    let file = root.join("src/main.rs");
    fs::write(&file, TEXT)?;
    let uri = lsp::uri_of_path(&file)?;
    let question = (
        json!({"path": file, "line": 3, "column": 28, "wait_ready": true, "timeout_ms": 60_000}).to_string(),
        json!({"textDocument": {"uri": uri, "languageId": "rust", "version": 1, "text": TEXT}}),
        json!({"textDocument": {"uri": uri}, "position": {"line": 2, "character": 27}}),
    );
    Ok(Subject {
        name: "rust-analyzer",
        program: found(tidelock, "rust-analyzer")?,
        arguments: &[],
        root,
        questions: vec![question; CLIENTS],
    })
}

fn found(tidelock: &Path, name: &str) -> Result<PathBuf> {
    find_server(name, &server_directories(tidelock)).with_context(|| format!("{name} is not installed"))
}

fn fill(table: &mut Table, tidelock: &Path, subject: &Subject) -> Result<()> {
    let shared = shared(tidelock, subject)?;
    let separate = separate(tidelock, subject)?;
    let cells = vec![
        subject.name.to_owned(),
        format!("{} MiB", short(shared)),
        format!("{} MiB", short(separate)),
        short(separate / shared),
        "less".to_owned(),
    ];
    table.judged_row(cells, BarVerdict::from(shared < separate));
    Ok(())
}

fn shared(tidelock: &Path, subject: &Subject) -> Result<f64> {
    let daemon = SharedDaemon::start(tidelock)?;
    // A connection that is idle for ten seconds is closed, so each is opened when its turn comes.
    let mut clients = Vec::new();
    for (question, ..) in &subject.questions {
        let mut client = daemon.unix()?;
        client.post("/v1/lsp/hover", question)?;
        clients.push(client);
    }
    thread::sleep(SETTLE);
    tree_mib(daemon.server_pid()?)
}

fn separate(tidelock: &Path, subject: &Subject) -> Result<f64> {
    let mut servers = Vec::new();
    for (_, opened, hover) in &subject.questions {
        let mut server = ServerByHand::start(tidelock, &subject.program, subject.arguments, &subject.root)?;
        server.speaker.notify("textDocument/didOpen", opened)?;
        wait_for_answer(&mut server, hover)?;
        servers.push(server);
    }
    thread::sleep(SETTLE);
    servers.iter().map(|server| tree_mib(server.pid())).sum()
}

/// Asks until there is an answer: a server that is still reading the project knows nothing yet, or refuses.
fn wait_for_answer(server: &mut ServerByHand, hover: &Value) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < ANSWER_WITHIN {
        match server.speaker.request("textDocument/hover", hover) {
            Ok(answer) if !answer.is_null() => return Ok(()),
            _ => thread::sleep(PAUSE),
        }
    }
    bail!("no answer within {} s", ANSWER_WITHIN.as_secs());
}
