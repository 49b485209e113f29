//! A plan can always be given up by force, whoever is in it.

use std::fs;
use std::time::Duration;

use crate::harness::{finish, finish_within, wait_for};
use crate::job_stage::{Beside, NOBODY, left_behind};
use crate::plan_stage::Project;

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\n"), ("b.txt", "two\n")];

/// An agent that takes a prompt, starts a process of its own, changes a file and never answers. It heeds no signal but the one
/// that nobody can ignore.
const STUBBORN: &str = r#"
import json, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []},
        "session/new": {"sessionId": "s"},
    }
    if message.get("method") in answers:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": answers[message["method"]]}
        print(json.dumps(answer), flush=True)
    elif message.get("method") == "session/prompt":
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open("half.txt", "w").write("half\n")
"#;

fn project_with_agent() -> Project {
    let project = Project::new(&BEFORE);
    let agent = project.world.path().join("agent.py");
    fs::write(&agent, STUBBORN).unwrap();
    let home = project.world.path().join("home");
    fs::create_dir_all(&home).unwrap();
    let settings = format!(
        "[agents.stubborn]\ncommand = [\"python3\", \"{}\"]\n",
        agent.display()
    );
    fs::write(home.join("config.toml"), settings).unwrap();
    project
}

#[test]
fn a_discard_by_force_ends_the_turn_of_an_agent_that_is_inside() {
    let project = project_with_agent();
    let run = project.command(&["run", "--agent", "stubborn", "do it"]);
    let mut client = Beside::start(&project.world, run);
    let plan = || project.run(&["plan", "list", "--json"]).expect(0).json()["plans"][0].clone();
    wait_for("the agent to be in the sandbox", || plan()["running"].is_array());
    let id = plan()["id"].as_str().unwrap().to_owned();
    wait_for("the agent to have changed something", || {
        project.run(&["plan", "cat", &id, "half.txt"]).code == Some(0)
    });
    let refused = project.run(&["plan", "discard", &id]).expect(4);
    assert!(refused.stderr.contains("in use"), "{refused:?}");
    let discard = project.command(&["plan", "discard", "--force", &id, "--json"]);
    let discarded = finish_within(discard, Duration::from_secs(20)).expect(0).json();
    assert_eq!(discarded["state"], "discarded");
    assert_eq!(discarded["running"], serde_json::Value::Null);
    client.wait_code();
    assert_eq!(left_behind(&project.world), NOBODY);
    // The session says why, and takes the next prompt.
    let session = project.session("@");
    assert_eq!(session["state"], "idle", "{session}");
    assert_eq!(session["last_state"], "cancelled", "{session}");
    let said = project.run(&["session", "show", "@"]).expect(0).stdout;
    assert!(said.contains(&format!("the plan {id} was discarded")), "{said}");
}

#[test]
fn an_applied_plan_names_the_way_back() {
    let project = Project::new(&BEFORE);
    project
        .run(&["exec", "--apply", "--", "sh", "-c", "echo new > a.txt"])
        .expect(0);
    let refused = finish(project.command(&["plan", "discard", "--force", "@"])).expect(4);
    assert!(refused.stderr.contains("is applied"), "{refused:?}");
    assert!(refused.stderr.contains("tidelock plan undo"), "{refused:?}");
}

#[test]
fn a_discard_by_force_during_an_apply_waits_for_its_end() {
    for round in 0..4 {
        let project = Project::new(&BEFORE);
        let plan = project.open(&[]);
        project.work(&plan, "seq 1500 | split -l 1 -a 5 -");
        project.run(&["plan", "seal", &plan]).expect(0);
        let mut apply = Beside::start(&project.world, project.command(&["plan", "apply", &plan]));
        if round > 0 {
            wait_for("the apply to be under way", || {
                project.state_of(&plan) != "sealed" || round % 2 == 0
            });
        }
        let discard = project.command(&["plan", "discard", "--force", &plan]);
        let said = finish_within(discard, Duration::from_secs(40));
        apply.wait_code();
        // It is the one or the other, and never in the way of itself.
        match project.state_of(&plan).as_str() {
            "discarded" => assert_eq!(said.code, Some(0), "{said:?}"),
            "applied" => assert!(said.stderr.contains("tidelock plan undo"), "{said:?}"),
            state => panic!("{state}: {said:?}"),
        }
    }
}
