//! A server of chat completions that answers as a script says, with every fault that a real one can have. For tests.
//!
//! ```text
//! model-server [--script FILE] [--log FILE] [--until-eof]
//! ```
//!
//! - It listens on 127.0.0.1 and says its base URL, `http://127.0.0.1:PORT/v1`, as the first line of standard output.
//! - `--script`: what it answers; see `model_server/script.rs`. Without it: a text; and if tools are offered, first a call of
//!   `write` (or of the first tool), then a text.
//! - `--log`: appends each request as a line of JSON: `number`, `path`, `headers`, `body`.
//! - `--until-eof`: ends when standard input does, so that it does not outlive whoever started it.

#[path = "model_server/answer.rs"]
mod answer;
#[path = "model_server/request.rs"]
mod request;
#[path = "model_server/script.rs"]
mod script;

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use request::Asked;
use script::Script;

type Anything<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What all connections share.
struct Server {
    script: Script,
    /// Guards how many requests there were, and the file that they are written to; held to write one.
    seen: Mutex<Seen>,
}

struct Seen {
    requests: u64,
    log: Option<File>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("model-server: {error}");
            ExitCode::from(70)
        }
    }
}

fn run() -> Anything<()> {
    let mut script = Script::default();
    let mut log = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--script" => script = Script::read(&arguments.next().ok_or("--script wants a file")?)?,
            "--log" => {
                let path = arguments.next().ok_or("--log wants a file")?;
                log = Some(OpenOptions::new().create(true).append(true).open(path)?);
            }
            "--until-eof" => end_with_input(),
            other => return Err(format!("`{other}` is not known").into()),
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(io::stdout(), "http://{}/v1", listener.local_addr()?)?;
    io::stdout().flush()?;
    let seen = Mutex::new(Seen { requests: 0, log });
    let server = Arc::new(Server { script, seen });
    for connection in listener.incoming() {
        let (connection, server) = (connection?, Arc::clone(&server));
        thread::spawn(move || {
            // A client that goes away is no fault of the server.
            server.serve(connection).ok();
        });
    }
    Ok(())
}

/// Ends the process when standard input ends.
fn end_with_input() {
    thread::spawn(|| {
        io::stdin().read_to_end(&mut Vec::new()).ok();
        std::process::exit(0);
    });
}

impl Server {
    fn serve(&self, mut connection: TcpStream) -> Anything<()> {
        let Ok(asked) = Asked::read(&mut connection) else {
            // Most likely somebody who wants to speak TLS.
            connection.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")?;
            return Ok(());
        };
        let number = self.note(&asked)?;
        let response = self.script.response(number, &asked);
        answer::send(&response, connection)
    }

    /// Writes a request down, and numbers it from 0.
    fn note(&self, asked: &Asked) -> Anything<u64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let number = seen.requests;
        seen.requests += 1;
        if let Some(log) = &mut seen.log {
            writeln!(log, "{}", asked.to_line(number))?;
        }
        Ok(number)
    }
}
