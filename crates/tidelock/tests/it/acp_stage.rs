//! An editor that is made of lines: it starts `tidelock acp`, and keeps all that was sent and told.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Running, finish, program, wait_for};
use crate::plan_stage::Project;
use crate::tools::skip;

/// Whatever takes this long does not come any more.
const MESSAGE_LIMIT: Duration = Duration::from_secs(60);
/// How many messages may wait for the test. A program that is faster is held up, as by any editor.
const MESSAGES: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Editor {
    running: Running,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// All lines in both directions, as `acp-peer check` reads them.
    transcript: Vec<String>,
    /// All that was told, in order: updates, questions and answers.
    pub(crate) told: Vec<Value>,
    next_id: u64,
    stderr: PathBuf,
}

impl Editor {
    /// Starts the program in a project, where each prompt is answered by a script.
    pub(crate) fn with_script(project: &Project, script: &str) -> Editor {
        let path = project.script("script", script);
        let mut editor = Editor::start(project, &["--script", &path]);
        editor.initialize();
        editor
    }

    pub(crate) fn start(project: &Project, options: &[&str]) -> Editor {
        Editor::with_room(project, options, MESSAGES)
    }

    /// The same with room for so many messages that the test has not heard yet. It reads no others.
    pub(crate) fn with_room(project: &Project, options: &[&str], room: usize) -> Editor {
        let mut command = project.command(&["acp"]);
        command.args(options);
        let directory = tempfile::tempdir_in(project.world.path()).unwrap().keep();
        let stderr = directory.join("stderr");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, messages) = sync_channel(room);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Nothing else than the protocol may be there.
                let message = serde_json::from_str(&line)
                    .unwrap_or_else(|error| json!({ "broken": line, "why": error.to_string() }));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Editor {
            stdin: child.stdin.take(),
            running: Running(child),
            messages,
            transcript: Vec::new(),
            told: Vec::new(),
            next_id: 1,
            stderr,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.0.id()
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        self.transcript
            .push(format!("> {}", line.chars().take(10_000).collect::<String>()));
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers a question of the program.
    pub(crate) fn reply(&mut self, question: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        let Ok(message) = self.messages.recv_timeout(MESSAGE_LIMIT) else {
            let log = std::fs::read_to_string(&self.stderr).unwrap();
            panic!("nothing comes any more, after {:#?}\n{log}", self.told);
        };
        assert!(message.get("broken").is_none(), "{message}");
        self.transcript.push(format!("< {message}"));
        self.told.push(message.clone());
        message
    }

    /// Hears until something was told, which may have been before.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.told.iter().find(|message| is_it(message)) {
            return message.clone();
        }
        loop {
            let message = self.hear();
            if is_it(&message) {
                return message;
            }
        }
    }

    /// The whole answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait_for(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The error that a request is answered with.
    #[track_caller]
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].clone()
    }

    #[track_caller]
    pub(crate) fn initialize(&mut self) -> Value {
        self.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": {} }),
        )
    }

    /// Opens a session, and returns its id once the commands are told as well.
    #[track_caller]
    pub(crate) fn open(&mut self, project: &Project) -> String {
        let new = self.call("session/new", json!({ "cwd": project.root, "mcpServers": [] }));
        let id = new["sessionId"].as_str().unwrap().to_owned();
        self.wait_for(|message| {
            message["params"]["sessionId"] == json!(id) && update(message)["availableCommands"].is_array()
        });
        id
    }

    #[track_caller]
    pub(crate) fn load(&mut self, project: &Project, session: &str) -> Value {
        self.call(
            "session/load",
            json!({ "sessionId": session, "cwd": project.root, "mcpServers": [] }),
        )
    }

    /// Sends a prompt, and returns the id of the request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
    }

    /// Sends a prompt, waits for the end of its turn, and returns why that ended.
    #[track_caller]
    pub(crate) fn ask(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        let answer = self.answer(id);
        let reason = answer["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// The question that the program asks about a permission.
    #[track_caller]
    pub(crate) fn question(&mut self) -> Value {
        self.wait_for(|message| message["method"] == "session/request_permission")
    }

    /// All updates of one kind, in order.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.told.iter().map(update);
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .cloned()
            .collect()
    }

    /// All that was said in one voice.
    pub(crate) fn said(&self, kind: &str) -> String {
        let texts = self.updates(kind).into_iter();
        texts
            .map(|update| update["content"]["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// What the agent itself said: not what we say around it.
    pub(crate) fn agent_said(&self) -> String {
        let is_of_an_item = |update: &Value| {
            let id = update["messageId"].as_str().unwrap();
            let end = id.rsplit('-').next().unwrap();
            id.contains('-') && end.bytes().all(|byte| byte.is_ascii_digit())
        };
        let texts = self
            .updates("agent_message_chunk")
            .into_iter()
            .filter(is_of_an_item);
        texts
            .map(|update| update["content"]["text"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn forget(&mut self) {
        self.told.clear();
    }

    /// Closes its input, and checks that the program ends by itself and that every message was as it should be.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        drop(self.stdin.take());
        let mut status = None;
        wait_for("the program to end", || {
            status = self.running.0.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(0));
        while let Ok(message) = self.messages.recv_timeout(MESSAGE_LIMIT) {
            self.transcript.push(format!("< {message}"));
        }
        self.conforms();
    }

    /// Every message that was told fits the schema of the protocol.
    #[track_caller]
    pub(crate) fn conforms(&self) {
        let Some(peer) = peer() else { return };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(self.transcript.join("\n").as_bytes()).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut command = Command::new(peer);
        command.arg("check").stdin(file);
        let checked = finish(command);
        assert_eq!(checked.code, Some(0), "{}\n{}", checked.stdout, checked.stderr);
    }
}

/// What a message tells about a session.
pub(crate) fn update(message: &Value) -> &Value {
    &message["params"]["update"]
}

/// The program with the published library, if it was built.
pub(crate) fn peer() -> Option<PathBuf> {
    let target = program().parent().unwrap().parent().unwrap().to_path_buf();
    let peer = target.join("peers/acp/debug/acp-peer");
    if peer.is_file() {
        return Some(peer);
    }
    skip("`acp-peer` was not built; `cargo xtask test` builds it");
    None
}
