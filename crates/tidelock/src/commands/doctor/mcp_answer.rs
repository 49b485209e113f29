//! Checks that `tidelock mcp` answers as a client expects: starts it, initializes it, lists its tools, and ends it.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;

use crate::context::VERSION;

/// How long the whole check may take. It takes milliseconds if a daemon is running.
const WITHIN: Duration = Duration::from_secs(15);
/// The longest line we read. A list of tools has tens of kilobytes.
const LINE_LIMIT_BYTES: u64 = 4 << 20;
/// Room for progress and log messages between the two answers. The reader blocks when it is full.
const LINES_AHEAD: usize = 16;
const PROTOCOL: &str = "2025-11-25";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) protocol: String,
    pub(super) tools: usize,
}

#[derive(Debug, Error)]
pub(super) enum AskError {
    #[error("it can't be started")]
    Start(#[source] io::Error),
    #[error("it doesn't accept requests")]
    Write(#[source] io::Error),
    #[error("it exited")]
    Ended,
    #[error("it didn't answer within {} s", WITHIN.as_secs())]
    Silent,
    #[error("it refused the request: {0}")]
    Refused(String),
    #[error("its output doesn't follow the protocol")]
    NotUnderstood,
}

struct Asked(Child);

impl Drop for Asked {
    fn drop(&mut self) {
        // It has nothing to lose, and may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(super) fn ask() -> Result<Answer, AskError> {
    let program = std::env::current_exe().map_err(AskError::Start)?;
    let child = Command::new(program)
        .arg("mcp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut asked = Asked(child.map_err(AskError::Start)?);
    let (Some(mut stdin), Some(stdout)) = (asked.0.stdin.take(), asked.0.stdout.take()) else {
        return Err(AskError::Ended);
    };
    let lines = listen(stdout).map_err(AskError::Start)?;
    let give_up_at = Instant::now() + WITHIN;
    let mut say = |message: Value| {
        let line = format!("{message}\n");
        stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdin.flush())
            .map_err(AskError::Write)
    };
    let client = json!({ "name": "tidelock doctor", "version": VERSION });
    let greeting = json!({ "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client });
    say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting }))?;
    let greeted = answer_to(1, &lines, give_up_at)?;
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }))?;
    let listed = answer_to(2, &lines, give_up_at)?;
    let protocol = greeted["protocolVersion"]
        .as_str()
        .ok_or(AskError::NotUnderstood)?
        .to_owned();
    let tools = listed["tools"].as_array().ok_or(AskError::NotUnderstood)?.len();
    Ok(Answer { protocol, tools })
}

/// Reads on its own thread, because a pipe cannot be read with a deadline. The thread ends with the process.
fn listen(stdout: ChildStdout) -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::sync_channel(LINES_AHEAD);
    thread::Builder::new()
        .name("mcp answers".to_owned())
        .spawn(move || {
            let mut output = BufReader::new(stdout);
            loop {
                let mut line = String::new();
                let read = output.by_ref().take(LINE_LIMIT_BYTES).read_line(&mut line);
                let has_more = read.is_ok_and(|length| length > 0);
                if !has_more || sender.send(line).is_err() {
                    return;
                }
            }
        })?;
    Ok(receiver)
}

fn answer_to(id: u64, lines: &Receiver<String>, give_up_at: Instant) -> Result<Value, AskError> {
    loop {
        let left = give_up_at.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => AskError::Silent,
            RecvTimeoutError::Disconnected => AskError::Ended,
        })?;
        let mut message: Value = serde_json::from_str(&line).map_err(|_| AskError::NotUnderstood)?;
        if message["id"] != id {
            continue;
        }
        if let Some(error) = message.get("error") {
            let text = error["message"].as_str().unwrap_or("no reason given");
            return Err(AskError::Refused(text.to_owned()));
        }
        return Ok(message["result"].take());
    }
}
