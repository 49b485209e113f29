//! An agent that people use, over the protocol, with a scripted model behind it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kernel::{CancellationToken, Deadline, SystemClock};
use protocol::{SessionId, TurnState};
use serde_json::{Value, json};

use crate::acp_kit::{AcpKit, story};

/// It is a large program, and a busy machine takes its time to start it.
const REAL_PATIENCE: Duration = Duration::from_secs(240);

/// Where `cargo xtask test` has installed it, or nothing, and then it is said.
fn installed(program: &str) -> Option<PathBuf> {
    let directories = std::env::var_os("TIDELOCK_TEST_SERVERS").unwrap_or_default();
    let found = std::env::split_paths(&directories)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file());
    if found.is_none() {
        let line = format!("SKIPPED: {program} is not here\n");
        print!("{line}");
        if let Some(report) = std::env::var_os("TIDELOCK_SKIP_REPORT") {
            let report = fs::OpenOptions::new().append(true).create(true).open(report);
            report.unwrap().write_all(line.as_bytes()).unwrap();
        }
    }
    found
}

/// What is installed first is a script that looks for the program of this machine, and finds it only after an install script
/// has run. We run none, so it is looked for here.
fn own_program(script: &Path) -> Option<PathBuf> {
    let packages = script.parent()?.parent()?;
    let machines = ["linux-x64-baseline", "linux-x64", "linux-arm64"];
    let programs = machines.map(|machine| packages.join(format!("opencode-{machine}/bin/opencode")));
    programs.into_iter().find(|program| program.is_file())
}

/// A scripted model. It ends with its standard input.
struct Model {
    child: Child,
    url: String,
    requests: PathBuf,
}

impl Model {
    fn start(directory: &Path, script: &Value) -> Self {
        let (file, requests) = (directory.join("script.json"), directory.join("requests"));
        fs::write(&file, script.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_model-server"))
            .arg("--until-eof")
            .arg("--script")
            .arg(file)
            .arg("--log")
            .arg(&requests)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        Self {
            child,
            url: url.trim().to_owned(),
            requests,
        }
    }

    /// The prompts of the user in the last request that offered tools.
    fn last_prompts(&self) -> Vec<String> {
        let requests = fs::read_to_string(&self.requests).unwrap();
        let requests = requests.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut with_tools = requests.filter(|request: &Value| request["body"]["tools"].is_array());
        let last = with_tools.next_back().unwrap();
        let messages = last["body"]["messages"].as_array().unwrap().iter();
        let from_user = messages.filter(|message| message["role"] == "user");
        from_user.map(|message| message["content"].to_string()).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

fn environment(home: &Path, config: &Path) -> BTreeMap<OsString, OsString> {
    let mut environment = BTreeMap::from([
        (
            OsString::from("PATH"),
            std::env::var_os("PATH").unwrap_or_default(),
        ),
        ("HOME".into(), home.into()),
        ("OPENCODE_CONFIG".into(), config.into()),
    ]);
    for name in ["DATA", "CONFIG", "CACHE", "STATE"] {
        environment.insert(format!("XDG_{name}_HOME").into(), home.join(name).into());
    }
    for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        environment.insert(format!("OPENCODE_DISABLE_{name}").into(), "1".into());
    }
    environment
}

async fn run(kit: &AcpKit, session: SessionId, text: &str) -> (TurnState, Vec<String>) {
    let turn = kit.kit.send(session, text).await.turn.id;
    let scope = CancellationToken::new().scope();
    let deadline = Deadline::after(&SystemClock::shared(), REAL_PATIENCE);
    let ended = kit.kit.sessions.wait(turn, &deadline, &scope).await.unwrap();
    assert_eq!(ended.record.error, None);
    assert_eq!(kit.processes.count(), 0, "a process is left");
    (ended.record.state, story(&kit.kit.events(turn).await))
}

#[tokio::test]
async fn opencode_works_in_a_plan_and_knows_the_next_turn_what_was_said() {
    let Some(program) = installed("opencode").and_then(|program| own_program(&program)) else {
        return;
    };
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = directory.path().canonicalize().unwrap();
    let write = json!({ "filePath": "made.txt", "content": "made\n" });
    let shell = json!({ "command": "echo by shell > shell.txt", "description": "makes a file" });
    let model = Model::start(
        &root,
        &json!({ "rules": [
            { "last_role": "tool", "respond": { "say": "It is done." } },
            { "last_role": "user", "tool": "bash", "contains": "by the shell", "respond": { "calls": [{ "tool": "bash", "arguments": shell }] } },
            { "last_role": "user", "tool": "write", "contains": "write it", "respond": { "calls": [{ "tool": "write", "arguments": write }] } },
        ] }),
    );
    let config = root.join("opencode.json");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": { "baseURL": model.url, "apiKey": "none" },
        "models": { "scripted": { "name": "Scripted", "tool_call": true, "limit": { "context": 100_000, "output": 8_000 } } },
    });
    let settings = json!({
        "model": "own/scripted",
        "small_model": "own/scripted",
        "autoupdate": false,
        "share": "disabled",
        "provider": { "own": provider },
    });
    fs::write(&config, settings.to_string()).unwrap();
    let home = root.join("home");
    fs::create_dir(&home).unwrap();
    let kit = AcpKit::with("", |settings| {
        settings.command = vec![program.display().to_string(), "acp".to_owned()];
        settings.environment = environment(&home, &config);
        settings.write_below = vec![home.clone()];
        settings.start_timeout = REAL_PATIENCE;
    })
    .await;
    let session = kit.kit.session().await;

    let (state, story) = run(&kit, session, "please write it").await;
    assert_eq!(state, TurnState::Done);
    let told = |text: &str| story.iter().any(|line| line == text);
    assert!(told("text: It is done."), "{story:#?}");
    assert!(told("plan: 1 made.txt"), "{story:#?}");
    assert_eq!(kit.file(session, "made.txt").await.as_deref(), Some("made\n"));

    // Another process takes the conversation up.
    let (state, story) = run(&kit, session, "and now by the shell").await;
    assert_eq!(state, TurnState::Done);
    assert!(story.iter().any(|line| line == "plan: 2 shell.txt"), "{story:#?}");
    assert_eq!(
        kit.file(session, "shell.txt").await.as_deref(),
        Some("by shell\n")
    );
    let prompts = model.last_prompts();
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    assert!(prompts[0].contains("please write it"), "{prompts:?}");
    assert!(!kit.kit.workspace.join("made.txt").exists());
}
