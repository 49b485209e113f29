//! A file system that does not answer: whoever asks for something there waits, and nobody else does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Running, finish_within, halt, signal, wait_for};
use crate::plan_stage::Project;
use crate::requests::send;
use crate::tools::skip;

/// How many ask for each thing at once. The daemon has one thread for everybody.
const AT_ONCE: usize = 4;

/// A directory whose file system can be stopped. Dropping it kills the server, so that whoever waits gets an error.
struct Mount {
    directory: PathBuf,
    server: Running,
}

impl Mount {
    fn over(directory: &Path) -> Result<Mount, String> {
        let server = Command::new("bindfs")
            // The system asks each time, and remembers nothing.
            .args(["-f", "-o", "attr_timeout=0,entry_timeout=0"])
            .args([directory, directory])
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("bindfs: {error}"))?;
        let mut mount = Mount {
            directory: directory.to_owned(),
            server: Running(server),
        };
        let mut has_ended = false;
        wait_for("the mount", || {
            has_ended = mount.server.0.try_wait().unwrap().is_some();
            let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
            has_ended || mounts.contains(directory.to_str().unwrap())
        });
        match has_ended {
            true => Err("bindfs cannot mount here".to_owned()),
            false => Ok(mount),
        }
    }

    fn stop(&self) {
        halt(self.server.0.id());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        signal(self.server.0.id(), Signal::KILL);
        drop(self.server.0.wait());
        drop(Command::new("umount").arg("--lazy").arg(&self.directory).output());
    }
}

#[test]
fn whoever_asks_about_a_dead_file_system_keeps_nobody_else() {
    let project = Project::with_git(&[("a.txt", "one\n")]);
    let dead = Project::in_world_at(
        &project.world,
        "dead",
        &[("b.txt", "one\n"), ("src/b.py", "x = 1\n")],
    );
    let mount = match Mount::over(&dead) {
        Ok(mount) => mount,
        Err(reason) => return skip(&format!("a dead file system: {reason}")),
    };
    let there = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.current_dir(&dead);
        finish_within(command, Duration::from_secs(60))
    };
    let opened = there(&["plan", "new", "--json"]).expect(0).json();
    let plan = opened["id"].as_str().unwrap().to_owned();
    there(&["plan", "exec", &plan, "--", "sh", "-c", "echo two > b.txt"]).expect(0);
    there(&["context", "x"]);
    let home = project.world.home();
    let session = send(
        &home,
        "POST",
        "/v1/sessions",
        &json!({ "directory": dead }).to_string(),
    )
    .unwrap();
    let session = session.body["id"].as_str().unwrap().to_owned();

    mount.stop();
    // Below its root, which can be found without asking.
    let directory = dead.join("src");
    let file = directory.join("b.py");
    let asked: Vec<(&str, String, Value)> = vec![
        ("POST", "/v1/plans".to_owned(), json!({ "directory": directory })),
        (
            "POST",
            "/v1/sessions".to_owned(),
            json!({ "directory": directory }),
        ),
        (
            "GET",
            format!("/v1/sessions?directory={}", directory.display()),
            Value::Null,
        ),
        (
            "POST",
            "/v1/jobs".to_owned(),
            json!({ "command": { "argv": ["true"], "directory": directory } }),
        ),
        (
            "POST",
            format!("/v1/sessions/{session}/turns"),
            json!({ "prompt": "go on" }),
        ),
        (
            "POST",
            "/v1/lsp/hover".to_owned(),
            json!({ "path": file, "line": 1, "column": 1 }),
        ),
        ("POST", "/v1/lsp/servers".to_owned(), json!({ "path": file })),
        (
            "GET",
            format!("/v1/lsp/config?workspace={}", directory.display()),
            Value::Null,
        ),
        (
            "POST",
            "/v1/context".to_owned(),
            json!({ "query": "x", "directory": directory }),
        ),
        ("POST", format!("/v1/plans/{plan}/refresh"), json!({})),
        ("POST", "/v1/plans/apply".to_owned(), json!({ "plans": [plan] })),
        ("GET", format!("/v1/plans/{plan}/diff"), Value::Null),
        ("GET", "/v1/workspaces".to_owned(), Value::Null),
    ];
    let waiting: Vec<_> = asked
        .iter()
        .flat_map(|one| std::iter::repeat_n(one, AT_ONCE))
        .map(|(method, path, body)| {
            let (home, method, path) = (home.clone(), (*method).to_owned(), path.clone());
            let body = if body.is_null() {
                String::new()
            } else {
                body.to_string()
            };
            thread::spawn(move || {
                let answer = send(&home, &method, &path, &body);
                (method, path, answer)
            })
        })
        .collect();

    let here = |arguments: &[&str]| finish_within(project.command(arguments), Duration::from_secs(20));
    for _ in 0..2 {
        here(&["status", "--json"]).expect(0);
        here(&["job", "run", "--wait", "--", "true"]).expect(0);
        here(&["exec", "--apply", "--", "sh", "-c", "echo more >> a.txt"]).expect(0);
        here(&["plan", "list"]).expect(0);
        here(&["session", "list"]).expect(0);
        here(&["context", "more"]);
        here(&["needs"]);
        here(&["workspace", "list"]).expect(0);
    }
    assert_eq!(project.tree()["a.txt"], "one\nmore\nmore\n");
    let waited = waiting.iter().filter(|request| !request.is_finished()).count();
    assert!(
        waited > 2 * AT_ONCE,
        "only {waited} requests wait for the file system"
    );

    drop(mount);
    for request in waiting {
        let (method, path, answer) = request.join().unwrap();
        assert!(answer.is_ok(), "{method} {path}: {answer:?}");
    }
    here(&["down"]).expect(0);
}
