//! Agents and commands of `exec` have places of their own, and whoever waits for one is told for what.

use serde_json::{Value, json};

use crate::harness::{program, wait_for};
use crate::job_stage::{Beside, job_command, submit};
use crate::plan_stage::Project;

/// A shell that has the daemon run a check as a job, as an agent does through its tools, and waits for it.
fn agent() -> String {
    let program = program().display().to_string();
    format!(
        "plan=$({program} plan new --json | grep -o 'plan_[0-9A-Z]*' | head -n 1); \
         {program} plan check $plan --add true && echo asked"
    )
}

#[test]
fn agents_that_ask_for_jobs_do_not_wait_for_each_other() {
    let project = Project::new(&[("a.txt", "one\n")]);
    // A command in a sandbox may start one outside only where agents need not ask.
    let home = project.world.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "[mcp]\napply = \"allow\"\n").unwrap();
    project.run(&["job", "workers", "2"]).expect(0);
    // As many as there are workers, and more.
    let line = agent();
    let mut agents: Vec<Beside> = (0..4)
        .map(|_| {
            let command = project.command(&["exec", "--", "sh", "-c", &line]);
            Beside::start(&project.world, command)
        })
        .collect();
    for agent in &mut agents {
        agent.wait_for_stdout("asked");
        assert_eq!(agent.wait_code(), 0, "{:?}", agent.said());
    }
}

#[test]
fn who_waits_for_a_place_is_told_so() {
    let project = Project::new(&[("a.txt", "one\n")]);
    let world = &project.world;
    project.run(&["job", "workers", "1"]).expect(0);
    let long = submit(world, &[], &["sleep", "600"]);
    crate::job_stage::wait_for_state(world, &long, "running");
    let waiting = Beside::start(world, job_command(world, &["run", "--wait", "--", "true"]));
    waiting.wait_for_stderr("waiting for a place: 1 of 1 job is running");
    let queued = project
        .run(&["job", "list", "--state", "queued", "--json"])
        .expect(0)
        .json();
    let expected = json!({"text": "a place: 1 of 1 job is running"});
    assert_eq!(queued["jobs"][0]["waiting_for"], expected["text"]);
    let (lane, after) = (
        submit(world, &["--lane", "cargo:1", "--after", &long], &["true"]),
        Value::from(long.clone()),
    );
    wait_for("the dependency to be named", || {
        crate::job_stage::shown(world, &lane)["waiting_for"] == after
    });
    // What somebody runs in a sandbox needs no place of the queue.
    project.run(&["exec", "--", "true"]).expect(0);
    project.run(&["job", "cancel", &long]).expect(0);
}
