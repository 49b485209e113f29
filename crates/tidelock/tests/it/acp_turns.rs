//! `tidelock acp`: turns as an editor sees them, with what they change, ask and come to.

use serde_json::{Value, json};

use crate::acp_stage::{Editor, update};
use crate::harness::wait_for;
use crate::job_stage::left_behind;
use crate::plan_stage::Project;
use crate::session_stage::BEFORE;

const EDITS: &str = "
steps:
  - think: I look first.
  - read: a.txt
  - edit: {path: a.txt, find: two, replace: three}
  - write: {path: sub/new.txt, text: \"new\\n\"}
  - say: Done.
";

const SLEEPS: &str = "steps: [{say: begun}, {shell: sleep 600}, {say: never}]";

const ASKS: &str = "
steps:
  - say: begun
  - ask: may I go on?
  - say: ended
";

#[test]
fn what_we_are_is_said_first() {
    let project = Project::new(&BEFORE);
    let mut editor = Editor::start(&project, &[]);
    let early = editor.refused("session/new", json!({ "cwd": project.root, "mcpServers": [] }));
    assert_eq!(early["code"], -32600);
    // Whatever version is asked for, there is one that we speak.
    for version in [1, 0, 7] {
        let answer = editor.call("initialize", json!({ "protocolVersion": version }));
        assert_eq!(
            answer,
            json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
                    "mcpCapabilities": { "http": false, "sse": false },
                    "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "delete": {} },
                },
                "agentInfo": { "name": "tidelock", "title": "Tidelock", "version": env!("CARGO_PKG_VERSION") },
                "authMethods": [],
            })
        );
    }
    assert_eq!(
        editor.call("authenticate", json!({ "methodId": "any" })),
        json!({})
    );
    assert_eq!(editor.refused("session/fly", json!({}))["code"], -32601);
    editor.finish();
    assert!(project.world.owner().is_none(), "nothing of this needs a daemon");
}

#[test]
fn a_turn_is_streamed_and_what_it_changed_is_applied_and_taken_back() {
    let project = Project::with_git(&BEFORE);
    let before = project.tree();
    let mut editor = Editor::with_script(&project, EDITS);
    let session = editor.open(&project);
    assert_eq!(editor.ask(&session, "change it"), "end_turn");
    assert_eq!(editor.agent_said(), "Done.\n");
    assert_eq!(editor.said("agent_thought_chunk"), "I look first.\n");
    assert_eq!(
        editor.said("user_message_chunk"),
        "",
        "the editor has its own prompt"
    );
    assert_eq!(project.tree(), before, "nothing reaches the files");
    // Each call is announced once, and its last word is that it is done.
    let calls = editor.updates("tool_call");
    let last = |title: &str| {
        let mut all = editor.told.iter().rev().map(update);
        all.find(|update| update["title"] == title && update["status"].is_string())
            .cloned()
            .unwrap()
    };
    let edit = last("edit a.txt");
    let path = project.root.join("a.txt");
    assert_eq!(
        (&edit["status"], &edit["kind"], &edit["locations"]),
        (&json!("completed"), &json!("edit"), &json!([{ "path": path }])),
        "{edit}"
    );
    assert_eq!(
        edit["content"][0],
        json!({ "type": "diff", "path": path, "oldText": "two", "newText": "three" })
    );
    assert_eq!(last("read a.txt")["kind"], "read");
    let ids: Vec<&Value> = calls.iter().map(|call| &call["toolCallId"]).collect();
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!((ids.len(), unique.len()), (4, 4), "{calls:#?}");
    // The last one is the plan.
    let changes = calls.last().unwrap();
    assert_eq!(
        changes["content"],
        json!([
            { "type": "diff", "path": path, "oldText": "one\ntwo\n", "newText": "one\nthree\n" },
            { "type": "diff", "path": project.root.join("sub/new.txt"), "oldText": null, "newText": "new\n" },
        ])
    );
    assert!(
        editor
            .said("agent_message_chunk")
            .contains("Your files haven't changed.")
    );
    let titles = editor.updates("session_info_update");
    assert_eq!(titles.last().unwrap()["title"], "change it");

    editor.forget();
    assert_eq!(editor.ask(&session, "/apply"), "end_turn");
    assert_eq!(
        editor.said("agent_message_chunk"),
        "Applied: 2 files (`a.txt`, `sub/new.txt`). `/undo` undoes it.\n"
    );
    assert_eq!(project.tree()["a.txt"], "one\nthree\n");
    editor.forget();
    assert_eq!(editor.ask(&session, "/apply"), "end_turn");
    assert_eq!(editor.said("agent_message_chunk"), "Nothing to apply.\n");
    assert_eq!(editor.ask(&session, "/undo"), "end_turn");
    assert_eq!(project.tree(), before);
    editor.forget();
    assert_eq!(editor.ask(&session, "/undo"), "end_turn");
    assert_eq!(
        editor.said("agent_message_chunk"),
        "This session hasn't applied anything that can be undone.\n"
    );
    editor.forget();
    assert_eq!(editor.ask(&session, "/status"), "end_turn");
    assert!(
        editor
            .said("agent_message_chunk")
            .contains("- No turn is running.\n")
    );
    editor.finish();
}

#[test]
fn only_what_was_seen_is_applied() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, EDITS);
    let session = editor.open(&project);
    assert_eq!(editor.ask(&session, "change it"), "end_turn");
    // Somebody else works in the same plan.
    let plan = project.session(&session)["plan"].as_str().unwrap().to_owned();
    project.work(&plan, "echo more >> b.txt");
    editor.forget();
    assert_eq!(editor.ask(&session, "/apply"), "end_turn");
    let said = editor.said("agent_message_chunk");
    assert!(
        said.starts_with("The changes are different from what you last saw, so nothing was applied."),
        "{said}"
    );
    assert_eq!(project.tree()["a.txt"], "one\ntwo\n");
    assert_eq!(editor.ask(&session, "/apply"), "end_turn");
    assert_eq!(project.tree()["b.txt"], "b\nmore\n");
    // What conflicts is said, and nothing is touched.
    editor.forget();
    assert_eq!(editor.ask(&session, "/diff"), "end_turn");
    assert_eq!(editor.said("agent_message_chunk"), "No unapplied changes.\n");
    project.write("a.txt", "one\nmine\n");
    editor.forget();
    assert_eq!(editor.ask(&session, "/undo"), "end_turn");
    let said = editor.said("agent_message_chunk");
    assert!(
        said.contains("cannot be undone: 1 file in conflict. Nothing was changed."),
        "{said}"
    );
    assert_eq!(project.tree()["a.txt"], "one\nmine\n");
    editor.finish();
}

#[test]
fn a_turn_is_cancelled_with_all_of_its_processes() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, SLEEPS);
    let session = editor.open(&project);
    let runs = |message: &Value| {
        update(message)["title"] == "$ sleep 600" && update(message)["status"] == "in_progress"
    };
    for way in ["session/cancel", "$/cancel_request"] {
        editor.forget();
        let prompt = editor.prompt(&session, "sleep");
        editor.wait_for(runs);
        let params = match way {
            "session/cancel" => json!({ "sessionId": session }),
            _ => json!({ "requestId": prompt }),
        };
        editor.notify(way, params);
        let answer = editor.answer(prompt);
        assert_eq!(
            (
                &answer["result"]["stopReason"],
                &answer["result"]["_meta"]["tidelock"]["state"]
            ),
            (&json!("cancelled"), &json!("cancelled")),
            "{answer}"
        );
        assert_eq!(editor.agent_said(), "begun\n");
        let pid = editor.pid();
        // Whoever kept the command may need another moment to go.
        wait_for("all processes of the turn to be gone", || {
            let left = left_behind(&project.world);
            left.iter().all(|left| *left == pid)
        });
    }
    // One that is cancelled at once is cancelled too, wherever it is by then, and the next one is not.
    editor.forget();
    let first = editor.prompt(&session, "sleep");
    editor.notify("session/cancel", json!({ "sessionId": session }));
    let next = editor.prompt(&session, "/status");
    assert_eq!(editor.answer(first)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.answer(next)["result"]["stopReason"], "end_turn");
    // With nothing to cancel, nothing happens.
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.notify("session/cancel", json!({ "sessionId": "nobody" }));
    assert_eq!(editor.ask(&session, "/status"), "end_turn");
    editor.finish();
}

#[test]
fn the_editor_is_asked_and_its_answer_counts() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, ASKS);
    let session = editor.open(&project);
    for (kind, expected) in [
        ("allow_once", "begun\nthe test has answered: allow.\nended\n"),
        ("reject_once", "begun\nthe test has answered: deny.\nended\n"),
    ] {
        editor.forget();
        let prompt = editor.prompt(&session, "ask me");
        let question = editor.question();
        let options = question["params"]["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap();
        let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
        editor.reply(&question, json!({ "outcome": outcome }));
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
        assert_eq!(editor.agent_said(), expected);
        let withdrawn = editor
            .told
            .iter()
            .any(|message| message["method"] == "$/cancel_request");
        assert!(!withdrawn, "it was answered here");
    }
    editor.finish();
}

#[test]
fn a_question_that_is_answered_elsewhere_is_withdrawn() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, ASKS);
    let session = editor.open(&project);
    let prompt = editor.prompt(&session, "ask me");
    let question = editor.question();
    project.run(&["session", "answer", &session, "allow"]).expect(0);
    let withdrawn = editor.wait_for(|message| message["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"], json!({ "requestId": question["id"] }));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(
        editor.said("agent_thought_chunk"),
        "Answered elsewhere by the test: yes.\n"
    );
    // Whoever answers now is too late, and nothing happens.
    let outcome = json!({ "outcome": "selected", "optionId": "reject_once" });
    editor.reply(&question, json!({ "outcome": outcome }));
    // An editor that cannot ask says so, and the user is told what to do.
    editor.forget();
    let prompt = editor.prompt(&session, "ask me again");
    let question = editor.question();
    editor.send_line(
        &json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32601, "message": "no" } })
            .to_string(),
    );
    editor.wait_for(|message| {
        let text = update(message)["content"]["text"].as_str();
        text.is_some_and(|text| text.contains("tidelock session answer"))
    });
    project.run(&["session", "answer", &session, "deny"]).expect(0);
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    editor.finish();
}

#[test]
fn a_turn_that_fails_is_an_error_with_our_own_code() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, "steps: [{say: begun}, {fail: no more paper}]");
    let session = editor.open(&project);
    let prompt = editor.prompt(&session, "fail");
    let answer = editor.answer(prompt);
    assert_eq!(
        answer["error"],
        json!({
            "code": -32603,
            "message": "The turn failed: no more paper",
            "data": { "code": "rehearsal_failed" },
        })
    );
    assert!(
        !editor.said("agent_message_chunk").contains("no more paper"),
        "it is said once"
    );
    // Where it is looked at later, there is no such answer, and it is said in words.
    let mut other = Editor::start(&project, &[]);
    other.initialize();
    other.load(&project, &session);
    let said = other.said("agent_message_chunk");
    assert!(
        said.contains("The turn failed: no more paper (rehearsal_failed)."),
        "{said}"
    );
    other.finish();
    editor.finish();
}

#[test]
fn pieces_of_a_prompt_and_servers_of_the_editor_are_named() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::with_script(&project, "steps: [{say: \"{{prompt}}\"}]");
    let server = json!({ "name": "weather", "command": "/bin/weather", "args": [], "env": [] });
    let new = editor.call(
        "session/new",
        json!({ "cwd": project.root, "mcpServers": [server] }),
    );
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let uri = format!("file://{}/a.txt", project.root.display());
    let prompt = json!([
        { "type": "text", "text": "see " },
        { "type": "resource_link", "name": "a.txt", "uri": uri },
        { "type": "resource", "resource": { "uri": "file:///else/b.md", "text": "hello" } },
        { "type": "image", "data": "iVBORw==", "mimeType": "image/png" },
    ]);
    let id = editor.request(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.agent_said(), "see `a.txt``/else/b.md`\n");
    let said = editor.said("agent_message_chunk");
    assert!(
        said.starts_with("Note: the editor's MCP servers (weather) aren't passed on."),
        "{said}"
    );
    let turn = project
        .run(&["session", "show", &session, "--json"])
        .expect(0)
        .json();
    let turn = turn["turns"][0].clone();
    let names: Vec<&str> = turn["attachments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["/else/b.md", "image-2"], "{turn}");
    let sound = json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]);
    let refused = editor.refused("session/prompt", json!({ "sessionId": session, "prompt": sound }));
    assert_eq!(
        (&refused["code"], &refused["data"]["code"]),
        (&json!(-32602), &json!("acp_params"))
    );
    let empty = editor.refused("session/prompt", json!({ "sessionId": session, "prompt": [] }));
    assert_eq!(empty["data"]["code"], "invalid_prompt");
    editor.finish();
}

#[test]
fn who_answers_can_be_chosen() {
    let project = Project::with_git(&BEFORE);
    let mut editor = Editor::start(&project, &["--agent", "rehearsal"]);
    editor.initialize();
    let new = editor.call("session/new", json!({ "cwd": project.root, "mcpServers": [] }));
    let session = &new["sessionId"];
    let option = &new["configOptions"][0];
    assert_eq!(
        (&option["id"], &option["type"], &option["currentValue"]),
        (&json!("agent"), &json!("select"), &json!("rehearsal"))
    );
    let choose = |value: &str| json!({ "sessionId": session, "configId": "agent", "value": value });
    let chosen = editor.call("session/set_config_option", choose("rehearsal"));
    assert_eq!(chosen["configOptions"][0]["currentValue"], "rehearsal");
    let refused = editor.refused("session/set_config_option", choose("nobody"));
    assert_eq!(
        (&refused["code"], &refused["data"]["code"]),
        (&json!(-32602), &json!("agent_not_found"))
    );
    let params = json!({ "sessionId": session, "configId": "weather", "value": "fine" });
    assert_eq!(
        editor.refused("session/set_config_option", params)["code"],
        -32602
    );
    editor.finish();
}
