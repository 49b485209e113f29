//! An agent that speaks the Model Context Protocol, line by line, with `tidelock mcp`.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Running;
use crate::plan_stage::Project;

/// How long an answer may take. All of them take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many lines of the daemon wait to be looked at. A test looks at each.
const LINES: usize = 1024;

/// An agent.
#[derive(Debug)]
pub(crate) struct Agent {
    process: Running,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    last_id: u64,
    /// What is added to each request; for the protocol that has no handshake.
    meta: Option<Value>,
    /// What came beside answers.
    pub(crate) beside: Vec<Value>,
    /// What the user answers when they are asked.
    pub(crate) user: Value,
}

/// A result of a tool.
#[derive(Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) value: Value,
    pub(crate) failed: bool,
}

impl Agent {
    /// An agent that has not said anything yet.
    pub(crate) fn silent(project: &Project, arguments: &[&str]) -> Agent {
        let mut all = vec!["mcp"];
        all.extend(arguments);
        Agent::started(project.command(&all))
    }

    /// The same, started by this command.
    pub(crate) fn started(mut command: Command) -> Agent {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::sync_channel(LINES);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Agent {
            process: Running(child),
            stdin,
            lines,
            last_id: 0,
            meta: None,
            beside: Vec::new(),
            user: json!({ "action": "accept", "content": { "confirm": true } }),
        }
    }

    /// An agent that has introduced itself.
    pub(crate) fn new(project: &Project, name: &str, arguments: &[&str]) -> Agent {
        Agent::with(project, name, arguments, &json!({}))
    }

    /// The same, with capabilities.
    pub(crate) fn with(project: &Project, name: &str, arguments: &[&str], capabilities: &Value) -> Agent {
        Agent::silent(project, arguments).introduced(name, capabilities)
    }

    /// Introduces itself.
    pub(crate) fn introduced(self, name: &str, capabilities: &Value) -> Agent {
        let mut agent = self;
        let answer = agent.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": { "name": name, "version": "1.2" },
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    /// An agent that speaks the protocol without a handshake.
    pub(crate) fn stateless(project: &Project, name: &str, capabilities: &Value) -> Agent {
        let mut agent = Agent::silent(project, &[]);
        agent.meta = Some(stateless_meta(name, capabilities));
        agent
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let mut params = params.clone();
        if let Some(meta) = &self.meta {
            let mut meta = meta.clone();
            if let Some(given) = params.get("_meta").and_then(Value::as_object) {
                meta.as_object_mut().unwrap().extend(given.clone());
            }
            params["_meta"] = meta;
        }
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The answer to a request. Questions to the user are answered meanwhile.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.lines.recv_timeout(PATIENCE).expect("an answer in time");
            if message["method"] == "elicitation/create" {
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": self.user });
                self.beside.push(message);
                self.send(&answer);
            } else if message["id"] == json!(id) && message.get("method").is_none() {
                return message;
            } else {
                self.beside.push(message);
            }
        }
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Told {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        told(&answer)
    }

    /// Calls a tool that must do what it is asked to.
    #[track_caller]
    pub(crate) fn done(&mut self, tool: &str, arguments: &Value) -> Told {
        let told = self.call(tool, arguments);
        assert!(!told.failed, "{tool} {arguments}: {told:?}");
        told
    }

    /// Closes standard input, waits for the end, and returns the exit code.
    #[track_caller]
    pub(crate) fn leave(mut self) -> Option<i32> {
        drop(self.stdin.take());
        crate::harness::wait_for("the agent to be gone", || {
            matches!(self.process.0.try_wait(), Ok(Some(_)))
        });
        self.process.0.wait().unwrap().code()
    }
}

/// What a request says about whoever sends it, in the protocol without a handshake.
pub(crate) fn stateless_meta(name: &str, capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": name, "version": "1.2" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The result in an answer.
#[track_caller]
pub(crate) fn told(answer: &Value) -> Told {
    let result = &answer["result"];
    let text = result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {answer}"));
    Told {
        text: text.to_owned(),
        value: result["structuredContent"].clone(),
        failed: result["isError"].as_bool().unwrap_or_default(),
    }
}
