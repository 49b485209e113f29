//! Context where others take part: a real language server behind it, and an agent that asks for it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use serde_json::{Value, json};

use crate::harness::{finish, program, wait_for_within};
use crate::plan_stage::Project;
use crate::tools::skip;

/// A server that `cargo xtask test` installs.
const SERVER: &str = "basedpyright-langserver";

/// `PATH` with the servers of the tests in front, if the one that is wanted is among them.
fn path_with_servers() -> Option<std::ffi::OsString> {
    let servers = env::var_os("TIDELOCK_TEST_SERVERS").unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = env::split_paths(&servers)
        .chain(env::split_paths(&path))
        .collect();
    let is_there = all.iter().any(|directory| directory.join(SERVER).is_file());
    is_there.then(|| env::join_paths(all).unwrap())
}

#[test]
fn a_real_language_server_says_where_something_is_used() {
    let Some(path) = path_with_servers() else {
        skip(&format!("`{SERVER}` is not installed"));
        return;
    };
    let project = Project::with_git(&[
        ("pyproject.toml", "[project]\nname = \"coast\"\nversion = \"1\"\n"),
        (
            "lighthouse.py",
            "def light_the_lamp(hours: int) -> int:\n    return hours * 60\n",
        ),
        (
            "harbour.py",
            "from lighthouse import light_the_lamp\n\n\ndef open_at_night() -> int:\n    return light_the_lamp(12)\n",
        ),
        // The same word, where no server would look.
        ("notes.txt", "light_the_lamp is mentioned here\n"),
    ]);
    let mut up = project.command(&["up"]);
    up.env("PATH", &path);
    finish(up).expect(0);
    let question = [
        "context",
        "--only",
        "language-server",
        "--focus",
        "lighthouse.py",
        "--json",
        "light_the_lamp",
    ];
    let is_the_call = |fragment: &Value| {
        let text = fragment["text"].as_str().unwrap_or_default();
        fragment["path"] == "harbour.py" && text.contains("return light_the_lamp(12)")
    };
    // A server that is not ready is passed over, and is there for a later question. On a busy machine it is too late three
    // times, and then nobody asks it for half a minute.
    let mut answer = Value::Null;
    wait_for_within("the uses that a server knows", Duration::from_secs(120), || {
        // As long as no server has answered, nothing matches, and the command says so.
        let outcome = project.run(&question);
        assert!(matches!(outcome.code, Some(0 | 1)), "{outcome:?}");
        answer = outcome.json();
        let fragments = answer["fragments"].as_array().unwrap();
        fragments.iter().any(is_the_call)
    });
    let fragments = answer["fragments"].as_array().unwrap();
    let used = fragments.iter().find(|fragment| is_the_call(fragment)).unwrap();
    assert_eq!(used["parts"][0]["strategy"], "language-server", "{answer}");
    assert!(
        !fragments.iter().any(|fragment| fragment["path"] == "notes.txt"),
        "{answer}"
    );
}

/// A model that answers as a script says. It ends with the test.
struct Model {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Model {
    fn start(directory: &Path, script: &Value) -> Self {
        let (path, log) = (
            directory.join("model.json"),
            directory.join("model-requests.jsonl"),
        );
        fs::write(&path, script.to_string()).unwrap();
        let mut child = Command::new(model_server())
            .arg("--script")
            .arg(&path)
            .arg("--log")
            .arg(&log)
            .arg("--until-eof")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut url).unwrap();
        Self {
            child,
            url: url.trim().to_owned(),
            log,
        }
    }

    /// What it was asked, in order.
    fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).unwrap();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// Where the scripted model is, built if it is not there.
fn model_server() -> PathBuf {
    let path = program().with_file_name("model-server");
    if !path.exists() {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--package", "sessions", "--bin", "model-server"]);
        assert!(
            build.status().unwrap().success(),
            "the scripted model cannot be built"
        );
    }
    path
}

/// The agent is given some context before its first step, and gets more when it asks for it: from the plan that it works in.
#[test]
fn an_agent_asks_for_context_and_gets_what_its_plan_has() {
    let project = Project::with_git(&[
        (
            "lighthouse.py",
            "def light_the_lamp(hours):\n    return hours * 60\n",
        ),
        ("notes.txt", "nothing of interest\n"),
    ]);
    let buoy = "def anchor_the_buoy(depth):\n    return depth + 3\n";
    let model = Model::start(
        project.world.path(),
        &json!({"responses": [
            {"calls": [{"tool": "write", "arguments": {"path": "buoy.py", "text": buoy}}]},
            {"calls": [{"tool": "context", "arguments": {"query": "anchor_the_buoy", "budget": 1000}}]},
            {"say": "It adds three."},
        ]}),
    );
    let mut run = project.command(&[
        "run",
        "--agent",
        "model",
        "--json",
        "what does light_the_lamp do?",
    ]);
    run.env("TIDELOCK_MODEL", "scripted")
        .env("TIDELOCK_MODEL_BASE_URL", &model.url);
    finish(run).expect(0);
    let requests = model.requests();
    assert_eq!(requests.len(), 3, "{requests:#?}");
    let opening = requests[0]["body"]["messages"].to_string();
    assert!(opening.contains("return hours * 60"), "{opening}");
    let tools = requests[0]["body"]["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert!(names.contains(&&json!("context")), "{names:?}");
    let last = requests[2]["body"]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(last["role"], "tool", "{last}");
    let told = last["content"].to_string();
    assert!(
        told.contains("buoy.py") && told.contains("return depth + 3"),
        "{told}"
    );
    // It is in the plan, and nowhere else.
    assert!(!project.root.join("buoy.py").exists());
}
