//! `tidelock run`: from a prompt to a diff, and on to the workspace or not.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use crate::harness::finish;
use crate::job_stage::{NOBODY, left_behind};
use crate::plan_stage::{Project, files};
use crate::session_stage::{BEFORE, objects, sequences, text};

const SCRIPT: &str = r"
steps:
  - think: I look first.
  - say: I read a file.
  - read: a.txt
  - edit: {path: a.txt, find: two, replace: zwei}
  - write: {path: c.txt, text: new}
  - shell: echo from the shell > d.txt; echo said
  - say: That is all.
";

#[test]
fn a_prompt_is_answered_reviewed_applied_and_taken_back() {
    let project = Project::with_git(&BEFORE);
    let done = finish(project.talk(SCRIPT, &[])).expect(0);
    // Standard output is what the agent says.
    assert_eq!(done.stdout, "I read a file.\nThat is all.\n");
    for part in [
        "(thinking) I look first.",
        "* read a.txt: done\n",
        "* edit a.txt",
        "* write c.txt: done\n",
        "* $ echo from the shell > d.txt; echo said\n    said\n",
        "3 files changed",
        "is sealed. Next:",
        "  tidelock plan diff ",
        "  tidelock plan apply ",
        "Continue with: tidelock session send ",
    ] {
        assert!(done.stderr.contains(part), "{part:?} is not in {}", done.stderr);
    }
    assert_eq!(
        project.tree(),
        files(&BEFORE),
        "nothing reaches the workspace by itself"
    );
    project.run(&["plan", "apply", "@"]).expect(0);
    let after = files(&[
        ("a.txt", "one\nzwei\n"),
        ("b.txt", "b\n"),
        ("c.txt", "new"),
        ("d.txt", "from the shell\n"),
    ]);
    assert_eq!(project.tree(), after);
    project.run(&["plan", "undo", "@"]).expect(0);
    assert_eq!(project.tree(), files(&BEFORE));
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn programs_get_every_event_once_and_the_whole_at_the_end() {
    let project = Project::with_git(&BEFORE);
    let done = finish(project.talk(SCRIPT, &["--json"])).expect(0);
    assert_eq!(done.stderr, "");
    let told = objects(&done);
    assert!(told[0]["opened"]["id"].is_string(), "{}", told[0]);
    assert!(told[1]["accepted"]["turn"]["id"].is_string(), "{}", told[1]);
    let numbers = sequences(&told);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(text(&told), "I read a file.\nThat is all.\n");
    let end = &told[told.len() - 2]["end"];
    assert_eq!(
        (&end["state"], end["sequence"].as_u64()),
        (&json!("done"), numbers.last().copied())
    );
    let last = &told[told.len() - 1];
    assert_eq!(
        (
            &last["session"]["state"],
            &last["turn"]["state"],
            &last["plan"]["state"],
            &last["outcome"]["outcome"]
        ),
        (&json!("idle"), &json!("done"), &json!("sealed"), &json!("sealed")),
        "{last}"
    );
    assert_eq!(last["session"]["id"], told[0]["opened"]["id"]);
    assert_eq!(last["turn"]["id"], told[1]["accepted"]["turn"]["id"]);
}

#[test]
fn without_a_model_a_rehearsal_answers_and_that_is_said() {
    let project = Project::with_git(&BEFORE);
    let done = project.run(&["run", "make it better"]).expect(0);
    assert!(
        done.stderr.starts_with("note: no model is configured"),
        "{}",
        done.stderr
    );
    assert!(done.stdout.contains("make it better"), "{}", done.stdout);
    assert_eq!(project.tree(), files(&BEFORE));
    let names = project.run(&["plan", "diff", "@", "--name-only"]).expect(0);
    assert_ne!(names.stdout, "", "it does something");
}

/// Whoever has an agent installed is told how to use it, or what is missing for it.
#[test]
fn agents_that_are_installed_are_named_with_what_is_missing() {
    let project = Project::with_git(&BEFORE);
    let programs = project.world.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for name in ["claude", "codex", "codex-acp", "opencode"] {
        let path = programs.join(name);
        std::fs::write(&path, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.env("PATH", &path);
        finish(command)
    };
    let list = run(&["agent", "list", "--json"]).expect(0).json();
    let agents = list["agents"].as_array().unwrap();
    let state = |id: &str| {
        let agent = agents.iter().find(|agent| agent["id"] == id);
        agent.map(|agent| (agent["state"].clone(), agent["missing"].clone()))
    };
    let adapter = "`claude` is installed. Install its ACP adapter: npm install -g @agentclientprotocol/claude-agent-acp";
    assert_eq!(state("claude"), Some((json!("missing"), json!(adapter))));
    for ready in ["codex", "opencode"] {
        assert_eq!(state(ready), Some((json!("ready"), json!(null))), "{ready}");
    }
    let done = run(&["run", "make it better"]).expect(0);
    for note in [
        "answers: it only plays a script\n",
        "note: found on this machine: `codex`, `opencode`; use one with: tidelock run --agent codex PROMPT\n",
        format!("note: claude: {adapter}\n").as_str(),
    ] {
        assert!(done.stderr.contains(note), "{note:?} is not in {}", done.stderr);
    }
    // Once it is installed, it is found, also by the daemon that runs already.
    std::fs::copy(programs.join("opencode"), programs.join("claude-agent-acp")).unwrap();
    let list = run(&["agent", "list"]).expect(0).stdout;
    let claude = list.lines().find(|line| line.starts_with("claude ")).unwrap();
    assert!(claude.contains("ready"), "{list}");
}

#[test]
fn the_end_of_a_turn_is_the_exit_code() {
    let project = Project::new(&BEFORE);
    let failing = "steps: [{say: before}, {fail: it cannot be done}]";
    let failed = finish(project.talk(failing, &[])).expect(1);
    assert_eq!(failed.stdout, "before\n");
    for part in ["The turn failed: it cannot be done", "It changed nothing."] {
        assert!(
            failed.stderr.contains(part),
            "{part:?} is not in {}",
            failed.stderr
        );
    }
    let refused = finish(project.talk("steps: [{dance: now}]", &["--json"]));
    let error = objects(&refused).pop().unwrap();
    assert_eq!(error["error"]["code"], "invalid_prompt", "{error}");
    let listed = project.run(&["session", "list", "--json"]).expect(0).json();
    assert_eq!(
        listed["sessions"].as_array().unwrap().len(),
        1,
        "no empty session stays: {listed}"
    );
    let nobody = project
        .run(&["run", "--agent", "nobody", "--json", "x"])
        .expect(4);
    assert_eq!(objects(&nobody)[0]["error"]["code"], "agent_not_found");
}

#[test]
fn with_apply_what_was_done_is_in_the_workspace() {
    let project = Project::with_git(&BEFORE);
    let done = finish(project.talk("steps: [{write: {path: c.txt, text: new}}]", &["--apply"])).expect(0);
    assert!(done.stderr.contains(" applied: 1 file."), "{}", done.stderr);
    let after = [BEFORE[0], BEFORE[1], ("c.txt", "new")];
    assert_eq!(project.tree(), files(&after));
    // What a turn that failed has done is not applied.
    let failing = "steps: [{write: {path: d.txt, text: half}}, {fail: no}]";
    let failed = finish(project.talk(failing, &["--apply"])).expect(1);
    assert!(
        failed
            .stderr
            .contains("It was not applied, because the turn didn't finish."),
        "{}",
        failed.stderr
    );
    assert_eq!(project.tree(), files(&after));
}

#[test]
fn a_session_goes_on_with_what_it_is_sent() {
    let project = Project::with_git(&BEFORE);
    let echo = project.script("echo", "steps: [{say: 'you said {{prompt}}'}]");
    finish(project.talk("steps: [{say: first}]", &[])).expect(0);
    let more = project
        .run(&["run", "--session", "@", "--script", &echo, "second"])
        .expect(0);
    assert_eq!(more.stdout, "you said second\n");
    // A prompt can come from standard input.
    let mut piped = project.command(&["session", "send", "@", "--script", &echo, "-"]);
    piped
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"third").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8(output.stdout).unwrap()),
        (Some(0), "you said third\n".to_owned())
    );
    let session = project.session("@");
    let turns = session["turns"].as_array().unwrap();
    let prompts: Vec<&str> = turns
        .iter()
        .map(|turn| turn["prompt"].as_str().unwrap())
        .collect();
    assert_eq!(prompts, ["third", "second", "do it"]);
}

#[test]
fn what_an_agent_says_is_never_a_command_to_the_terminal() {
    let project = Project::new(&BEFORE);
    let script = r#"steps: [{say: "a\e]0;owned\ab"}, {shell: "printf '\\033[2Jgone'"}]"#;
    let done = finish(project.talk(script, &[])).expect(0);
    assert!(
        !done.stdout.contains('\u{1b}') && !done.stderr.contains('\u{1b}'),
        "{done:?}"
    );
    assert_eq!(done.stdout, "a\u{fffd}]0;owned\u{fffd}b\n");
}
