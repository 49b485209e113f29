//! A world with language servers that misbehave on demand, and the ways to ask them.
//!
//! A server named `alpha` serves files that end in `.alpha`. Its script says what it does wrong; what it was sent, and
//! which processes it had, is in files of the world.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{World, program, signal, wait_for};
use crate::requests::{Answer, send};

/// A server of a stage.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    name: &'static str,
    script: Value,
    flags: &'static [&'static str],
    settings: Value,
}

impl Player {
    /// A server that behaves as its script says.
    pub(crate) fn new(name: &'static str, script: Value) -> Player {
        Player {
            name,
            script,
            flags: &[],
            settings: json!({}),
        }
    }

    /// With flags of the fault server.
    pub(crate) fn flags(self, flags: &'static [&'static str]) -> Player {
        Player { flags, ..self }
    }

    /// With more members of its configuration.
    pub(crate) fn settings(self, settings: Value) -> Player {
        Player { settings, ..self }
    }
}

/// A world with servers, and a daemon in it.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) world: World,
}

/// Stands for the server's file in a script.
pub(crate) const FILE_URI: &str = "FILE-URI";

/// What stands in every file. The third line has an error in it.
pub(crate) const TEXT: &str = "first line\nsecond line\nthe third has an ERROR in it\n";

impl Stage {
    pub(crate) fn new(players: &[Player]) -> Stage {
        let stage = Stage::without_daemon(players);
        stage.world.run(&["up"]).expect(0);
        stage
    }

    pub(crate) fn without_daemon(players: &[Player]) -> Stage {
        let stage = Stage { world: World::new() };
        fs::create_dir_all(stage.work().join(".git")).unwrap();
        let mut servers = serde_json::Map::new();
        for player in players {
            let name = player.name;
            let mut script =
                json!({ "pids": stage.path(name, "pids"), "record": stage.path(name, "record") });
            merge(&mut script, &player.script);
            let path = stage.path(name, "script");
            let uri = format!("file://{}", stage.file(name).display());
            fs::write(&path, script.to_string().replace(FILE_URI, &uri)).unwrap();
            let mut command = vec![fault_server().display().to_string()];
            command.extend(player.flags.iter().map(ToString::to_string));
            command.extend(["--script".to_owned(), path.display().to_string()]);
            let mut server = json!({
                "command": command, "languages": { name: [format!(".{name}")] }, "roots": [".git"],
            });
            merge(&mut server, &player.settings);
            servers.insert(name.to_owned(), server);
            fs::write(stage.file(name), TEXT).unwrap();
        }
        fs::create_dir_all(stage.world.path().join("home")).unwrap();
        let configuration = json!({ "servers": servers }).to_string();
        fs::write(stage.world.path().join("home/lsp.json"), configuration).unwrap();
        stage
    }

    /// The workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.world.path().join("project")
    }

    /// The file of a server.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.work().join(format!("main.{name}"))
    }

    /// A file that a script may wait for.
    pub(crate) fn path(&self, name: &str, kind: &str) -> PathBuf {
        self.world.path().join(format!("{name}.{kind}.json"))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> io::Result<Answer> {
        send(&self.world.home(), "POST", path, &body.to_string())
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        send(&self.world.home(), "GET", path, "").unwrap()
    }

    /// The body of a query about the beginning of a server's file.
    pub(crate) fn query(&self, name: &str, more: &Value) -> Value {
        let mut query = json!({ "path": self.file(name), "line": 1, "column": 1 });
        merge(&mut query, more);
        query
    }

    #[track_caller]
    pub(crate) fn ask(&self, verb: &str, name: &str, more: &Value) -> Answer {
        self.post(&format!("/v1/lsp/{verb}"), &self.query(name, more))
            .unwrap()
    }

    #[track_caller]
    pub(crate) fn hover(&self, name: &str) -> Answer {
        self.ask("hover", name, &json!({}))
    }

    /// The text of a hover, which must be answered, and the generation that answered.
    #[track_caller]
    pub(crate) fn hovered(&self, name: &str) -> (String, u64) {
        told(&self.hover(name))
    }

    /// Sends a query and does not wait for its answer.
    pub(crate) fn ask_and_leave_open(&self, path: &str, body: &Value) -> UnixStream {
        let home = self.world.home();
        let token = fs::read_to_string(home.token_file()).unwrap();
        let mut stream = UnixStream::connect(home.socket()).unwrap();
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len(),
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// A server as it is listed.
    #[track_caller]
    pub(crate) fn server(&self, name: &str) -> Value {
        let list = self.get("/v1/lsp/servers").body;
        let servers = list["servers"].as_array().unwrap();
        let found = servers.iter().find(|server| server["server"] == name);
        found.cloned().unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn id(&self, name: &str) -> String {
        let server = self.server(name);
        server["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{name} was used: {server}"))
            .to_owned()
    }

    /// A path of the API about one server. The id has a character in it that stands for itself in a path.
    #[track_caller]
    pub(crate) fn server_path(&self, name: &str, action: &str) -> String {
        format!("/v1/lsp/servers/{}{action}", self.id(name))
    }

    /// Sends a request of the protocol itself, and returns its result.
    #[track_caller]
    pub(crate) fn steer(&self, name: &str, method: &str, params: &Value) -> Value {
        let request = json!({ "method": method, "params": params });
        let answer = self.post(&self.server_path(name, "/request"), &request).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["result"].clone()
    }

    #[track_caller]
    pub(crate) fn restart(&self, name: &str) -> Value {
        let answer = self
            .post(&self.server_path(name, "/restart"), &json!({}))
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// The processes that a server has had, in the order of their starts.
    pub(crate) fn pids(&self, name: &str, role: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.path(name, "pids")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let pid = words.next()?.parse().ok()?;
            (words.next()? == role).then_some(pid)
        });
        lines.collect()
    }

    /// Kills the newest process of a server.
    #[track_caller]
    pub(crate) fn kill_server(&self, name: &str) -> u32 {
        let pid = *self.pids(name, "server").last().expect("it was started");
        signal(pid, Signal::KILL);
        pid
    }

    /// What a server was sent.
    pub(crate) fn record(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name, "record")).unwrap_or_default();
        // The last line may not be whole yet.
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The messages of a method that a server was sent.
    pub(crate) fn sent(&self, name: &str, method: &str) -> Vec<Value> {
        let mut record = self.record(name);
        record.retain(|message| message["method"] == method);
        record
    }

    /// Waits until a server has been sent so many messages of a method.
    #[track_caller]
    pub(crate) fn wait_for_sent(&self, name: &str, method: &str, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} of {method}"), || {
            self.sent(name, method).len() >= count
        });
        self.sent(name, method)
    }

    /// A number of a server in `/metrics`.
    #[track_caller]
    pub(crate) fn metric(&self, metric: &str, name: &str) -> Option<f64> {
        let text = metrics(&self.world);
        let start = format!("{metric}{{server=\"{name}\"");
        let line = text.lines().find(|line| line.starts_with(&start))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

/// The text of a hover that was answered, and the generation that answered.
#[track_caller]
pub(crate) fn told(answer: &Answer) -> (String, u64) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = answer.body["text"].as_str().unwrap_or_default();
    // A document that is opened again has a newer version, and which one is nobody's business.
    let text = match text.split_once(", ") {
        Some((version, rest)) if version.starts_with("version ") => rest.to_owned(),
        _ => text.to_owned(),
    };
    let generation = answer.body["answered_by"][0]["generation"].as_u64();
    (text, generation.unwrap_or_else(|| panic!("{answer:?}")))
}

/// What a decent server says about a file as it was written.
pub(crate) fn usual_hover() -> String {
    format!("{} bytes", TEXT.len())
}

/// The status of a problem, its stable code, and what it says.
pub(crate) fn problem(answer: &Answer) -> (u16, &str, &str) {
    let member = |name: &str| answer.body[name].as_str().unwrap_or_default();
    (answer.status, member("code"), member("detail"))
}

/// All numbers, as text.
#[track_caller]
pub(crate) fn metrics(world: &World) -> String {
    use std::io::Read as _;
    let home = world.home();
    let token = fs::read_to_string(home.token_file()).unwrap();
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        token.trim()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Lays members over an object, whole values at a time.
fn merge(below: &mut Value, above: &Value) {
    let members = above.as_object().unwrap().clone();
    below.as_object_mut().unwrap().extend(members);
}

/// Whether a process is there and not only waits to be reaped.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Every process that was started with a script of this world: servers, shims and grandchildren.
pub(crate) fn players_of(world: &World) -> Vec<u32> {
    let marker = format!("{}/", world.path().display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let is_player = words
            .next()
            .is_some_and(|program| program.ends_with(b"fault-server"));
        if is_player && words.any(|word| word.starts_with(marker.as_bytes())) && lives(pid) {
            found.push(pid);
        }
    }
    found
}

/// The fault server, which belongs to another package: it lies beside our program, or is built once.
pub(crate) fn fault_server() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let path = program().with_file_name("fault-server");
            if !path.exists() {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let mut build = Command::new(cargo);
                build.args(["build", "--package", "lsp", "--bin", "fault-server"]);
                assert!(
                    build.status().unwrap().success(),
                    "the fault server cannot be built"
                );
            }
            assert!(path.exists(), "there is no fault server at {}", path.display());
            path
        })
        .clone()
}
