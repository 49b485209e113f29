//! Writes through the API and the command line that would leave the sandbox: refused, with nothing changed. The daemon itself is
//! confined by nobody, so here it is the daemon that looks.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::signal;
use crate::job_stage::Beside;
use crate::plan_escapes::STRATEGIES;
use crate::plan_fire::{Image, assert_same, image};
use crate::plan_stage::{Project, files};
use crate::requests::send;

const BEFORE: [(&str, &str); 2] = [("a.txt", "a\n"), ("sub/b.txt", "b\n")];
/// How often it is written while somebody exchanges what is on the way.
const RACED: usize = 300;

/// Paths that no write may have.
const NO_PATHS: [&str; 16] = [
    "../out",
    "../outside/victim",
    "sub/../../outside/victim",
    "..",
    ".",
    "",
    "/",
    "/etc/tidelock-escape",
    "sub/./b.txt",
    "sub//b.txt",
    ".git/hooks/pre-commit",
    ".git/config",
    ".GIT/config",
    ".Git/hooks/post-checkout",
    "sub/.git/config",
    "nul\u{0}l",
];

/// The outside, and a plan whose sandbox has links that lead there.
struct Scene {
    project: Project,
    plan: String,
    outside: PathBuf,
    before: Image,
}

impl Scene {
    fn new(strategy: &str) -> Scene {
        let project = Project::with_git(&BEFORE);
        let outside = project.world.path().canonicalize().unwrap().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "not to be touched\n").unwrap();
        let plan = project.open(&["--strategy", strategy]);
        let line = format!(
            "ln -s {0} out; ln -s {0}/victim link; ln -s /proc/self/root{0} magic; mkfifo pipe; ln -s sub inner",
            outside.display()
        );
        project.work(&plan, &line);
        let before = image(&outside);
        Scene {
            project,
            plan,
            outside,
            before,
        }
    }

    /// What the daemon says to one write: its status, and the code of a refusal.
    fn change(&self, operation: &Value) -> (u16, String) {
        let body = json!({ "operations": [operation] }).to_string();
        let path = format!("/v1/plans/{}/changes", self.plan);
        let answer = send(&self.project.world.home(), "POST", &path, &body).unwrap();
        (
            answer.status,
            answer.body["code"].as_str().unwrap_or_default().to_owned(),
        )
    }

    #[track_caller]
    fn check(&self, about: &str) {
        assert_same(&image(&self.outside), &self.before, about);
        assert_eq!(self.project.tree(), files(&BEFORE), "{about}");
    }
}

/// All writes to a path.
fn writes(path: &str) -> [Value; 7] {
    [
        json!({ "do": "write", "path": path, "text": "escaped\n" }),
        json!({ "do": "edit", "path": path, "find": "touched", "replace": "escaped" }),
        json!({ "do": "delete", "path": path }),
        json!({ "do": "rename", "from": "a.txt", "path": path }),
        json!({ "do": "rename", "from": path, "path": "taken" }),
        json!({ "do": "symlink", "path": path, "target": "a.txt" }),
        json!({ "do": "chmod", "path": path, "executable": true }),
    ]
}

#[test]
fn no_write_through_the_api_leaves_the_sandbox() {
    for strategy in STRATEGIES {
        let scene = Scene::new(strategy);
        for path in NO_PATHS {
            for operation in writes(path) {
                let (status, code) = scene.change(&operation);
                assert!(
                    (400..500).contains(&status) && !code.is_empty(),
                    "{strategy}: {operation}: {status} {code}"
                );
            }
        }
        for target in ["../out", "../../etc/passwd", "/etc/passwd", "sub/../../out"] {
            let (status, code) = scene.change(&json!({ "do": "symlink", "path": "made", "target": target }));
            assert!(
                (400..500).contains(&status),
                "{strategy}: {target}: {status} {code}"
            );
        }
        // What a link leads to is not reached through it.
        for path in ["out/victim", "out/new", "magic/victim", "link/x", "inner/b.txt"] {
            for operation in writes(path) {
                let (status, code) = scene.change(&operation);
                assert!(
                    (400..500).contains(&status),
                    "{strategy}: {operation}: {status} {code}"
                );
                scene.check(&format!("{strategy}: {operation}"));
            }
        }
        // The link itself may be written or deleted: then it is the link that goes, and never what it leads to. A pipe has no
        // reader, and nobody waits for one.
        for path in ["link", "out", "pipe"] {
            for operation in writes(path) {
                let (status, _) = scene.change(&operation);
                assert!(status < 500, "{strategy}: {operation}: {status}");
                scene.check(&format!("{strategy}: {operation}"));
            }
        }
        scene.project.run(&["plan", "show", &scene.plan]).expect(0);
        scene.check(strategy);
    }
}

#[test]
fn a_path_that_is_exchanged_for_a_link_meanwhile_leads_nowhere() {
    for strategy in STRATEGIES {
        let scene = Scene::new(strategy);
        let line = format!(
            "mkdir d; echo begun; while :; do mv -T d away 2>/dev/null; ln -sn {} d 2>/dev/null; rm -f d 2>/dev/null; \
             mv -T away d 2>/dev/null; done",
            scene.outside.display()
        );
        let command = scene
            .project
            .command(&["plan", "exec", &scene.plan, "--", "sh", "-c", &line]);
        let mut racing = Beside::start(&scene.project.world, command);
        racing.wait_for_stdout("begun");
        let mut written = 0;
        for number in 0..RACED {
            let operation = match number % 3 {
                0 => json!({ "do": "write", "path": "d/victim", "text": "escaped\n" }),
                1 => json!({ "do": "write", "path": format!("d/new{number}"), "text": "escaped\n" }),
                _ => json!({ "do": "delete", "path": "d/victim" }),
            };
            let (status, code) = scene.change(&operation);
            assert!(status < 500, "{strategy}: {operation}: {status} {code}");
            written += usize::from(status < 300);
        }
        signal(racing.pid(), Signal::INT);
        racing.wait_code();
        println!("{strategy}: {written} of {RACED} writes met a directory");
        scene.check(strategy);
    }
}

#[test]
fn no_write_through_the_command_line_leaves_the_sandbox() {
    let scene = Scene::new("copy");
    for path in [
        "../out",
        "/etc/tidelock-escape",
        ".git/hooks/x",
        ".GIT/config",
        "out/victim",
    ] {
        for arguments in [
            &["--write", path][..],
            &["--delete", path],
            &["--rename", "a.txt", path],
        ] {
            let mut line = vec!["plan", "record", &scene.plan, "--json"];
            line.extend(arguments);
            let refused = scene.project.run(&line);
            let code = refused.json()["error"]["code"].as_str().unwrap().to_owned();
            assert!(
                refused.code != Some(0)
                    && ["path_not_allowed", "file_refused", "file_not_found"].contains(&&*code),
                "{arguments:?}: {refused:?}"
            );
            scene.check(&format!("{arguments:?}"));
        }
    }
}
