//! A daemon full of text that means harm: names, titles, prompts, outputs, paths and diffs that would be markup in a page and
//! commands in a terminal.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{World, finish};
use crate::job_stage::{ended, submit};
use crate::lsp_stage::{Player, Stage};
use crate::plan_stage::{Project, last_object};
use crate::requests::send;

/// Would run in a page. Whatever runs sets `window.taken`.
pub(crate) const MARKUP: &str = "<script>window.taken=1</script>\"><img src=x onerror=window.taken=2>'--></title></textarea><svg onload=window.taken=3>";

/// Is in all of them, and in nothing of ours.
pub(crate) const MARK: &str = "window.taken";

/// Would clear a terminal, name its window, make a link, colour what follows and move the cursor; in both ways that there are
/// to write such a sequence.
pub(crate) const SEQUENCES: &str = "\u{1b}[2J\u{1b}[H\u{1b}]0;evil title\u{7}\u{1b}]8;;http://evil.example/\u{1b}\\evil\
     link\u{1b}]8;;\u{1b}\\\u{1b}[31m\u{1b}[1;1Hevil\u{1b}[?1049h\u{1b}P+q\u{1b}\\\u{9b}2J\u{9d}0;evil\u{9c}\u{8}\u{8}\u{7f}";

/// Turns around what is read, or hides in it.
pub(crate) const INVISIBLE: &str = "\u{202e}gpj.exe\u{2066}\u{200b}\u{200d}\u{feff}\u{2069}\u{e0041}";

/// A line that is wider than any screen.
const LONG_LINE: usize = 1 << 20;
const MANY_LINES: usize = 10_000;

/// The world, and the project in it.
#[derive(Debug)]
pub(crate) struct Hostile {
    pub(crate) project: Project,
    pub(crate) plan: String,
    pub(crate) job: String,
    pub(crate) session: String,
    pub(crate) waiting: String,
    pub(crate) server: String,
}

/// One page.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The name of its picture.
    pub(crate) name: &'static str,
    pub(crate) path: String,
    /// What is on it when there is something to show.
    pub(crate) shows: Shows,
}

/// Whether hostile text is on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    Hostile,
    OnlyOurs,
}

/// The pages that are there without anything to show.
pub(crate) fn places() -> Vec<Place> {
    let place = |name, path: &str, shows| Place {
        name,
        path: path.to_owned(),
        shows,
    };
    vec![
        place("overview", "/", Shows::Hostile),
        place("sessions", "/sessions", Shows::Hostile),
        place("plans", "/plans", Shows::Hostile),
        place("jobs", "/jobs", Shows::Hostile),
        place("context", "/context", Shows::Hostile),
        place("workspaces", "/workspaces", Shows::Hostile),
        place("servers", "/servers", Shows::OnlyOurs),
        place("processes", "/processes", Shows::OnlyOurs),
        place("breakers", "/breakers", Shows::Hostile),
        place("events", "/events", Shows::Hostile),
        place("errors", "/docs/errors", Shows::OnlyOurs),
    ]
}

/// As it stands in a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl Hostile {
    pub(crate) fn new() -> Hostile {
        let noise = format!("{MARKUP}\n{SEQUENCES}\n{INVISIBLE}\n{}\n", "l".repeat(20_000));
        let stage = Stage::without_daemon(&[Player::new("alpha", json!({ "stderr": noise }))]);
        stage.world.run(&["up"]).expect(0);
        stage.hovered("alpha");
        let server = stage.server("alpha")["id"].as_str().unwrap().to_owned();
        let project = project_in(stage.world);
        name_breakers(&project.world);
        let job = run_job(&project.world);
        let plan = make_plan(&project);
        let session = talk(&project);
        let waiting = ask(&project);
        Hostile {
            project,
            plan,
            job,
            session,
            waiting,
            server,
        }
    }

    /// All pages, with those of single things.
    pub(crate) fn places(&self) -> Vec<Place> {
        let place = |name, path: String, shows| Place { name, path, shows };
        let root = encoded(self.project.root.to_str().unwrap());
        let query = encoded(MARKUP);
        let mut places = places();
        places.extend([
            place("session", format!("/sessions/{}", self.session), Shows::Hostile),
            place(
                "session-waiting",
                format!("/sessions/{}", self.waiting),
                Shows::Hostile,
            ),
            place("plan", format!("/plans/{}", self.plan), Shows::Hostile),
            place(
                "plan-discard",
                format!("/plans/{}/discard", self.plan),
                Shows::Hostile,
            ),
            place("job", format!("/jobs/{}", self.job), Shows::Hostile),
            place("server", format!("/servers/{}", self.server), Shows::Hostile),
            place(
                "breaker-history",
                format!("/breakers/history?name={}", encoded(&breaker_names()[0])),
                Shows::Hostile,
            ),
            place(
                "context-answer",
                format!("/context?directory={root}&query={query}"),
                Shows::Hostile,
            ),
        ]);
        places
    }
}

/// A project at a path that would be markup.
fn project_in(world: World) -> Project {
    let directory = world.path().canonicalize().unwrap();
    let root: PathBuf = directory.join(format!("pro\"><img src=x onerror={MARK}=4>{INVISIBLE}"));
    fs::create_dir(&root).unwrap();
    let project = Project { world, root };
    project.write("a.txt", &format!("one\n{MARKUP}\ntwo\n"));
    project.write(&format!("src/{}.rs", "deep/".repeat(3)), "");
    project.write("src/main.rs", &format!("/// {MARKUP}\nfn taken() {{}}\n"));
    project
}

/// Breakers have at most 128 bytes and no control characters.
fn breaker_names() -> [String; 3] {
    [
        "<script>window.taken=5</script>\"><img src=x onerror=window.taken=6>".to_owned(),
        format!("{MARK}{INVISIBLE}"),
        "w".repeat(128),
    ]
}

fn name_breakers(world: &World) {
    for name in breaker_names() {
        let path = format!("/v1/breakers/{}/force", encoded(&name));
        let answer = send(&world.home(), "POST", &path, r#"{"state":"open"}"#).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// A job whose title, command and output are hostile.
fn run_job(world: &World) -> String {
    let output = world.path().join("output");
    let mut bytes = format!("{MARKUP}\n{SEQUENCES}\n{INVISIBLE}\n").into_bytes();
    bytes.extend(b"\xff\xfe\xc0\xaf\x80 not UTF-8\n");
    bytes.extend(vec![b'x'; LONG_LINE]);
    bytes.push(b'\n');
    for number in 0..MANY_LINES {
        bytes.extend(format!("line {number} {MARKUP}\n").bytes());
    }
    fs::write(&output, bytes).unwrap();
    let line = format!("cat {}; cat {0} >&2; : '<b>{MARK}</b>'", output.display());
    let title = format!("{MARKUP}{INVISIBLE}");
    let job = submit(world, &["--title", &title], &["sh", "-c", &line]);
    assert_eq!(ended(world, &job)["state"], "succeeded");
    job
}

/// A sealed plan whose title, paths and texts are hostile.
fn make_plan(project: &Project) -> String {
    let title = format!("{MARKUP}{INVISIBLE}");
    let noise = project.world.path().join("noise");
    fs::write(
        &noise,
        format!("{SEQUENCES}\n{INVISIBLE}\n{MARKUP}\n{}\n", "y".repeat(LONG_LINE)),
    )
    .unwrap();
    let lines: String = (0..MANY_LINES)
        .map(|number| format!("{number} {MARK}\n"))
        .collect();
    let many = project.world.path().join("many");
    fs::write(&many, lines).unwrap();
    let line = format!(
        "cat {} >> a.txt; cat {} > many.txt; printf 'new\\n' > \"$1\"; printf 'new\\n' > \"$2\"; printf '\\377\\376\\n' > bytes.txt",
        noise.display(),
        many.display()
    );
    let names = [
        format!("<img src=x onerror={MARK}=7>\"'&.txt"),
        format!("{}{INVISIBLE}.txt", "\u{1b}[31m\u{1b}]0;evil\u{7}"),
    ];
    let mut arguments = vec!["exec", "--title", &title, "--json", "--", "sh", "-c", &line, "sh"];
    arguments.extend(names.iter().map(String::as_str));
    let outcome = project.run(&arguments).expect(0);
    last_object(&outcome)["plan"]["id"].as_str().unwrap().to_owned()
}

/// A session whose title, prompt, words, thoughts and tools are hostile.
fn talk(project: &Project) -> String {
    let text = format!("{MARKUP}\n{SEQUENCES}\n{INVISIBLE}");
    let script = json!({ "steps": [
        { "think": text },
        { "say": text },
        { "say": "m".repeat(100_000) },
        { "read": "a.txt" },
        { "write": { "path": format!("<i>{MARK}.txt"), "text": text } },
        { "shell": format!("printf '\\033[2J\\033]0;evil\\007<b>{MARK}</b>\\n'") },
        { "fail": text },
    ] });
    let path = project.script("hostile", &as_script(&script));
    let mut command = project.command(&["run", "--script", &path, "--json"]);
    command.arg(format!("{MARKUP}\n{INVISIBLE}"));
    let outcome = finish(command).expect(1);
    assert_eq!(last_object(&outcome)["turn"]["state"], "failed", "{outcome:?}");
    newest_session(project)
}

/// A session that waits for an answer to a hostile question.
fn ask(project: &Project) -> String {
    let script = json!({ "steps": [{ "ask": format!("{MARKUP} {SEQUENCES} {INVISIBLE}") }] });
    let path = project.script("asking", &as_script(&script));
    let mut command = project.command(&["run", "--script", &path, "--detach", "--json"]);
    command.arg(MARKUP);
    finish(command).expect(0);
    newest_session(project)
}

/// A script as it may be written: YAML takes control characters only by their number.
fn as_script(script: &Value) -> String {
    let escaped = |letter: char| match letter {
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    script.to_string().chars().map(escaped).collect()
}

fn newest_session(project: &Project) -> String {
    let session: Value = project.session("@");
    session["id"].as_str().unwrap().to_owned()
}
