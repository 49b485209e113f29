//! Programs of others that join: where they are, and how each is started.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Outcome, finish, program};
use crate::plan_stage::Project;
use crate::tools::skip;

/// Where `cargo xtask test` has installed a program; if nowhere, that is said.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let found = servers()
        .into_iter()
        .map(|directory| directory.join(program))
        .find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("`{program}` is not installed"));
    }
    found
}

fn servers() -> Vec<PathBuf> {
    let directories = std::env::var_os("TIDELOCK_TEST_SERVERS").unwrap_or_default();
    std::env::split_paths(&directories).collect()
}

/// A PATH with the language servers of the tests on it, for a daemon that shall find them.
pub(crate) fn path_with_servers() -> std::ffi::OsString {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let all = servers().into_iter().chain(std::env::split_paths(&usual));
    std::env::join_paths(all).unwrap()
}

/// How a client made with the Python SDK reaches the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Stdio,
    Http,
}

/// A client made with the Python SDK.
#[derive(Debug)]
pub(crate) struct PythonClient<'a> {
    pub(crate) project: &'a Project,
    pub(crate) python: PathBuf,
    pub(crate) reach: Reach,
    /// Which lifecycle it uses: `legacy`, or the version of a protocol without one.
    pub(crate) mode: &'static str,
    pub(crate) name: &'static str,
}

/// The interpreter of the environment that has the SDK.
pub(crate) fn python_with_sdk() -> Option<PathBuf> {
    installed("mcp").map(|program| program.with_file_name("python"))
}

impl PythonClient<'_> {
    /// The client with these steps, ready to be started.
    pub(crate) fn command(&self, steps: &Value) -> Command {
        let world = &self.project.world;
        let server = match self.reach {
            Reach::Stdio => json!({
                "command": program(),
                "args": ["mcp", "--allow-apply"],
                "env": { "TIDELOCK_HOME": world.path().join("home") },
                "cwd": self.project.root,
            }),
            Reach::Http => {
                let status = world.run(&["status", "--json"]).expect(0).json();
                json!({
                    "url": format!("http://{}/mcp", status["address"].as_str().unwrap()),
                    "token": fs::read_to_string(world.home().token_file()).unwrap().trim(),
                })
            }
        };
        let order = json!({ "server": server, "mode": self.mode, "name": self.name, "steps": steps });
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/mcp_client.py");
        let order_file = world.path().join(format!("order-{}.json", self.name));
        fs::write(&order_file, order.to_string()).unwrap();
        let mut command = Command::new(&self.python);
        command
            .arg(script)
            .stdin(fs::File::open(order_file).unwrap())
            .current_dir(world.path());
        command
    }

    /// Does the steps, and returns what came of each.
    #[track_caller]
    pub(crate) fn run(&self, steps: &Value) -> (String, Vec<Value>) {
        answers(&finish(self.command(steps)))
    }
}

/// What a client of the Python SDK said: its protocol, and what came of each step.
#[track_caller]
pub(crate) fn answers(outcome: &Outcome) -> (String, Vec<Value>) {
    assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
    let said: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let protocol = said["protocol"].as_str().unwrap().to_owned();
    (protocol, said["results"].as_array().unwrap().clone())
}

/// A home of a user of their own, in which a program finds nothing of this machine's.
#[derive(Debug)]
pub(crate) struct UserHome(PathBuf);

impl UserHome {
    pub(crate) fn new(project: &Project, name: &str) -> UserHome {
        let path = project.world.path().join(format!("user-{name}"));
        fs::create_dir(&path).unwrap();
        UserHome(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A program as this user runs it, in the project.
    pub(crate) fn dress(&self, mut command: Command, project: &Project) -> Command {
        command
            .env_remove("CODEX_HOME")
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("OPENCODE_CONFIG");
        command
            .env("HOME", &self.0)
            .current_dir(&project.root)
            .stdin(Stdio::null());
        // Some programs believe this more than the system.
        command.env("PWD", &project.root);
        for name in ["DATA", "CONFIG", "CACHE", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), self.0.join(name.to_lowercase()));
        }
        command
    }

    /// Writes a file of this user.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path
    }

    /// `tidelock` as this user runs it.
    #[track_caller]
    pub(crate) fn tidelock(&self, project: &Project, arguments: &[&str]) -> Outcome {
        finish(self.dress(project.command(arguments), project))
    }
}
