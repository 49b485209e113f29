//! The server: a decent one, as far as the script lets it.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use lsp::{Decoder, Frame, FrameLimits, Message, MessageId, ResponseError};
use process::Tasks;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    signal::unix::{SignalKind, signal},
};

use crate::{
    Anything,
    documents::Documents,
    family::{self, Options},
    faults::{self, Afterwards, Proper},
    output::{Output, file_exists, pause},
    script::{Diagnostics, Fault, Initialize, Progress, Said, SaidKind, Script, Sync, Trigger},
    transport,
};

/// How often it is looked whether the parent lives.
const PARENT_LOOK: Duration = Duration::from_millis(100);

struct Server {
    script: Script,
    start: u64,
    output: Arc<Output>,
    tasks: Tasks,
    record: Option<File>,
    documents: Documents,
    on: BTreeMap<String, Trigger>,
    cancelled: Vec<Value>,
    requests: u64,
}

/// Serves until the end.
pub(crate) async fn serve(options: Options) -> Anything<()> {
    let mut script = Script::read(&options)?;
    let start = script.pids.as_deref().map_or(1, family::count_start);
    if let Some(pids) = &script.pids {
        family::note_pid(pids, "server", start)?;
    }
    if let Some(text) = &script.stderr {
        std::io::stderr().write_all(text.as_bytes())?;
    }
    if let Some(code) = script.exit_at_start {
        faults::exit(code, "");
    }
    if let Some(kind) = script.grandchild {
        family::spawn_grandchild(&options, kind)?;
    }
    let tasks = Tasks::default();
    if script.trap_term {
        let mut term = signal(SignalKind::terminate())?;
        tasks.spawn("trap", async move { while term.recv().await.is_some() {} });
    }
    let (reader, writer) = transport::open(&options).await?.into_parts();
    let record = script.record.as_deref().map(append).transpose()?;
    let on = std::mem::take(&mut script.on);
    let server = Server {
        script,
        start,
        output: Arc::new(Output::new(writer)),
        tasks,
        record,
        documents: Documents::default(),
        on,
        cancelled: Vec::new(),
        requests: 0,
    };
    server.run(Box::new(reader)).await
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

impl Server {
    async fn run(mut self, mut reader: Box<dyn AsyncRead + Send + Unpin>) -> Anything<()> {
        let mut decoder = Decoder::new(FrameLimits::default());
        loop {
            while let Some(frame) = decoder.next_frame()? {
                let Frame::Body(body) = frame else { continue };
                match self.take(&body).await? {
                    Afterwards::GoOn => {}
                    Afterwards::StopReading => std::future::pending().await,
                    Afterwards::CloseInput => {
                        drop(reader);
                        return std::future::pending().await;
                    }
                }
            }
            let mut room = decoder.room();
            if reader.read_buf(&mut room).await? == 0 {
                if self.script.ignore_exit {
                    std::future::pending().await
                }
                return Ok(());
            }
        }
    }

    async fn take(&mut self, body: &[u8]) -> Anything<Afterwards> {
        if let Some(record) = &mut self.record {
            record.write_all(&[body, b"\n"].concat())?;
        }
        let read = |params: Option<&serde_json::value::RawValue>| -> Anything<Value> {
            Ok(params.map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()))?)
        };
        match Message::parse(body)? {
            Message::Request { id, method, params } => self.request(id, &method, read(params)?).await,
            Message::Notification { method, params } => self.notification(&method, read(params)?).await,
            Message::Response { .. } => Ok(Afterwards::GoOn),
        }
    }

    async fn request(&mut self, id: MessageId, method: &str, params: Value) -> Anything<Afterwards> {
        self.requests += 1;
        if let Some(exit) = self.script.exit_after_requests
            && self.requests > exit.requests
        {
            faults::exit(exit.code, "");
        }
        match method {
            "initialize" => {
                self.initialize(id, &params).await;
                return Ok(Afterwards::GoOn);
            }
            "shutdown" if self.script.ignore_shutdown => return Ok(Afterwards::GoOn),
            _ => {}
        }
        let fault = match self.steer(method, &params).await? {
            Some(fault) => Some(fault),
            None => self.fault_at(method),
        };
        let outcome = self.outcome(method, &params);
        let Some(fault) = fault else {
            self.output.answer(&id, &outcome).await;
            return Ok(Afterwards::GoOn);
        };
        Ok(self
            .commit(
                fault,
                Proper {
                    id: Some(id),
                    outcome,
                },
            )
            .await)
    }

    async fn notification(&mut self, method: &str, params: Value) -> Anything<Afterwards> {
        let encoding = self.script.position_encoding;
        match method {
            "initialized" => self.initialized().await,
            "textDocument/didOpen" => {
                let uri = self.documents.open(&params);
                self.push_diagnostics(uri).await;
            }
            "textDocument/didChange" => {
                let uri = self.documents.change(&params, encoding);
                self.push_diagnostics(uri).await;
            }
            "textDocument/didClose" => {
                let uri = self.documents.close(&params);
                self.push_diagnostics(uri).await;
            }
            "$/cancelRequest" => self.cancelled.push(params["id"].clone()),
            "exit" if !self.script.ignore_exit => faults::exit(0, ""),
            _ => {}
        }
        let fault = match self.steer(method, &params).await? {
            Some(fault) => Some(fault),
            None => self.fault_at(method),
        };
        let nothing = Proper {
            id: None,
            outcome: Ok(Value::Null),
        };
        match fault {
            Some(fault) => Ok(self.commit(fault, nothing).await),
            None => Ok(Afterwards::GoOn),
        }
    }

    async fn commit(&self, fault: Fault, proper: Proper) -> Afterwards {
        if !faults::takes_time(&fault) {
            return faults::commit(&self.output, fault, proper).await;
        }
        let output = Arc::clone(&self.output);
        self.tasks.spawn("fault", async move {
            faults::commit(&output, fault, proper).await;
        });
        Afterwards::GoOn
    }

    /// Takes a command of the test; it may be a fault to commit.
    async fn steer(&mut self, method: &str, params: &Value) -> Anything<Option<Fault>> {
        let Some(command) = method.strip_prefix("fault/") else {
            return Ok(None);
        };
        match command {
            "echo" | "state" => {}
            "on" => {
                let mut params = params.clone();
                let method = params.as_object_mut().and_then(|params| params.remove("method"));
                let method = method.and_then(|method| method.as_str().map(str::to_owned));
                let method = method.ok_or("fault/on wants a method")?;
                self.on.insert(method, serde_json::from_value(params)?);
            }
            "off" => drop(self.on.remove(params["method"].as_str().unwrap_or_default())),
            "say" => self.output.say(&serde_json::from_value(params.clone())?).await,
            "progress" => self.start_progress(serde_json::from_value(params.clone())?),
            name => {
                let mut fault = params.as_object().cloned().unwrap_or_default();
                fault.insert("fault".to_owned(), name.into());
                return Ok(Some(serde_json::from_value(Value::Object(fault))?));
            }
        }
        Ok(None)
    }

    /// The fault that a method meets this time.
    fn fault_at(&mut self, method: &str) -> Option<Fault> {
        let trigger = self.on.get_mut(method)?;
        match &mut trigger.times {
            Some(0) => return None,
            Some(times) => *times -= 1,
            None => {}
        }
        Some(trigger.fault.clone())
    }

    /// What a decent server answers.
    fn outcome(&self, method: &str, params: &Value) -> Result<Value, ResponseError> {
        let place = || {
            let position = &params["position"];
            json!({"uri": params["textDocument"]["uri"], "range": {"start": position, "end": position}})
        };
        Ok(match method {
            "shutdown" => Value::Null,
            "textDocument/hover" => {
                let text = self.script.hover_text.clone();
                let text = text.or_else(|| self.documents.hover(params));
                text.map_or(
                    Value::Null,
                    |text| json!({"contents": {"kind": "plaintext", "value": text}}),
                )
            }
            "textDocument/definition" => place(),
            "textDocument/references" => {
                let lines = 0..self.script.references.unwrap_or(2);
                let uri = &params["textDocument"]["uri"];
                let at = |line| json!({"line": line, "character": 0});
                lines
                    .map(|line| json!({"uri": uri, "range": {"start": at(line), "end": at(line)}}))
                    .collect()
            }
            "textDocument/diagnostic" => {
                let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
                let items = self.documents.diagnostics(uri, self.script.position_encoding);
                json!({"kind": "full", "items": items})
            }
            "fault/echo" => params.clone(),
            "fault/state" => json!({
                "documents": self.documents.state(),
                "cancelled": self.cancelled,
                "requests": self.requests,
                "pid": std::process::id(),
                "start": self.start,
            }),
            _ if method.starts_with("fault/") => Value::Null,
            _ => return Err(ResponseError::method_not_found(method)),
        })
    }

    async fn initialize(&mut self, id: MessageId, params: &Value) {
        if self.script.watch_parent {
            let parent = params["processId"].as_u64().unwrap_or_default();
            self.tasks.spawn("parent", async move {
                while Path::new(&format!("/proc/{parent}")).exists() {
                    pause(PARENT_LOOK).await;
                }
                faults::exit(0, "the parent is gone\n");
            });
        }
        for said in &self.script.before_initialize {
            self.output.say(said).await;
        }
        let outcome = match &self.script.initialize {
            Initialize::Error { code, message } => Err(ResponseError::new(*code, message)),
            _ => Ok(json!({
                "capabilities": self.capabilities(),
                "serverInfo": {"name": "fault-server", "version": self.start.to_string()},
            })),
        };
        let output = Arc::clone(&self.output);
        let how = self.script.initialize.clone();
        // In a task of its own, so that what the client says meanwhile is taken.
        self.tasks.spawn("initialize", async move {
            match how {
                Initialize::Answer | Initialize::Error { .. } => {}
                Initialize::Hang => std::future::pending().await,
                Initialize::HoldUntilFile(path) => file_exists(&path).await,
                Initialize::DelayMs(ms) => pause(Duration::from_millis(ms)).await,
            }
            output.answer(&id, &outcome).await;
        });
    }

    fn capabilities(&self) -> Map<String, Value> {
        let change = match self.script.sync {
            Sync::None => 0,
            Sync::Full => 1,
            Sync::Incremental => 2,
        };
        let encoding = match self.script.position_encoding {
            crate::script::Encoding::Utf8 => "utf-8",
            crate::script::Encoding::Utf16 => "utf-16",
            crate::script::Encoding::Utf32 => "utf-32",
        };
        let mut capabilities = Map::from_iter([
            ("positionEncoding".to_owned(), encoding.into()),
            (
                "textDocumentSync".to_owned(),
                json!({"openClose": true, "change": change, "save": true}),
            ),
            ("hoverProvider".to_owned(), true.into()),
            ("definitionProvider".to_owned(), true.into()),
            ("referencesProvider".to_owned(), true.into()),
        ]);
        if matches!(self.script.diagnostics, Diagnostics::Pull | Diagnostics::Both) {
            let provider = json!({"interFileDependencies": false, "workspaceDiagnostics": false});
            capabilities.insert("diagnosticProvider".to_owned(), provider);
        }
        capabilities.extend(self.script.capabilities.clone());
        capabilities
    }

    async fn initialized(&mut self) {
        for said in &self.script.after_initialized {
            self.output.say(said).await;
        }
        if let Some(progress) = self.script.progress.clone() {
            self.start_progress(progress);
        }
    }

    fn start_progress(&self, progress: Progress) {
        let output = Arc::clone(&self.output);
        let tells_status = self.script.server_status;
        self.tasks.spawn("progress", async move {
            if tells_status {
                output.notify("experimental/serverStatus", status(false)).await;
            }
            work(&output, &progress).await;
            if tells_status {
                output.notify("experimental/serverStatus", status(true)).await;
            }
        });
    }

    async fn push_diagnostics(&self, uri: Option<String>) {
        let pushes = matches!(self.script.diagnostics, Diagnostics::Push | Diagnostics::Both);
        let Some(uri) = uri.filter(|_| pushes) else { return };
        let items = self.documents.diagnostics(&uri, self.script.position_encoding);
        let version = self.documents.version(&uri);
        let params = json!({"uri": uri, "version": version, "diagnostics": items});
        self.output
            .notify("textDocument/publishDiagnostics", params)
            .await;
    }
}

fn status(is_quiet: bool) -> Value {
    json!({"health": "ok", "quiescent": is_quiet})
}

/// Says what work is done, step by step.
async fn work(output: &Output, progress: &Progress) {
    let token = "fault-work";
    let tell = |value: Value| output.notify("$/progress", json!({"token": token, "value": value}));
    let create = Said {
        method: "window/workDoneProgress/create".to_owned(),
        params: json!({"token": token}),
        kind: SaidKind::Request,
    };
    output.say(&create).await;
    tell(json!({"kind": "begin", "title": progress.title, "percentage": 0})).await;
    for step in 1..=progress.steps {
        pause(Duration::from_millis(progress.step_ms)).await;
        let percentage = 100 * step / progress.steps;
        let message = format!("{step}/{}", progress.steps);
        tell(json!({"kind": "report", "message": message, "percentage": percentage})).await;
    }
    if let Some(path) = &progress.hold_until_file {
        file_exists(path).await;
    }
    tell(json!({"kind": "end"})).await;
}
