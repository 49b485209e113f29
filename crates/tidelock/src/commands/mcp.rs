//! `tidelock mcp`: forwards lines of the Model Context Protocol between an agent and the daemon.
//!
//! This process understands as little of the protocol as it can. It knows which requests are unanswered, so that it
//! can answer them when the daemon is gone, and how the conversation was opened, so that it can reopen it with the
//! next daemon. Everything else is up to the daemon.

mod conversation;
mod pump;

use std::io;
use std::path::PathBuf;

use hyper::header::HeaderName;
use protocol::BootId;

use crate::cli::{McpArguments, WhoApplies};
use crate::client::Client;
use crate::environment::search_variables;
use crate::error::{Exit, Failure};
use crate::output::{Report, json_line, write};
use crate::start::Repeat;

const PROTOCOL: &str = "tidelock-mcp";
const PATH: &str = "/v1/mcp/connect";
/// The length of the id that tells agents with the same name apart.
const ID_CHARACTERS: usize = 6;
/// The maximum size of the variables sent to the daemon. The whole head of a request may have 16 KiB.
const VARIABLES_BYTES: usize = 12 * 1024;

pub(crate) fn run(arguments: &McpArguments, client: &Client) -> Result<Report, Failure> {
    let headers = headers(arguments)?;
    let connect = || {
        let upgrade = |client: &Client| client.upgrade(PATH, PROTOCOL, &headers);
        client.ask(Repeat::Harmless, upgrade)
    };
    // Report problems with the daemon at once, where the user who configures an agent sees them.
    let first = connect()?;
    pump::run(first, connect, io::stdin().lock(), Whole).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "no_resources",
            format!("the agent cannot be served: {error}"),
        )
    })?;
    Ok(Report::already_told())
}

fn headers(arguments: &McpArguments) -> Result<Vec<(HeaderName, String)>, Failure> {
    let id = BootId::generate().to_string().to_ascii_lowercase();
    let mut headers = vec![
        (
            HeaderName::from_static("tidelock-client-id"),
            id[id.len() - ID_CHARACTERS..].to_owned(),
        ),
        (
            HeaderName::from_static("tidelock-directory"),
            header_text(&directory(arguments)?.display().to_string()),
        ),
    ];
    let variables = header_text(json_line(&search_variables()).trim_end());
    if variables.len() <= VARIABLES_BYTES {
        headers.push((HeaderName::from_static("tidelock-environment"), variables));
    } else {
        let note =
            "note: your PATH is too long to send; language servers are looked up on the daemon's PATH\n";
        drop(write(io::stderr(), note));
    }
    if arguments.who_applies() == WhoApplies::TheAgent {
        headers.push((HeaderName::from_static("tidelock-apply"), "allow".to_owned()));
    }
    Ok(headers)
}

fn header_text(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'!'..=b'$' | b'&'..=b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[derive(Clone, Copy, Debug)]
struct Whole;

impl io::Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes)
    }

    // One lock per line, so that another thread does not write into it.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::stdout().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

fn directory(arguments: &McpArguments) -> Result<PathBuf, Failure> {
    let wanted = arguments.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let found = wanted.canonicalize().and_then(|path| match path.is_dir() {
        true => Ok(path),
        false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
    });
    found.map_err(|error| {
        let shown = wanted.display();
        Failure::new(
            Exit::Usage,
            "usage",
            format!("the directory `{shown}` cannot be used: {error}"),
        )
    })
}
