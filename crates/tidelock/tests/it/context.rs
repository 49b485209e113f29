//! Questions about code through the command line.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Outcome, wait_for};
use crate::plan_stage::Project;

/// Code that has nothing to do with the questions, and code that has.
const FILES: [(&str, &str); 4] = [
    (
        "src/retry.rs",
        "//! How often something is tried again.\n\n\
         /// How long to wait before the next attempt.\n\
         pub fn back_off_after(attempt: u32) -> u64 {\n    let doubled = 1_u64 << attempt.min(10);\n    doubled * 100\n}\n\n\
         pub fn unrelated() -> u8 {\n    7\n}\n",
    ),
    (
        "src/main.rs",
        "mod retry;\n\nfn main() {\n    println!(\"{}\", retry::back_off_after(3));\n}\n",
    ),
    (
        "src/colour.rs",
        "pub fn mix(red: u8, blue: u8) -> u8 {\n    red ^ blue\n}\n",
    ),
    ("notes.txt", "nothing of interest\n"),
];

fn project() -> Project {
    Project::with_git(&FILES)
}

/// Waits until the index of the project can be used, so that two questions have the same ground.
fn wait_for_index(project: &Project) {
    wait_for("the index", || {
        let list = project.run(&["index", "list", "--json"]).expect(0).json();
        let states = list["indexes"].as_array().unwrap().iter();
        states.map(|index| &index["state"]).eq([&json!("ready")])
    });
}

#[track_caller]
fn ask(project: &Project, arguments: &[&str]) -> Outcome {
    let line: Vec<&str> = ["context"].iter().chain(arguments).copied().collect();
    project.run(&line).expect(0)
}

#[track_caller]
fn asked(project: &Project, arguments: &[&str]) -> Value {
    let line: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    ask(project, &line).json()
}

#[track_caller]
fn nothing_matches(project: &Project, arguments: &[&str]) {
    let line: Vec<&str> = ["context", "--json"].iter().chain(arguments).copied().collect();
    let answer = project.run(&line).expect(1).json();
    assert_eq!(
        (&answer["outcome"], paths(&answer)),
        (&json!("nothing_matched"), vec![]),
        "{answer}"
    );
}

fn paths(answer: &Value) -> Vec<&str> {
    let fragments = answer["fragments"].as_array().unwrap().iter();
    fragments
        .map(|fragment| fragment["path"].as_str().unwrap())
        .collect()
}

/// The code and the exit code of a question that is refused.
#[track_caller]
fn refused(project: &Project, arguments: &[&str], exit: i32) -> Value {
    let line: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    project.run(&line).expect(exit).json()["error"]["code"].clone()
}

#[test]
fn a_question_is_answered_with_what_belongs_to_it_and_a_pipe_gets_just_that() {
    let project = project();
    let first = asked(&project, &["back_off_after"]);
    assert_eq!(first["root"], project.root.to_str().unwrap());
    assert!(paths(&first).contains(&"src/retry.rs"), "{first}");
    let index = &first["index"]["state"];
    assert!(["building", "ready"].map(Value::from).contains(index), "{index}");
    wait_for_index(&project);

    let question = ["--only", "keyword,symbols", "how long to wait: back_off_after"];
    let answer = asked(&project, &question);
    let told = ask(&project, &question);
    assert_eq!(told.stdout, answer["text"].as_str().unwrap());
    assert_eq!(paths(&answer)[0], "src/retry.rs", "{answer}");
    assert!(told.stdout.contains("## src/retry.rs:"), "{told:?}");
    assert!(
        told.stdout
            .contains("pub fn back_off_after(attempt: u32) -> u64 {"),
        "{told:?}"
    );
    assert!(!told.stdout.contains("src/colour.rs"), "{told:?}");
    let tokens = answer["tokens"].as_u64().unwrap();
    assert!((1..=8000).contains(&tokens), "{tokens}");
    let expected = " of 8,000 tokens, ";
    assert!(told.stderr.contains(expected), "{told:?}");
    assert!(
        told.stderr.contains(" of 2 files, ") || told.stderr.contains(" of 1 file, "),
        "{told:?}"
    );
    // Nobody failed, so that this is all there is to say.
    assert_eq!(told.stderr.lines().count(), 1, "{told:?}");
}

#[test]
fn from_below_the_root_and_from_standard_input_it_is_the_same_question() {
    let project = project();
    let below = asked(&project, &["--in", "src", "back_off_after"]);
    assert_eq!(below["root"], project.root.to_str().unwrap());
    assert!(paths(&below).contains(&"src/retry.rs"), "{below}");

    let mut command = project.command(&["context", "-", "--json"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"back_off_after\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(paths(&answer).contains(&"src/retry.rs"), "{answer}");
}

#[test]
fn an_answer_is_explained() {
    let project = project();
    ask(&project, &["back_off_after"]);
    wait_for_index(&project);
    let told = ask(&project, &["--explain", "--without", "recent", "back_off_after"]).stdout;
    let root = format!("workspace  {}", project.root.display());
    for part in [
        root.as_str(),
        "index      ready, ",
        "answer     ",
        "STRATEGY ",
        "PIECE ",
        "FOUND BY",
        "src/retry.rs:",
        "keyword #1: ",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let row = |name: &str| {
        told.lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(row("keyword ").contains(" ran "), "{told}");
    assert!(row("recent ").contains(" left out "), "{told}");
    assert!(!told.contains("pub fn"), "the text is not shown as well: {told}");
}

#[test]
fn the_sandbox_of_a_plan_is_read_in_place_of_the_workspace() {
    let project = project();
    let id = project.open(&[]);
    project.work(
        &id,
        "echo 'pub fn jitter_of_the_sandbox() {}' > src/jitter.rs; rm src/colour.rs",
    );
    let question = ["--only", "keyword", "jitter_of_the_sandbox"];
    let with: Vec<&str> = ["--plan", &id].iter().chain(&question).copied().collect();
    let inside = asked(&project, &with);
    assert_eq!(paths(&inside), ["src/jitter.rs"], "{inside}");
    assert_eq!(inside["plan"], id.as_str());
    nothing_matches(&project, &question);
    nothing_matches(&project, &["--plan", "@", "--only", "keyword", "mix red blue"]);
    let focused = asked(&project, &["--plan", "@", "--focus", "src/jitter.rs"]);
    assert_eq!(focused["plan"], id.as_str());
}

#[test]
fn nothing_found_and_no_room_are_answers() {
    let project = project();
    // That something is being changed in a plan has nothing to do with a question about something else.
    let plan = project.open(&[]);
    project.work(&plan, "echo '// more' >> src/colour.rs");
    let nothing = project.run(&["context", "asdfqwer zxcv"]).expect(1);
    assert_eq!(nothing.stdout, "");
    assert!(
        nothing.stderr.starts_with("nothing matched, 0 of 8,000 tokens, "),
        "{nothing:?}"
    );
    nothing_matches(&project, &["asdfqwer zxcv"]);
    let none = asked(&project, &["--budget", "0", "back_off_after"]);
    assert_eq!(
        (&none["tokens"], &none["text"], &none["fragments"]),
        (&json!(0), &json!(""), &json!([]))
    );
    let tight = ask(&project, &["--budget", "1", "back_off_after"]);
    assert_eq!(tight.stdout, "");
    assert!(tight.stderr.contains(", 0 of 1 tokens, "), "{tight:?}");
}

#[test]
fn what_cannot_be_asked_is_refused_and_says_why() {
    let project = project();
    fs::create_dir(project.root.join("empty")).unwrap();
    for (arguments, exit, code) in [
        (&["context", ""] as &[&str], 2, "usage"),
        (&["context", "  \n"], 2, "usage"),
        (&["context"], 2, "usage"),
        (&["context", "--budget", "many", "x"], 2, "usage"),
        (&["context", "--deadline", "soon", "x"], 2, "usage"),
        (&["context", "--plan", "@", "--in", ".", "x"], 2, "usage"),
        (&["context", "--in", "missing", "x"], 4, "path_unusable"),
        (&["context", "--in", "notes.txt", "x"], 4, "path_unusable"),
        (&["context", "--focus", "missing.rs", "x"], 4, "path_unusable"),
        (&["context", "--focus", "src", "x"], 4, "path_unusable"),
        (&["context", "--plan", "@", "x"], 4, "plan_not_found"),
        (&["context", "--only", "guessing", "x"], 4, "strategy_not_found"),
        (
            &["context", "--without", "guessing", "x"],
            4,
            "strategy_not_found",
        ),
        (&["context", "--deadline", "1h", "x"], 1, "context_too_large"),
        (&["context", "--budget", "99999999", "x"], 1, "context_too_large"),
        (&["index", "rebuild", "missing"], 4, "path_unusable"),
        (&["index", "rm", "notes.txt"], 4, "path_unusable"),
    ] {
        assert_eq!(refused(&project, arguments, exit), code, "{arguments:?}");
    }
    let wrong = project.run(&["context", "--only", "guessing", "x"]).expect(4);
    assert_eq!(wrong.stdout, "");
    assert!(wrong.stderr.contains("`guessing`"), "{wrong:?}");
    assert!(
        wrong.stderr.contains("keyword"),
        "it says which there are: {wrong:?}"
    );
    assert!(wrong.stderr.contains("\nhint: "), "{wrong:?}");

    project.open(&[]);
    let missing = ["context", "--plan", "@", "--focus", "src/missing.rs", "x"];
    assert_eq!(refused(&project, &missing, 4), "focus_not_found");
}

#[test]
fn indexes_are_listed_made_anew_and_removed() {
    let project = project();
    let root = project.root.to_str().unwrap();
    let none = project.run(&["index", "list"]).expect(0).stdout;
    assert!(none.starts_with("No indexes are in use."), "{none}");
    ask(&project, &["back_off_after"]);
    wait_for_index(&project);
    let list = project.run(&["index", "list"]).expect(0).stdout;
    let row = list.lines().nth(1).unwrap_or_default();
    assert!(row.starts_with(root), "{list}");
    assert!(row.contains(" ready "), "{list}");
    let listed = project.run(&["index", "list", "--json"]).expect(0).json();
    assert_eq!(listed["indexes"][0]["files"], 4, "{listed}");

    let rebuilt = project.run(&["index", "rebuild", "src"]).expect(0).stdout;
    assert!(
        rebuilt.starts_with(&format!("Rebuilding the index of {root}.")),
        "{rebuilt}"
    );
    wait_for_index(&project);

    for (removed, text) in [
        (true, format!("Removed the index of {root}.\n")),
        (false, format!("There was no index of {root}.\n")),
    ] {
        assert_eq!(project.run(&["index", "rm"]).expect(0).stdout, text, "{removed}");
    }
    let list = project.run(&["index", "list", "--json"]).expect(0).json();
    assert_eq!(list, json!({ "indexes": [] }));
    // It comes back with the next question, and the answer is the same.
    let answer = asked(&project, &["back_off_after"]);
    assert!(paths(&answer).contains(&"src/retry.rs"), "{answer}");
    wait_for_index(&project);
}
