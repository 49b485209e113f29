//! An agent of the Agent Client Protocol that does what the prompt says, line by line, and misbehaves on demand.
//!
//! `ACP_AGENT` says what it is like from the start: `silent` and `dies` do not get as far as `initialize`, `babbles` speaks
//! another language and `newer` another version, `chooses` has a choice of models, `forgets` keeps no conversations, `loads`
//! and `resumes` keep them below `ACP_AGENT_STATE`.

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn main() {
    let agent = std::env::var("ACP_AGENT").unwrap_or_default();
    match agent.as_str() {
        "silent" => {
            eprintln!("I have nothing to say");
            io::stdin().lines().for_each(drop);
            return;
        }
        "dies" => {
            eprintln!("there is no model here");
            std::process::exit(3);
        }
        "babbles" => {
            (0..100).for_each(|_| print("Welcome!"));
            io::stdin().lines().for_each(drop);
            return;
        }
        _ => {}
    }
    let state = std::env::var_os("ACP_AGENT_STATE").map(PathBuf::from);
    let mut conversation = Conversation {
        agent,
        state,
        directory: PathBuf::new(),
        session: String::new(),
        model: String::new(),
        next_id: 0,
        is_cancelled: false,
    };
    while let Some(message) = conversation.next() {
        conversation.take(&message);
    }
}

struct Conversation {
    agent: String,
    state: Option<PathBuf>,
    directory: PathBuf,
    session: String,
    model: String,
    next_id: u64,
    is_cancelled: bool,
}

/// What becomes of a prompt after one of its lines.
enum Next {
    GoOn,
    Answer(Value),
    Refuse(Value),
}

fn send(message: &Value) {
    print(&message.to_string());
}

/// Whoever is not listened to any more ends.
fn print(line: &str) {
    if writeln!(io::stdout().lock(), "{line}").is_err() {
        std::process::exit(0);
    }
}

impl Conversation {
    /// The next message; nothing at the end.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line).ok()? == 0 {
            return None;
        }
        let message: Value = serde_json::from_str(&line).ok()?;
        if message["method"] == "session/cancel" {
            self.is_cancelled = true;
        }
        Some(message)
    }

    fn take(&mut self, message: &Value) {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            return;
        };
        let params = &message["params"];
        let answer = match message["method"].as_str().unwrap_or_default() {
            "initialize" => Next::Answer(json!({
                "protocolVersion": if self.agent == "newer" { 2 } else { 1 },
                "agentCapabilities": {
                    "loadSession": self.agent == "loads",
                    "promptCapabilities": { "embeddedContext": true },
                    "sessionCapabilities": if self.agent == "resumes" { json!({ "resume": {} }) } else { json!({}) },
                },
                "authMethods": [{ "id": "key", "name": "a key", "description": "in AGENT_KEY" }],
            })),
            "session/new" => {
                self.directory = params["cwd"].as_str().unwrap_or_default().into();
                self.session = format!("own-{}", std::process::id());
                let choices = match self.agent.as_str() {
                    "chooses" => json!([
                        { "id": "mode", "name": "Mode", "category": "mode", "type": "select" },
                        { "id": "engine", "name": "Engine", "category": "model", "type": "select" },
                    ]),
                    _ => Value::Null,
                };
                Next::Answer(json!({ "sessionId": self.session, "configOptions": choices }))
            }
            "session/set_config_option" => match (params["configId"].as_str(), params["value"].as_str()) {
                (Some("engine"), Some("small")) => {
                    self.model = "small".to_owned();
                    Next::Answer(json!({ "configOptions": [] }))
                }
                _ => Next::Refuse(json!({ "code": -32602, "message": "there is no such model" })),
            },
            method @ ("session/load" | "session/resume") => self.take_up(method, params),
            "session/prompt" => self.prompt(params),
            _ => Next::Refuse(json!({ "code": -32601, "message": "what?" })),
        };
        match answer {
            Next::Answer(result) => send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Next::Refuse(error) => send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })),
            Next::GoOn => {}
        }
    }

    fn take_up(&mut self, method: &str, params: &Value) -> Next {
        self.directory = params["cwd"].as_str().unwrap_or_default().into();
        self.session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let Some(said) = self.notes().and_then(|notes| fs::read_to_string(notes).ok()) else {
            return Next::Refuse(json!({ "code": -32002, "message": "there is no such session" }));
        };
        if method == "session/load" {
            // Whoever loads a session gets all of it told again.
            self.update(json!({ "sessionUpdate": "user_message_chunk", "content": text(&said) }));
            self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": text("told again") }));
        }
        Next::Answer(json!({}))
    }

    fn notes(&self) -> Option<PathBuf> {
        let state = self.state.as_ref()?;
        Some(state.join(&self.session))
    }

    fn prompt(&mut self, params: &Value) -> Next {
        self.is_cancelled = false;
        let blocks = params["prompt"].as_array().cloned().unwrap_or_default();
        let prompt = blocks[0]["text"].as_str().unwrap_or_default().to_owned();
        let known = self.notes().and_then(|notes| fs::read_to_string(notes).ok());
        if let Some(notes) = self.notes() {
            let known = known.clone().unwrap_or_default();
            if let Err(error) = fs::write(notes, format!("{known}{prompt}\n")) {
                return Next::Refuse(json!({ "code": -32603, "message": error.to_string() }));
            }
        }
        let lines = prompt.rsplit("Now the user says:\n\n").next().unwrap_or_default();
        for line in lines.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let next = match word {
                "recall" => {
                    self.say(&format!(
                        "known: {:?}, told: {:?}",
                        known.as_deref().unwrap_or(""),
                        prompt
                    ));
                    Next::GoOn
                }
                "attached" => {
                    self.say(&blocks[1].to_string());
                    Next::GoOn
                }
                _ => self.step(word, rest),
            };
            if !matches!(next, Next::GoOn) {
                return next;
            }
        }
        Next::Answer(
            json!({ "stopReason": "end_turn", "usage": { "totalTokens": 5, "inputTokens": 3, "outputTokens": 2 } }),
        )
    }

    fn step(&mut self, word: &str, rest: &str) -> Next {
        match word {
            "say" => self.say(rest),
            "model" => self.say(&self.model),
            "think" => self.update(json!({ "sessionUpdate": "agent_thought_chunk", "content": text(rest) })),
            "plan" => {
                let entries: Vec<_> = rest
                    .split('|')
                    .map(|entry| json!({ "content": entry, "priority": "high", "status": "pending" }))
                    .collect();
                self.update(json!({ "sessionUpdate": "plan", "entries": entries }));
            }
            "unknown" => self.update(json!({ "sessionUpdate": "colour_changed", "colour": "red" })),
            "tool" => self.tool(rest),
            "open-tool" => self.update(json!({ "sessionUpdate": "tool_call", "toolCallId": rest, "title": "looks around", "kind": "search", "status": "in_progress" })),
            "ask" => self.ask(rest),
            "read" => {
                let params = json!({ "sessionId": self.session, "path": self.path(rest) });
                let answer = self.request("fs/read_text_file", params);
                self.say(&shown(answer, |result| result["content"].to_string()));
            }
            "write" => {
                let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
                let params = json!({ "sessionId": self.session, "path": self.path(path), "content": format!("{content}\n") });
                let answer = self.request("fs/write_text_file", params);
                self.say(&shown(answer, |_| "written".to_owned()));
            }
            "directly" => {
                let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
                match fs::write(self.path(path), format!("{content}\n")) {
                    Ok(()) => self.say("written directly"),
                    Err(error) => self.say(&format!("not written: {}", error.kind())),
                }
            }
            "run" => self.run(rest),
            "begin" => {
                let params = json!({ "sessionId": self.session, "command": rest });
                let answer = self.request("terminal/create", params);
                self.say(&shown(answer, |result| result["terminalId"].to_string()));
            }
            "flood" => (0..rest.parse().unwrap_or(0)).for_each(|number| self.say(&format!("{number} "))),
            "wait" => {
                self.say("waiting");
                while !self.is_cancelled {
                    if self.next().is_none() {
                        std::process::exit(0);
                    }
                }
                self.say("stopped");
                return Next::Answer(json!({ "stopReason": "cancelled" }));
            }
            "stubborn" => {
                self.say("never");
                // It reads nothing, and SIGTERM is all that it listens to.
                loop {
                    std::thread::park();
                }
            }
            "die" => std::process::abort(),
            "exit" => {
                eprintln!("I am leaving");
                std::process::exit(rest.parse().unwrap_or(0));
            }
            "garbage" => {
                (0..20).for_each(|_| print("}{ what is this"));
                io::stdin().lines().for_each(drop);
            }
            "huge" => {
                let size: usize = rest.parse().unwrap_or(0);
                self.say(&"x".repeat(size));
            }
            "stop" => return Next::Answer(json!({ "stopReason": rest })),
            "refuse" => return Next::Refuse(json!({ "code": -32603, "message": "internal error", "data": rest })),
            "sign-in" => return Next::Refuse(json!({ "code": -32000, "message": "authentication required" })),
            _ => {}
        }
        Next::GoOn
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.join(Path::new(path))
    }

    fn say(&self, words: &str) {
        self.update(json!({ "sessionUpdate": "agent_message_chunk", "content": text(words) }));
    }

    fn update(&self, update: Value) {
        send(&json!({
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": { "sessionId": self.session, "update": update },
        }));
    }

    /// A call of a tool, told in several steps.
    fn tool(&self, id: &str) {
        let told = |output: &str| {
            json!([
                { "type": "content", "content": text(output) },
                { "type": "diff", "path": "/w/a", "oldText": null, "newText": "b" },
                { "type": "hologram", "shape": "cube" },
            ])
        };
        self.update(
            json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "counts", "kind": "execute" }),
        );
        self.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "rawInput": { "to": 2 } }));
        self.update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "content": told("one\n") }),
        );
        self.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "content": told("one\n") }));
        self.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed" }));
    }

    fn ask(&mut self, command: &str) {
        let option = |kind: &str| json!({ "optionId": format!("own-{kind}"), "name": format!("name of {kind}"), "kind": kind });
        let params = json!({
            "sessionId": self.session,
            "toolCall": { "toolCallId": "asked", "title": "runs something", "kind": "execute", "rawInput": { "command": command } },
            "options": [option("allow_once"), option("allow_always"), option("reject_once")],
        });
        let answer = self.request("session/request_permission", params);
        self.say(&shown(answer, |result| result["outcome"].to_string()));
    }

    fn run(&mut self, command: &str) {
        let params =
            json!({ "sessionId": self.session, "command": command, "env": [{ "name": "A", "value": "1" }] });
        let created = match self.request("terminal/create", params) {
            Ok(created) => created,
            Err(error) => return self.say(&format!("error: {}", error["message"])),
        };
        let terminal = json!({ "sessionId": self.session, "terminalId": created["terminalId"] });
        self.update(json!({
            "sessionUpdate": "tool_call", "toolCallId": "terminal", "title": command, "kind": "execute", "status": "in_progress",
            "content": [{ "type": "terminal", "terminalId": created["terminalId"] }],
        }));
        let exit = self.request("terminal/wait_for_exit", terminal.clone());
        let output = self.request("terminal/output", terminal.clone());
        self.update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "terminal", "status": "completed" }),
        );
        let released = self.request("terminal/release", terminal.clone());
        let gone = self.request("terminal/output", terminal);
        self.say(&format!(
            "{} {} {} {}",
            shown(exit, Value::to_string),
            shown(output, |result| format!(
                "{} {}",
                result["output"], result["truncated"]
            )),
            shown(released, Value::to_string),
            shown(gone, Value::to_string),
        ));
    }

    /// Asks something, and waits for the answer. Whoever is told to stop meanwhile notes it.
    fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = format!("agent-{}", self.next_id);
        send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let Some(mut message) = self.next() else {
                std::process::exit(0);
            };
            if message["id"] == id.as_str() {
                return match message.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }
}

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

fn shown(answer: Result<Value, Value>, show: impl FnOnce(&Value) -> String) -> String {
    match answer {
        Ok(result) => show(&result),
        Err(error) => format!("error: {}", error["message"]),
    }
}
