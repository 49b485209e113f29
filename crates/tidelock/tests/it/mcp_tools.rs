//! Every tool of the Model Context Protocol, called as an agent does.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{World, program};
use crate::lsp_stage::{Player, Stage};
use crate::mcp_stage::{Agent, told};
use crate::plan_stage::{Project, files};
use crate::requests::send;

const ALPHA: &str = "fn first() {}\n";

fn project() -> Project {
    Project::with_git(&[("src/alpha.rs", ALPHA), ("notes.txt", "one\ntwo\nthree\n")])
}

/// Asks the daemon itself.
#[track_caller]
fn asked(world: &World, path: &str) -> Value {
    let answer = send(&world.home(), "GET", path, "").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

#[test]
fn work_in_a_plan_from_the_first_read_to_the_undo() {
    let project = project();
    let before = project.tree();
    let mut agent = Agent::with(&project, "tester", &[], &json!({ "elicitation": {} }));

    let early = agent.call("plan_write", &json!({ "path": "a", "text": "" }));
    assert!(
        early.failed && early.text.contains("call plan_open first"),
        "{early:?}"
    );

    let opened = agent.done("plan_open", &json!({ "title": "say more" }));
    let plan = opened.value["plan"].as_str().unwrap().to_owned();
    let actor = opened.value["actor"].as_str().unwrap().to_owned();
    assert!(actor.starts_with("tester#"), "{actor}");
    assert!(opened.text.contains(&plan), "{opened:?}");

    let read = agent.done(
        "plan_read",
        &json!({ "path": "notes.txt", "first_line": 2, "last_line": 2 }),
    );
    assert!(
        read.text.starts_with("[lines 2 to 2 of 3") && read.text.ends_with("]\ntwo\n"),
        "{read:?}"
    );
    let listed = agent.done("plan_read", &json!({ "path": "." }));
    assert_eq!(listed.text, ".git/\nnotes.txt\nsrc/\n");

    agent.done(
        "plan_edit",
        &json!({ "path": "notes.txt", "find": "two", "replace": "zwei" }),
    );
    let twice = agent.call(
        "plan_edit",
        &json!({ "path": "notes.txt", "find": "e", "replace": "x" }),
    );
    assert!(
        twice.failed && twice.text.starts_with("error: file_refused\n"),
        "{twice:?}"
    );
    let absolute = project.root.join("src/beta.rs");
    agent.done(
        "plan_write",
        &json!({ "path": absolute, "text": "fn second() {}\n", "reason": "there was one" }),
    );
    agent.done("plan_delete", &json!({ "path": "src/alpha.rs" }));
    let outside = agent.call("plan_write", &json!({ "path": "../x", "text": "" }));
    assert!(
        outside.failed && outside.text.starts_with("error: path_not_allowed\n"),
        "{outside:?}"
    );

    let ran = agent.done(
        "plan_shell",
        &json!({ "command": "cat notes.txt; echo made > made.txt" }),
    );
    assert!(ran.text.starts_with("one\nzwei\nthree\n[job_"), "{ran:?}");
    assert!(
        ran.text.contains(" succeeded after ") && ran.text.contains("It changed 1 file in the plan"),
        "{ran:?}"
    );
    let fails = agent.call(
        "plan_shell",
        &json!({ "command": "echo no >&2; exit 3", "directory": "src" }),
    );
    assert!(fails.failed && fails.text.starts_with("no\n[job_"), "{fails:?}");
    assert!(fails.text.contains("failed with exit code 3"), "{fails:?}");

    let checked = agent.call(
        "plan_check",
        &json!({ "commands": ["test -f made.txt", "grep -q drei notes.txt"] }),
    );
    assert!(checked.failed, "{checked:?}");
    assert!(
        checked.text.contains("`test -f made.txt` passed\n"),
        "{checked:?}"
    );
    assert!(
        checked.text.contains("`grep -q drei notes.txt` failed"),
        "{checked:?}"
    );
    let refused = agent.call("plan_apply", &json!({}));
    assert!(
        refused.failed && refused.text.starts_with("error: checks_not_passed\n"),
        "{refused:?}"
    );
    agent.done(
        "plan_edit",
        &json!({ "path": "notes.txt", "find": "three", "replace": "drei" }),
    );
    agent.done("plan_check", &json!({}));

    let diff = agent.done("plan_diff", &json!({}));
    for line in [
        "-two\n",
        "+zwei\n",
        "+made\n",
        "deleted file mode",
        "4 files changed",
    ] {
        assert!(diff.text.contains(line), "{line}: {}", diff.text);
    }
    assert_eq!(project.tree(), before, "nothing has reached the workspace");

    // The user says no, and then yes.
    agent.user = json!({ "action": "decline" });
    let declined = agent.done("plan_apply", &json!({}));
    assert_eq!(declined.value["outcome"], "declined");
    assert_eq!(project.tree(), before);
    agent.user = json!({ "action": "accept", "content": { "confirm": true } });
    let applied = agent.done("plan_apply", &json!({ "commit_message": "more" }));
    assert_eq!(applied.value["outcome"], "done", "{applied:?}");
    let asked_user = agent
        .beside
        .iter()
        .filter(|message| message["method"] == "elicitation/create");
    assert_eq!(asked_user.count(), 2, "{:?}", agent.beside);
    let after = files(&[
        ("made.txt", "made\n"),
        ("notes.txt", "one\nzwei\ndrei\n"),
        ("src/beta.rs", "fn second() {}\n"),
    ]);
    assert_eq!(project.tree(), after);
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "more\n");

    let over = agent.call("plan_read", &json!({ "path": "notes.txt" }));
    assert!(
        over.failed && over.text.contains("call plan_open first"),
        "{over:?}"
    );
    let undone = agent.done("plan_undo", &json!({}));
    assert_eq!(undone.value["outcome"], "done", "{undone:?}");
    assert_eq!(project.tree(), before);

    // What was done stands under the name of the agent, in changesets of its own.
    let changesets = asked(&project.world, &format!("/v1/plans/{plan}/changesets"));
    let actors: BTreeSet<&str> = changesets["changesets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|changeset| changeset["actor"].as_str().unwrap())
        .collect();
    assert_eq!(actors, BTreeSet::from([actor.as_str()]));
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn who_cannot_ask_leaves_it_to_a_person_or_was_allowed() {
    let project = project();
    let mut agent = Agent::new(&project, "quiet", &[]);
    agent.done("plan_open", &json!({}));
    let nothing = agent.done("plan_apply", &json!({}));
    assert!(
        nothing
            .text
            .contains("has no changes, so there is nothing to apply"),
        "{nothing:?}"
    );
    agent.done("plan_write", &json!({ "path": "new.txt", "text": "new\n" }));
    let left = agent.done("plan_apply", &json!({}));
    assert_eq!(left.value["outcome"], "needs_a_person", "{left:?}");
    let command = left.value["command"].as_str().unwrap();
    assert!(
        left.text.contains(command) && left.text.contains(".localhost:"),
        "{left:?}"
    );
    let plan = left.value["plan"].as_str().unwrap().to_owned();
    assert_eq!(project.shown(&plan)["state"], "sealed");
    // Whoever works on opens it again; it is still the same plan.
    agent.done("plan_write", &json!({ "path": "new.txt", "text": "newer\n" }));
    assert_eq!(project.shown(&plan)["state"], "open");
    project.run(&["plan", "apply", &plan]).expect(0);
    let over = agent.call("plan_write", &json!({ "path": "new.txt", "text": "late\n" }));
    assert!(
        over.failed && over.text.starts_with("error: plan_wrong_state\n"),
        "{over:?}"
    );

    let mut allowed = Agent::new(&project, "allowed", &["--allow-apply"]);
    allowed.done("plan_open", &json!({}));
    allowed.done("plan_write", &json!({ "path": "mine.txt", "text": "mine\n" }));
    assert_eq!(allowed.done("plan_apply", &json!({})).value["outcome"], "done");
    assert_eq!(project.tree()["mine.txt"], "mine\n");
}

#[test]
fn the_owner_of_the_machine_has_the_last_word() {
    let project = project();
    let home = project.world.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "[mcp]\napply = \"never\"\n").unwrap();
    let mut agent = Agent::new(&project, "eager", &["--allow-apply"]);
    agent.done("plan_open", &json!({}));
    agent.done("plan_write", &json!({ "path": "new.txt", "text": "new\n" }));
    let refused = agent.call("plan_apply", &json!({}));
    assert!(
        refused.failed && refused.text.starts_with("error: not_allowed\n"),
        "{refused:?}"
    );
    assert!(!project.tree().contains_key("new.txt"));
}

#[test]
fn what_needs_a_yes_is_not_had_by_way_of_a_command() {
    for (word, capabilities) in [("never", json!({})), ("ask", json!({}))] {
        let project = project();
        let home = project.world.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("config.toml"), format!("[mcp]\napply = \"{word}\"\n")).unwrap();
        let before = project.tree();
        let mut agent = Agent::with(&project, "eager", &[], &capabilities);
        // A command outside of the plan would write the user's files.
        let started = agent.call(
            "job_start",
            &json!({ "command": "echo x > job.txt", "wait_seconds": 60 }),
        );
        match word {
            "never" => assert!(started.text.starts_with("error: not_allowed\n"), "{started:?}"),
            _ => assert_eq!(started.value["outcome"], "needs_a_person", "{started:?}"),
        }
        // A command in the plan, or in one that it makes, cannot apply it or start one outside.
        agent.done("plan_open", &json!({}));
        agent.done("plan_write", &json!({ "path": "new.txt", "text": "new\n" }));
        let tool = program().display().to_string();
        for line in [
            format!("{tool} plan apply $TIDELOCK_PLAN"),
            format!("{tool} job run --wait --shell 'echo x > job.txt'"),
            format!("{tool} plan exec $TIDELOCK_PLAN -- {tool} plan apply $TIDELOCK_PLAN"),
            format!("setsid -f sh -c 'sleep 0.2; {tool} plan apply $TIDELOCK_PLAN'; sleep 1"),
        ] {
            let home = home.display();
            let line = format!("export TIDELOCK_HOME={home}; ({line}) 2>&1");
            let told = agent.call("plan_shell", &json!({ "command": line, "wait_seconds": 60 }));
            assert!(
                told.text.contains("may not change files outside of its sandbox"),
                "{line}: {told:?}"
            );
            assert_eq!(project.tree(), before, "{line}");
        }
        // A person can.
        let plans = project.run(&["plan", "list", "--json"]).expect(0);
        let plan = plans.json()["plans"][0]["id"].as_str().unwrap().to_owned();
        project.run(&["plan", "apply", &plan]).expect(0);
        assert_eq!(project.tree()["new.txt"], "new\n");
    }
}

#[test]
fn whoever_is_asked_about_a_command_decides_about_it() {
    let project = project();
    let capabilities = json!({ "elicitation": {} });
    let mut agent = Agent::with(&project, "polite", &[], &capabilities);
    let order = json!({ "command": "echo x > job.txt", "wait_seconds": 60 });
    agent.user = json!({ "action": "decline" });
    assert_eq!(agent.done("job_start", &order).value["outcome"], "declined");
    assert!(!project.root.join("job.txt").exists());
    agent.user = json!({ "action": "accept", "content": { "confirm": true } });
    assert_eq!(agent.done("job_start", &order).value["state"], "succeeded");
    assert!(project.root.join("job.txt").exists());
    // A yes to one command is not a yes to what that asks for.
    agent.done("plan_open", &json!({}));
    agent.done("plan_write", &json!({ "path": "new.txt", "text": "new\n" }));
    let line = format!(
        "TIDELOCK_HOME={} {} plan apply @ 2>&1",
        project.world.path().join("home").display(),
        program().display()
    );
    let started = agent.done("job_start", &json!({ "command": line, "wait_seconds": 60 }));
    assert_eq!(started.value["state"], "failed", "{started:?}");
    assert!(!project.root.join("new.txt").exists());
}

#[test]
fn long_work_comes_back_with_a_handle() {
    let project = project();
    let mut agent = Agent::new(&project, "patient", &["--allow-apply"]);
    agent.done("plan_open", &json!({}));
    let flag = project.world.path().join("flag");
    let line = format!(
        "echo begun; while ! test -f {}; do sleep 0.05; done; echo over",
        flag.display()
    );
    let still = agent.done("plan_shell", &json!({ "command": line, "wait_seconds": 1 }));
    assert!(
        still.text.contains("it keeps running. Call job_status"),
        "{still:?}"
    );
    let job = still
        .text
        .split("[")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    assert!(job.starts_with("job_"), "{still:?}");
    let status = agent.done("job_status", &json!({ "job": job }));
    assert_eq!(status.value["state"], "running");
    let busy = agent.call("plan_apply", &json!({}));
    assert!(!busy.text.is_empty());
    std::fs::write(&flag, "").unwrap();
    let status = agent.done("job_status", &json!({ "job": job, "wait_seconds": 60 }));
    assert_eq!(status.value["state"], "succeeded", "{status:?}");
    let logs = agent.done("job_logs", &json!({ "job": job }));
    assert!(logs.text.starts_with("begun\nover\n["), "{logs:?}");
    assert!(agent.done("job_status", &json!({})).text.contains(&job));

    // A job in the real repository; whoever wants to know is told how far it is.
    let call = json!({
        "name": "job_start", "arguments": { "command": "sleep 1.5; pwd", "title": "where", "wait_seconds": 60 },
        "_meta": { "progressToken": "p1" },
    });
    let started = told(&agent.ask("tools/call", &call));
    assert_eq!(started.value["state"], "succeeded", "{started:?}");
    let progress = agent
        .beside
        .iter()
        .filter(|message| message["method"] == "notifications/progress");
    let tokens: Vec<&Value> = progress
        .map(|message| &message["params"]["progressToken"])
        .collect();
    assert!(
        !tokens.is_empty() && tokens.iter().all(|token| **token == "p1"),
        "{:?}",
        agent.beside
    );
    let job = started.value["job"].as_str().unwrap();
    let logs = agent.done("job_logs", &json!({ "job": job }));
    assert!(
        logs.text.starts_with(&format!("{}\n", project.root.display())),
        "{logs:?}"
    );

    let running = agent.done("job_start", &json!({ "command": "sleep 600", "wait_seconds": 0 }));
    let job = running.value["job"].as_str().unwrap();
    agent.done("job_cancel", &json!({ "job": job, "why": "enough" }));
    let ended = agent.done("job_status", &json!({ "job": job, "wait_seconds": 60 }));
    assert_eq!(ended.value["state"], "cancelled", "{ended:?}");
    let again = agent.call("job_cancel", &json!({ "job": job }));
    assert!(
        again.failed && again.text.starts_with("error: job_ended\n"),
        "{again:?}"
    );
}

#[test]
fn answers_are_bounded_and_say_where_the_rest_is() {
    const LIMIT: usize = 33 * 1024;
    let project = project();
    let mut agent = Agent::new(&project, "greedy", &[]);
    let opened = agent.done("plan_open", &json!({}));
    let plan = opened.value["plan"].as_str().unwrap();
    let text: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    agent.done("plan_write", &json!({ "path": "large.txt", "text": text }));

    let read = agent.done("plan_read", &json!({ "path": "large.txt" }));
    assert!(
        read.text.len() < LIMIT && read.text.contains("; continue with first_line "),
        "{}",
        read.text.len()
    );
    let diff = agent.done("plan_diff", &json!({}));
    let uri = format!("tidelock://plans/{plan}/diff");
    assert!(
        diff.text.len() < LIMIT && diff.text.contains(&uri),
        "{}",
        diff.text.len()
    );
    let whole = agent.ask("resources/read", &json!({ "uri": uri }));
    let whole = whole["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(
        whole.contains("+line 0\n") && whole.contains("+line 10000\n") && whole.contains("+line 19999\n")
    );

    let shouted = agent.done("plan_shell", &json!({ "command": "cat large.txt" }));
    assert!(shouted.text.len() < LIMIT, "{}", shouted.text.len());
    assert!(
        shouted.text.starts_with("line 0\n") && shouted.text.contains("\nline 19999\n["),
        "the ends are kept"
    );
    let job = shouted
        .text
        .rsplit('[')
        .next()
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let uri = format!("tidelock://jobs/{job}/logs");
    assert!(shouted.text.contains(&uri));
    let whole = agent.ask("resources/read", &json!({ "uri": uri }));
    assert_eq!(whole["result"]["contents"][0]["text"], json!(text));

    let overview = agent.ask("resources/read", &json!({ "uri": "tidelock://overview" }));
    let overview = overview["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(
        overview.contains(plan) && overview.contains("greedy#"),
        "{overview}"
    );
    let listed = agent.ask("resources/list", &json!({}));
    assert!(
        listed["result"]["resources"].as_array().unwrap().len() >= 3,
        "{listed}"
    );
    let templates = agent.ask("resources/templates/list", &json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"].as_array().unwrap().len(),
        2
    );
    for uri in [
        "tidelock://plans/plan_00000000000000000000000000/diff",
        "tidelock://nonsense",
        "file:///etc/passwd",
    ] {
        let answer = agent.ask("resources/read", &json!({ "uri": uri }));
        assert!(answer["error"]["message"].is_string(), "{uri}: {answer}");
    }
}

#[test]
fn mistakes_are_named() {
    let project = project();
    let mut agent = Agent::new(&project, "clumsy", &[]);
    let unknown = agent.ask("tools/call", &json!({ "name": "plan_fly", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let method = agent.ask("no/such/method", &json!({}));
    assert_eq!(method["error"]["code"], -32601, "{method}");
    agent.done("plan_open", &json!({}));
    for (tool, arguments, expected) in [
        (
            "plan_read",
            json!({}),
            "error: invalid_arguments\n`path` is missing. `plan_read` takes `path` (a string), ",
        ),
        (
            "plan_read",
            json!({ "path": 1 }),
            "error: invalid_arguments\n`path` must be a string, not a number. ",
        ),
        (
            "plan_read",
            json!({ "path": "x", "paht": 1 }),
            "error: invalid_arguments\nThere is no `paht`, did you mean `path`?",
        ),
        (
            "plan_read",
            json!({ "path": "nowhere" }),
            "error: file_not_found\n",
        ),
        (
            "plan_read",
            json!({ "path": "notes.tx" }),
            "error: file_not_found\nThere is nothing at `notes.tx`. Did you mean `notes.txt`?\n",
        ),
        (
            "plan_edit",
            json!({ "path": "notes.txt", "find": "one\n two\n", "replace": "" }),
            "error: file_refused\n`notes.txt` was not changed: `find` does not occur in it. At line 1 it stands with other",
        ),
        (
            "plan_read",
            json!({ "path": "x", "plan": "plan_00000000000000000000000000" }),
            "error: plan_not_found\n",
        ),
        (
            "plan_read",
            json!({ "path": "x", "plan": "a/../b" }),
            "error: invalid_arguments\n",
        ),
        (
            "plan_read",
            json!({ "path": "/etc/passwd" }),
            "error: invalid_arguments\n`/etc/passwd` lies outside of the workspace. ",
        ),
        (
            "job_status",
            json!({ "job": "job_00000000000000000000000000" }),
            "error: job_not_found\n",
        ),
        (
            "lsp_hover",
            json!({ "at": "notes.txt" }),
            "error: invalid_arguments\n`at`: the line is missing",
        ),
        (
            "lsp_hover",
            json!({ "at": "notes.txt:1:1" }),
            "error: no_server_for_file\n",
        ),
        (
            "plan_shell",
            json!({ "command": "true", "wait_seconds": -1 }),
            "error: invalid_arguments\n`wait_seconds`",
        ),
        (
            "context",
            json!({ "query": "first", "budget_tokens": "many" }),
            "error: invalid_arguments\n`budget_tokens`",
        ),
    ] {
        let told = agent.call(tool, &arguments);
        assert!(
            told.failed && told.text.starts_with(expected),
            "{tool} {arguments}: {told:?}"
        );
        assert!(told.text.contains("\nWhat to do next: "), "{told:?}");
    }
    let found = agent.done("context", &json!({ "query": "first" }));
    assert!(found.text.contains("fn first()"), "{found:?}");
}

#[test]
fn language_servers_answer_in_short_lines() {
    let stage = Stage::new(&[Player::new("alpha", json!({}))]);
    let project = Project {
        root: stage.work().canonicalize().unwrap(),
        world: stage.world,
    };
    let mut agent = Agent::new(&project, "asker", &[]);
    let name = "file.alpha";
    std::fs::write(project.root.join(name), crate::lsp_stage::TEXT).unwrap();
    let at = json!({ "at": format!("{name}:1:1") });
    let path = json!({ "path": name });
    let found = agent.call("lsp_diagnostics", &path);
    assert!(found.text.contains(&format!("{name}:3:")), "{found:?}");
    // What a server does not offer is said as such, and every question reaches it.
    for (tool, arguments) in [
        ("lsp_hover", at.clone()),
        ("lsp_definition", at.clone()),
        ("lsp_references", at.clone()),
        ("lsp_implementation", at.clone()),
        ("lsp_type_definition", at.clone()),
        ("lsp_declaration", at.clone()),
        ("lsp_calls", at.clone()),
        ("lsp_signature", at.clone()),
        ("lsp_completions", at.clone()),
        ("lsp_code_actions", at.clone()),
        (
            "lsp_rename",
            json!({ "at": format!("{name}:1:1"), "new_name": "second" }),
        ),
        ("lsp_format", path.clone()),
        ("lsp_symbols", path.clone()),
        ("lsp_workspace_symbols", json!({ "name": "first", "path": name })),
    ] {
        let told = agent.call(tool, &arguments);
        let known = !told.failed
            || told.text.starts_with("error: query_unsupported\n")
            || told.text.starts_with("error: server_error\n");
        assert!(known, "{tool}: {told:?}");
    }
}
