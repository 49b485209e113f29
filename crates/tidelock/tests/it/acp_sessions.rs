//! `tidelock acp`: sessions that are found again, editors and daemons that are killed, and two editors at once.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::acp_stage::{Editor, peer, update};
use crate::harness::{finish, program, signal, wait_for};
use crate::job_stage::{NOBODY, left_behind};
use crate::plan_stage::Project;
use crate::session_stage::BEFORE;

/// Says something, and then waits for an answer.
const HELD: &str = "
steps:
  - say: begun
  - write: {path: c.txt, text: half}
  - ask: may I go on?
  - say: ended
";

/// All that it says, if the answer is yes.
const ANSWERED: &str = "begun\nthe test has answered: allow.\nended\n";

fn existing(project: &Project, session: &str) -> Value {
    json!({ "sessionId": session, "cwd": project.root, "mcpServers": [] })
}

fn allow(editor: &mut Editor) {
    let question = editor.question();
    let outcome = json!({ "outcome": "selected", "optionId": "allow_once" });
    editor.reply(&question, json!({ "outcome": outcome }));
}

#[test]
fn a_session_is_found_again_and_all_of_it_is_told() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(
        &project,
        "steps: [{think: hm}, {say: one}, {write: {path: n, text: x}}]",
    );
    let session = editor.open(&project);
    let empty = editor.open(&project);
    assert_eq!(editor.ask(&session, "first"), "end_turn");
    project.script("script", "steps: [{say: two}]");
    assert_eq!(editor.ask(&session, "second"), "end_turn");
    editor.finish();

    let mut later = Editor::start(&project, &[]);
    later.initialize();
    let listed = later.call("session/list", json!({ "cwd": project.root }));
    let listed = listed["sessions"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:#?}");
    assert_eq!(
        (&listed[0]["sessionId"], &listed[0]["cwd"], &listed[0]["title"]),
        (&json!(session), &json!(project.root), &json!("first"))
    );
    assert_eq!(
        later.call("session/list", json!({ "cwd": "/" }))["sessions"],
        json!([])
    );
    let all = later.call("session/list", json!({}));
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1);

    later.load(&project, &session);
    let order: Vec<String> = later
        .told
        .iter()
        .map(update)
        .filter_map(|update| Some(update["content"]["text"].as_str()?.to_owned()))
        .collect();
    assert_eq!(order[..5], ["first", "hm\n", "one\n", "second", "two\n"]);
    assert!(
        order[5].starts_with("Changed in the sandbox: 1 file"),
        "{order:?}"
    );
    assert_eq!(
        later.updates("tool_call").len(),
        2,
        "the call, and what the plan comes to"
    );
    // What was told before it is not told again, and the session goes on.
    later.call("session/close", json!({ "sessionId": session }));
    assert_eq!(
        later.refused("session/prompt", json!({ "sessionId": session, "prompt": [] }))["data"]["code"],
        "session_not_open"
    );
    later.forget();
    later.call("session/resume", existing(&project, &session));
    assert_eq!(later.ask(&session, "/status"), "end_turn");
    assert_eq!(later.said("user_message_chunk"), "");
    assert!(!later.said("agent_message_chunk").contains("one"));

    later.call("session/delete", json!({ "sessionId": session }));
    assert_eq!(later.call("session/list", json!({}))["sessions"], json!([]));
    for (id, cwd, code) in [
        (
            "session_01ARZ3NDEKTSV4RRFFQ69G5FAV",
            project.root.to_str().unwrap(),
            -32002,
        ),
        (empty.as_str(), "/", -32602),
        (empty.as_str(), "project", -32602),
    ] {
        let params = json!({ "sessionId": id, "cwd": cwd, "mcpServers": [] });
        assert_eq!(later.refused("session/load", params)["code"], code, "{id} {cwd}");
    }
    later.finish();
}

#[test]
fn killing_the_editor_loses_nothing() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, HELD);
    let session = editor.open(&project);
    editor.prompt(&session, "do it");
    editor.question();
    editor.conforms();
    signal(editor.pid(), Signal::KILL);
    drop(editor);
    assert_eq!(project.session(&session)["state"], "asking", "it goes on");
    // One that comes back is asked the same, and one that goes in the middle of that takes nothing with it.
    let mut back = Editor::with_script(&project, HELD);
    back.load(&project, &session);
    back.question();
    drop(back);
    // One that has kept what was said is only told what is new, and asked.
    let mut kept = Editor::with_script(&project, HELD);
    kept.call("session/resume", existing(&project, &session));
    kept.question();
    assert_eq!(
        (kept.agent_said(), kept.said("user_message_chunk")),
        (String::new(), String::new())
    );
    assert_eq!(kept.updates("tool_call"), Vec::<Value>::new());
    kept.finish();
    project.run(&["session", "answer", &session, "allow"]).expect(0);
    wait_for("the turn to end", || project.session(&session)["state"] == "idle");
    let mut later = Editor::with_script(&project, HELD);
    later.load(&project, &session);
    assert_eq!(later.agent_said(), ANSWERED);
    assert_eq!(later.said("user_message_chunk"), "do it");
    let asked = later
        .told
        .iter()
        .any(|message| message["method"] == "session/request_permission");
    assert!(!asked, "it was answered long ago");
    later.finish();
}

#[test]
fn when_the_daemon_is_killed_the_prompt_ends_with_what_became_of_it() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, HELD);
    let session = editor.open(&project);
    let prompt = editor.prompt(&session, "do it");
    let question = editor.question();
    project.world.kill();
    let answer = editor.answer(prompt);
    assert_eq!(
        (
            &answer["result"]["stopReason"],
            &answer["result"]["_meta"]["tidelock"]["state"]
        ),
        (&json!("cancelled"), &json!("interrupted")),
        "{answer}"
    );
    assert_eq!(editor.agent_said(), "begun\n", "nothing is told twice");
    let said = editor.said("agent_message_chunk");
    assert!(said.contains("The turn was interrupted"), "{said}");
    assert!(said.contains("Changed in the sandbox: 1 file"), "{said}");
    let withdrawn = editor.wait_for(|message| message["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // The next prompt is taken at once, and one after a daemon that was stopped starts it.
    project.script("script", "steps: [{say: fine}]");
    editor.forget();
    assert_eq!(editor.ask(&session, "go on"), "end_turn");
    assert_eq!(editor.agent_said(), "fine\n");
    project.run(&["down"]).expect(0);
    editor.forget();
    assert_eq!(editor.ask(&session, "go on once more"), "end_turn");
    assert_eq!(editor.agent_said(), "fine\n");
    editor.finish();
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_of_words_is_followed_at_its_place() {
    let project = Project::with_git(&BEFORE);
    let words: Vec<String> = (0..400).map(|number| format!("w{number}")).collect();
    let script = format!("steps: [{{say: {{text: \"{}\", every: 20ms}}}}]", words.join(" "));
    let mut editor = Editor::with_script(&project, &script);
    let session = editor.open(&project);
    let prompt = editor.prompt(&session, "talk");
    editor.wait_for(|message| {
        let text = update(message)["content"]["text"].as_str();
        text.is_some_and(|text| text.contains("w20"))
    });
    project.world.kill();
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "cancelled");
    // What was told is the beginning of all that was to be said: no word is missing, and none is there twice.
    let said = editor.agent_said();
    assert!(
        words.join(" ").starts_with(said.trim_end()) && said.contains("w20"),
        "{said}"
    );
    let mut later = Editor::with_script(&project, "steps: []");
    later.load(&project, &session);
    assert_eq!(later.agent_said(), said, "and it is what was kept");
    later.finish();
    editor.finish();
}

#[test]
fn two_editors_see_the_same_and_prompts_wait_for_each_other() {
    let project = Project::with_git(&BEFORE);
    let mut one = Editor::with_script(&project, HELD);
    let session = one.open(&project);
    let first = one.prompt(&session, "from one");
    one.question();
    let mut other = Editor::start(&project, &[]);
    other.initialize();
    other.load(&project, &session);
    assert_eq!(other.said("user_message_chunk"), "from one");
    other.question();
    let second = other.prompt(&session, "from the other");
    other.wait_for(|message| {
        let text = update(message)["content"]["text"].as_str();
        text.is_some_and(|text| text.starts_with("Another turn is running in this session."))
    });
    allow(&mut one);
    // The other one is told that it needs no answer any more.
    other.wait_for(|message| message["method"] == "$/cancel_request");
    assert_eq!(one.answer(first)["result"]["stopReason"], "end_turn");
    assert_eq!(one.agent_said(), ANSWERED);
    // The session's own agent answers the second one.
    assert_eq!(other.answer(second)["result"]["stopReason"], "end_turn");
    assert!(other.agent_said().starts_with(ANSWERED), "{}", other.agent_said());
    assert_eq!(
        other.said("user_message_chunk"),
        "from one",
        "its own prompt it has"
    );
    one.wait_for(|message| update(message)["content"]["text"] == "from the other");
    // A prompt that waits is taken away with a wish to cancel, and what runs goes on.
    one.forget();
    other.forget();
    let third = one.prompt(&session, "hold");
    one.question();
    let fourth = other.prompt(&session, "never");
    other.wait_for(|message| {
        let text = update(message)["content"]["text"].as_str();
        text.is_some_and(|text| text.starts_with("Another turn is running in this session."))
    });
    other.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(other.answer(fourth)["result"]["stopReason"], "cancelled");
    allow(&mut one);
    assert_eq!(one.answer(third)["result"]["stopReason"], "end_turn");
    one.finish();
    other.finish();
}

#[test]
fn rubbish_is_answered_and_passed_over() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, "steps: [{say: fine}]");
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for (line, code) in [
        ("hello", -32700),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1", -32700),
        (deep.as_str(), -32700),
        ("[]", -32600),
        ("17", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":[],"method":"initialize"}"#, -32600),
    ] {
        editor.send_line(line);
        let answer = editor.hear();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(code)),
            "{line}"
        );
    }
    // Answers to nobody, and things that nobody knows, are passed over in silence.
    editor.send_line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    editor.send_line(r#"{"jsonrpc":"2.0","method":"$/weather","params":{}}"#);
    editor.send_line(r#"{"jsonrpc":"2.0","method":"session/cancel","params":7}"#);
    // A line that is longer than any message is read to its end and thrown away.
    let long = "x".repeat((32 << 20) + 1);
    editor.send_line(&long);
    let answer = editor.hear();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&Value::Null, &json!(-32600)),
        "{answer}"
    );
    for (method, params) in [
        ("session/new", json!({})),
        ("session/new", json!({ "cwd": "relative", "mcpServers": [] })),
        (
            "session/new",
            json!({ "cwd": project.root, "mcpServers": [], "additionalDirectories": ["/x"] }),
        ),
        ("session/prompt", json!({ "sessionId": 7 })),
        ("session/load", Value::Null),
    ] {
        let refused = editor.refused(method, params.clone());
        assert_eq!(refused["code"], -32602, "{method} {params}");
    }
    let session = editor.open(&project);
    // More than the daemon takes is said in its words.
    let long = "x".repeat(1 << 20);
    let refused = editor.refused(
        "session/prompt",
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": long }] }),
    );
    assert!(refused["data"]["code"].is_string(), "{refused}");
    assert_eq!(editor.ask(&session, "after all that"), "end_turn");
    assert_eq!(editor.agent_said(), "fine\n");
    editor.finish();
}

#[test]
fn so_many_sessions_and_no_more_are_open_at_once() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, "steps: [{say: fine}]");
    let mut last = String::new();
    for _ in 0..32 {
        last = editor.open(&project);
    }
    let refused = editor.refused("session/new", json!({ "cwd": project.root, "mcpServers": [] }));
    assert_eq!(
        (&refused["message"], &refused["data"]["code"]),
        (
            &json!("too many sessions: 32 are already open here"),
            &json!("acp_limit")
        )
    );
    editor.call("session/close", json!({ "sessionId": last }));
    let again = editor.open(&project);
    assert_eq!(editor.ask(&again, "hello"), "end_turn");
    editor.finish();
}

#[test]
fn an_editor_that_does_not_read_holds_up_nobody_else_and_misses_nothing() {
    let project = Project::with_git(&BEFORE);
    let word = "x".repeat(8 << 10);
    let steps = format!("steps: [{{repeat: {{times: 500, steps: [{{say: {word}}}]}}}}]");
    let script = project.script("script", &steps);
    let mut editor = Editor::with_room(&project, &["--script", &script], 1);
    editor.initialize();
    let session = editor.open(&project);
    let prompt = editor.prompt(&session, "talk");
    // Nobody reads, and the turn ends all the same.
    wait_for("the turn to end", || {
        let session = project.session(&session);
        session["last_state"] == "done"
    });
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    let said = editor.agent_said();
    assert_eq!(said.len(), 500 * (word.len() + 1));
    editor.finish();
}

#[test]
fn the_published_client_gets_along_with_it() {
    let Some(peer) = peer() else { return };
    let project = Project::with_git(&BEFORE);
    let script = project.script(
        "script",
        "steps: [{say: begun}, {edit: {path: a.txt, find: two, replace: three}}, {ask: really?}, {say: ended}]",
    );
    let mut command = project.command(&[]);
    let words = [program().to_str().unwrap(), "acp", "--script", &script].map(str::to_owned);
    let environment: Vec<(std::ffi::OsString, std::ffi::OsString)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    let removed: Vec<std::ffi::OsString> = command
        .get_envs()
        .filter(|(_, value)| value.is_none())
        .map(|(name, _)| name.to_owned())
        .collect();
    command = std::process::Command::new(peer);
    command
        .arg("converse")
        .arg(&project.root)
        .args(words)
        .envs(environment);
    for name in removed {
        command.env_remove(name);
    }
    command
        .stdin(std::process::Stdio::null())
        .current_dir(&project.root);
    let done = finish(command);
    assert_eq!(done.code, Some(0), "{}\n{}", done.stdout, done.stderr);
    let seen = done.json();
    let step = |name: &str| {
        let steps = seen["seen"].as_array().unwrap();
        steps.iter().find(|step| step["step"] == name).unwrap().clone()
    };
    assert_eq!(step("prompt")["answer"]["stopReason"], "end_turn");
    assert_eq!(step("apply")["answer"]["stopReason"], "end_turn");
    assert_eq!(step("cancel")["answer"]["stopReason"], "cancelled");
    assert_eq!(step("list")["answer"]["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(project.tree()["a.txt"], "one\nthree\n");
    assert_eq!(seen["asked"][0]["toolCall"]["title"], "really?");
    let said = |step: &Value| -> String {
        let updates = step["updates"].as_array().unwrap().iter();
        let said = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        said.map(|update| update["content"]["text"].as_str().unwrap())
            .collect()
    };
    for name in ["prompt", "load"] {
        let said = said(&step(name));
        assert!(
            said.starts_with("begun\nthe test has answered: allow.\nended\n"),
            "{name}: {said}"
        );
    }
}
