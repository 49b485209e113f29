//! Sessions as they are listed, changed, forked, written down and removed.

use std::fs;

use serde_json::json;

use crate::harness::finish;
use crate::plan_stage::Project;
use crate::session_stage::{BEFORE, objects};

const HELD: &str = "steps: [{say: held}, {ask: go on?}]";

#[test]
fn agents_say_whether_they_are_ready() {
    let project = Project::new(&BEFORE);
    let list = project.run(&["agent", "list", "--json"]).expect(0).json();
    let agents = list["agents"].as_array().unwrap();
    let of = |id: &str| agents.iter().find(|agent| agent["id"] == id).unwrap();
    assert_eq!(
        (&of("rehearsal")["state"], &of("rehearsal")["default"]),
        (&json!("ready"), &json!(true))
    );
    assert_eq!(of("model")["state"], "missing");
    let text = project.run(&["agent", "list"]).expect(0).stdout;
    assert!(text.contains("rehearsal (default)"), "{text}");
}

#[test]
fn prompts_wait_in_their_order_and_can_be_changed_before_they_run() {
    let project = Project::with_git(&BEFORE);
    finish(project.talk(HELD, &["--detach"])).expect(0);
    let echo = project.script("echo", "steps: [{say: 'you said {{prompt}}'}]");
    for prompt in ["one", "two", "three"] {
        let send = ["session", "send", "@", "--detach", "--script", &echo, prompt];
        project.run(&send).expect(0);
    }
    let refused = project
        .run(&["session", "send", "@", "--refuse", "--json", "x"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "turn_active");
    let queue = |arguments: &[&str]| {
        let mut all = vec!["session", "queue", "@"];
        all.extend(arguments);
        all.push("--json");
        let turns = project.run(&all).expect(0).json();
        let turns = turns["turns"].as_array().unwrap().clone();
        let pair = |turn: &serde_json::Value| {
            (
                turn["id"].as_str().unwrap().to_owned(),
                turn["prompt"].as_str().unwrap().to_owned(),
            )
        };
        turns.iter().map(pair).collect::<Vec<_>>()
    };
    let prompts =
        |turns: &[(String, String)]| turns.iter().map(|(_, prompt)| prompt.clone()).collect::<Vec<_>>();
    let waiting = queue(&[]);
    assert_eq!(prompts(&waiting), ["one", "two", "three"]);
    let third = &waiting[2].0;
    assert_eq!(prompts(&queue(&["move", third, "1"])), ["three", "one", "two"]);
    assert_eq!(prompts(&queue(&["edit", third, "drei"])), ["drei", "one", "two"]);
    assert_eq!(prompts(&queue(&["rm", &waiting[0].0])), ["drei", "two"]);
    // When the turn before them is stopped, they go on.
    project.run(&["session", "cancel", "@"]).expect(0);
    let last = project
        .run(&["session", "send", "@", "--script", &echo, "last"])
        .expect(0);
    assert_eq!(last.stdout, "you said last\n");
    let session = project.session("@");
    let turns = session["turns"].as_array().unwrap();
    let told: Vec<(&str, &str)> = turns
        .iter()
        .map(|turn| (turn["prompt"].as_str().unwrap(), turn["state"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("last", "done"),
            ("two", "done"),
            ("drei", "done"),
            ("do it", "cancelled")
        ]
    );
}

#[test]
fn a_session_is_renamed_forked_put_away_written_down_and_removed() {
    let project = Project::with_git(&BEFORE);
    let done = finish(project.talk("steps: [{say: the answer}]", &["--json"])).expect(0);
    let id = objects(&done)[0]["opened"]["id"].as_str().unwrap().to_owned();
    let end = &id[id.len() - 8..];
    let renamed = project.run(&["session", "rename", end, "a talk"]).expect(0);
    assert_eq!(renamed.stdout, format!("{id} is now called a talk\n"));
    let fork = project.run(&["session", "fork", end, "--json"]).expect(0).json();
    assert_eq!(fork["forked_from"]["session"], json!(id));
    let held = project.run(&["session", "rm", &id, "--json"]).expect(4).json();
    assert_eq!(held["error"]["code"], "session_has_forks");
    let fork = fork["id"].as_str().unwrap();
    // A fork has what was said before.
    let told = project
        .run(&["session", "export", fork, "--format", "md"])
        .expect(0);
    assert!(
        told.stdout.contains("the answer") && told.stdout.contains("do it"),
        "{told:?}"
    );
    project.run(&["session", "rm", fork]).expect(0);

    let file = project.world.path().join("talk.json");
    let export = ["session", "export", &id, "--output", file.to_str().unwrap()];
    project.run(&export).expect(0);
    let written: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(written.to_string().contains("the answer"), "{written}");
    let again = project.run(&[&export[..], &["--json"]].concat()).expect(4).json();
    assert_eq!(again["error"]["code"], "file_exists");

    project.run(&["session", "archive", &id]).expect(0);
    let shown = |options: &[&str]| {
        let mut all = vec!["session", "list", "--json"];
        all.extend(options);
        project.run(&all).expect(0).json()["sessions"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((shown(&[]), shown(&["--all"]), shown(&["--in", "."])), (0, 1, 0));
    let refused = project
        .run(&["session", "send", end, "--json", "x"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "session_archived");
    project.run(&["session", "archive", end, "--undo"]).expect(0);
    assert_eq!(shown(&[]), 1);
    project.run(&["session", "rm", &id]).expect(0);
    let gone = project.run(&["session", "show", &id, "--json"]).expect(4).json();
    assert_eq!(gone["error"]["code"], "session_not_found");
}
