//! Agents that come, go, and outlive the daemon.

use serde_json::{Value, json};

use crate::harness::{World, processes_of, wait_for};
use crate::mcp_stage::{Agent, told};
use crate::plan_stage::{Project, files};
use crate::requests::send;

fn project() -> Project {
    Project::with_git(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")])
}

#[track_caller]
fn clients(world: &World) -> Vec<Value> {
    let answer = send(&world.home(), "GET", "/v1/clients", "").unwrap();
    answer.body["clients"].as_array().unwrap().clone()
}

/// The newest job of the daemon.
#[track_caller]
fn newest_job(world: &World) -> Value {
    let answer = send(&world.home(), "GET", "/v1/jobs?limit=1", "").unwrap();
    answer.body["jobs"][0].clone()
}

#[test]
fn two_agents_edit_one_repository_and_one_of_them_is_undone() {
    let project = project();
    let mut first = Agent::new(&project, "first", &["--allow-apply"]);
    let mut second = Agent::new(&project, "second", &["--allow-apply"]);
    first.done("plan_open", &json!({ "title": "the top" }));
    second.done("plan_open", &json!({ "title": "the bottom" }));
    first.done(
        "plan_edit",
        &json!({ "path": "a.txt", "find": "1\n", "replace": "one\n" }),
    );
    second.done(
        "plan_edit",
        &json!({ "path": "a.txt", "find": "9\n", "replace": "nine\n" }),
    );
    let seen = second.done("overlaps", &json!({}));
    assert!(
        seen.text.contains("the top") && seen.text.contains("first#"),
        "{seen:?}"
    );
    assert!(seen.text.contains("modify a.txt"), "{seen:?}");
    let listed = clients(&project.world);
    let names: Vec<&str> = listed
        .iter()
        .map(|client| client["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["second", "first"]);
    for client in &listed {
        assert!(client["plan"].as_str().unwrap().starts_with("plan_"), "{client}");
        assert_eq!(client["transport"], "stdio");
        assert_eq!(client["protocol"], "2025-11-25");
        assert_eq!(client["version"], "1.2");
        assert_eq!(client["directory"], project.root.to_str().unwrap());
    }

    assert_eq!(first.done("plan_apply", &json!({})).value["outcome"], "done");
    assert_eq!(second.done("plan_apply", &json!({})).value["outcome"], "done");
    assert_eq!(
        project.tree(),
        files(&[("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")])
    );
    assert_eq!(first.done("plan_undo", &json!({})).value["outcome"], "done");
    assert_eq!(
        project.tree(),
        files(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n")])
    );
}

#[test]
fn a_daemon_that_is_killed_costs_an_error_and_nothing_else() {
    let project = project();
    let mut agent = Agent::new(&project, "steady", &[]);
    let opened = agent.done("plan_open", &json!({}));
    agent.done("plan_write", &json!({ "path": "kept.txt", "text": "kept\n" }));
    let before = clients(&project.world);
    let call = json!({ "name": "plan_shell", "arguments": { "command": "sleep 600", "wait_seconds": 100 } });
    let waiting = agent.request("tools/call", &call);
    wait_for("the command to run", || {
        newest_job(&project.world)["state"] == "running"
    });
    project.world.kill();
    let lost = agent.answer(waiting);
    let message = lost["error"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "the daemon was restarted; look at the state and try again"
    );

    // Nothing has been started again before the agent asks for something.
    assert!(project.world.owner().is_none());
    let read = agent.done("plan_read", &json!({ "path": "kept.txt" }));
    assert!(read.text.ends_with("]\nkept\n"), "{read:?}");
    let after = clients(&project.world);
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["actor"], before[0]["actor"]);
    assert_eq!(after[0]["plan"], opened.value["plan"]);
    assert_eq!(agent.beside, Vec::<Value>::new(), "the agent hears nothing of it");

    // The same with a daemon that is stopped as it should be, while nobody asks.
    project.run(&["down"]).expect(0);
    agent.done("plan_write", &json!({ "path": "kept.txt", "text": "still\n" }));
    assert_eq!(clients(&project.world)[0]["plan"], opened.value["plan"]);
    assert_eq!(agent.leave(), Some(0));
    project.run(&["down"]).expect(0);
    wait_for("everything to be gone", || {
        processes_of(&project.world).is_empty()
    });
}

#[test]
fn whoever_leaves_gives_back_what_it_held_and_its_plan_stays() {
    let project = project();
    let mut agent = Agent::new(&project, "leaver", &[]);
    let opened = agent.done("plan_open", &json!({}));
    let plan = opened.value["plan"].as_str().unwrap().to_owned();
    agent.done("plan_write", &json!({ "path": "b.txt", "text": "b\n" }));
    let changesets = || {
        let path = format!("/v1/plans/{plan}/changesets");
        let answer = send(&project.world.home(), "GET", &path, "").unwrap();
        answer.body["changesets"].as_array().unwrap().clone()
    };
    assert_eq!(changesets()[0]["state"], "open");
    let call = json!({ "name": "plan_shell", "arguments": { "command": "sleep 600", "wait_seconds": 100 } });
    agent.request("tools/call", &call);
    wait_for("the command to run", || {
        newest_job(&project.world)["state"] == "running"
    });
    assert_eq!(agent.leave(), Some(0));

    wait_for("the client to be forgotten", || {
        clients(&project.world).is_empty()
    });
    wait_for("its command to end", || {
        newest_job(&project.world)["state"] == "cancelled"
    });
    wait_for("its changesets to be closed", || {
        changesets()
            .iter()
            .all(|changeset| changeset["state"] == "closed")
    });
    assert_eq!(project.shown(&plan)["state"], "open");

    // One that is killed has left as well.
    let killed = Agent::new(&project, "killed", &[]);
    assert_eq!(clients(&project.world).len(), 1);
    crate::harness::signal(killed.pid(), rustix::process::Signal::KILL);
    wait_for("the client to be forgotten", || {
        clients(&project.world).is_empty()
    });
}

#[test]
fn a_call_that_is_cancelled_stops_its_command() {
    let project = project();
    let mut agent = Agent::new(&project, "hasty", &[]);
    agent.done("plan_open", &json!({}));
    let call = json!({ "name": "plan_shell", "arguments": { "command": "sleep 600", "wait_seconds": 100 } });
    let id = agent.request("tools/call", &call);
    wait_for("the command to run", || {
        newest_job(&project.world)["state"] == "running"
    });
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" },
    });
    agent.send(&cancelled);
    wait_for("the command to end", || {
        newest_job(&project.world)["state"] == "cancelled"
    });
    // The agent goes on.
    agent.done("plan_read", &json!({ "path": "a.txt" }));
}

#[test]
fn the_protocol_without_a_handshake_is_spoken_as_well() {
    let project = project();
    let mut agent = Agent::stateless(&project, "modern", &json!({ "elicitation": { "form": {} } }));
    let discovered = agent.ask("server/discover", &json!({}));
    let versions = discovered["result"]["supportedVersions"].to_string();
    assert!(
        versions.contains("2026-07-28") && versions.contains("2025-11-25"),
        "{discovered}"
    );
    let listed = agent.ask("tools/list", &json!({}));
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        31,
        "{listed}"
    );
    agent.done("plan_open", &json!({}));
    agent.done("plan_write", &json!({ "path": "b.txt", "text": "b\n" }));
    let asked = agent.ask("tools/call", &json!({ "name": "plan_apply", "arguments": {} }));
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    assert_eq!(
        result["inputRequests"]["confirm"]["method"], "elicitation/create",
        "{asked}"
    );
    assert!(!project.tree().contains_key("b.txt"));

    // An answer counts for what was shown with the question.
    let answered = |state: &Value| {
        json!({
            "name": "plan_apply", "arguments": {}, "requestState": state,
            "inputResponses": { "confirm": { "action": "accept", "content": { "confirm": true } } },
        })
    };
    let stale = agent.ask("tools/call", &answered(&json!("something else")));
    assert_eq!(stale["result"]["resultType"], "input_required", "{stale}");
    assert!(!project.tree().contains_key("b.txt"));
    let done = told(&agent.ask("tools/call", &answered(&result["requestState"])));
    assert_eq!(done.value["outcome"], "done", "{done:?}");
    assert_eq!(project.tree()["b.txt"], "b\n");

    let seen = &clients(&project.world)[0];
    assert_eq!(seen["protocol"], "2026-07-28");
    // The daemon is killed: without a handshake there is nothing to open again, and the agent is the same.
    agent.done("plan_open", &json!({}));
    let plan = clients(&project.world)[0]["plan"].clone();
    project.world.kill();
    agent.done("plan_read", &json!({ "path": "b.txt" }));
    let again = &clients(&project.world)[0];
    assert_eq!((&again["actor"], &again["plan"]), (&seen["actor"], &plan));
}

#[test]
fn a_hundred_agents_come_and_go_and_nothing_stays() {
    let project = project();
    project.run(&["up"]).expect(0);
    let connections = || {
        let shown = std::fs::read_dir(format!("/proc/{}/fd", project.world.pid())).unwrap();
        shown.count()
    };
    let mut agents: Vec<Agent> = Vec::new();
    for round in 0..10 {
        for number in 0..10 {
            let mut agent = Agent::new(&project, &format!("agent-{round}-{number}"), &[]);
            agent.ask("tools/list", &json!({}));
            agents.push(agent);
        }
        assert_eq!(clients(&project.world).len(), 10);
        agents
            .drain(..)
            .for_each(|agent| assert_eq!(agent.leave(), Some(0)));
        wait_for("the clients to be forgotten", || {
            clients(&project.world).is_empty()
        });
    }
    let before = connections();
    let mut agent = Agent::new(&project, "last", &[]);
    agent.ask("tools/list", &json!({}));
    agent.leave();
    wait_for("the connection to be gone", || connections() <= before);
    assert!(before < 100, "{before} descriptors are open");
}

#[test]
fn a_line_that_is_too_long_is_answered_and_garbage_hurts_nobody() {
    let project = project();
    let mut agent = Agent::new(&project, "loud", &[]);
    agent.send(&json!("not a message"));
    let long =
        json!({ "jsonrpc": "2.0", "id": "long", "method": "ping", "params": { "x": "x".repeat(5 << 20) } });
    agent.send(&long);
    let told = agent.ask("ping", &json!({}));
    assert!(told.get("result").is_some(), "{told}");
    let errors: Vec<&Value> = agent
        .beside
        .iter()
        .map(|message| &message["error"]["message"])
        .collect();
    assert!(
        errors
            .iter()
            .any(|message| message.as_str().is_some_and(|text| text.contains("at most"))),
        "{:?}",
        agent.beside
    );
    let directory = project.run(&["mcp", "--directory", "/nowhere"]);
    assert_eq!((directory.code, directory.stdout.as_str()), (Some(2), ""));
}
