//! A client that writes a line and reads the answer.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A server on its standard input and output. Dropping it stops the server.
pub(super) struct Lines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
    line: String,
}

impl Lines {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = Self {
            child,
            stdin,
            stdout: BufReader::new(stdout),
            last_id: 0,
            line: String::new(),
        };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        lines.ask("initialize", &params)?;
        lines
            .stdin
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok(lines)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<&str> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<&str> {
        self.last_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.stdin.write_all(format!("{request}\n").as_bytes())?;
        self.line.clear();
        let count = self.stdout.read_line(&mut self.line)?;
        ensure!(count > 0, "the server has ended");
        ensure!(self.line.contains("\"result\""), "it answers {}", self.line);
        Ok(&self.line)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It is our own child; if it has already ended, it needs no signal.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
