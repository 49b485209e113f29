//! A daemon that is killed while commands run in sandboxes: nothing runs on, and what they did is theirs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::job_stage::{Beside, NOBODY, left_behind};
use crate::plan_fire::image;
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];

/// Starts a command in a plan for somebody, and waits until it has done something and goes on.
fn start(project: &Project, plan: &str, actor: &str, line: &str) -> Beside {
    let line = format!("{line}; echo begun; sleep 600 & sleep 600");
    let mut command = project.command(&["plan", "exec", plan, "--", "sh", "-c", &line]);
    command.env("TIDELOCK_ACTOR", actor);
    let running = Beside::start(&project.world, command);
    running.wait_for_stdout("begun");
    running
}

#[test]
fn what_commands_did_before_the_kill_is_recorded_for_them_and_plans_go_on() {
    let project = Project::with_git(&BEFORE);
    let plans = ["overlay", "git-worktree", "copy"].map(|strategy| project.open(&["--strategy", strategy]));
    let mut running: Vec<Beside> = Vec::new();
    for (number, plan) in plans.iter().enumerate() {
        let line = format!("echo by one > one{number}; rm b.txt");
        running.push(start(&project, plan, "one", &line));
    }
    // Two in the same sandbox.
    running.push(start(
        &project,
        &plans[0],
        "two",
        "echo by two > two; mkdir d; ln -s ../a.txt d/link",
    ));
    let before = image(&project.root);
    project.world.kill();
    project.run(&["up"]).expect(0);
    // Those who wait for them find the daemon again, and are told.
    for client in &mut running {
        assert_ne!(client.wait_code(), 0, "{:?}", client.said());
        println!("{:?}", client.said());
    }
    assert_eq!(left_behind(&project.world), NOBODY);
    assert_eq!(image(&project.root), before, "nothing has reached the workspace");
    for (number, plan) in plans.iter().enumerate() {
        let shown = project.shown(plan);
        assert_eq!(
            (&shown["state"], shown.get("running")),
            (&json!("open"), None),
            "{shown}"
        );
        let changesets = project
            .run(&["plan", "changesets", plan, "--json"])
            .expect(0)
            .json();
        let found = owners(&changesets);
        let mut expected: BTreeSet<(String, String)> =
            [("one", format!("one{number}")), ("one", "b.txt".to_owned())]
                .map(|(who, path)| (who.to_owned(), path))
                .into();
        if number == 0 {
            // Nobody can tell who of two wrote what. Each change is somebody's, and the other one is named.
            let all: BTreeSet<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
            assert_eq!(
                all,
                ["b.txt", "d", "d/link", "one0", "two"].into(),
                "{changesets}"
            );
            let who: BTreeSet<&str> = found.iter().map(|(who, _)| who.as_str()).collect();
            assert!(who.is_subset(&["one", "two"].into()), "{changesets}");
            expected.clear();
        }
        if !expected.is_empty() {
            assert_eq!(found, expected, "{changesets}");
        }
        project.work(plan, &format!("cat one{number} >> a.txt"));
    }
    for job in project.run(&["job", "list", "--all", "--json"]).expect(0).json()["jobs"]
        .as_array()
        .unwrap()
    {
        assert_ne!(job["state"], "running", "{job}");
    }
    project.run(&["plan", "apply", &plans[1]]).expect(0);
    let expected = [("a.txt", "one\ntwo\nthree\nby one\n"), ("one1", "by one\n")];
    assert_eq!(project.tree(), files(&expected));
    project.run(&["plan", "undo", &plans[1]]).expect(0);
    assert_eq!(project.tree(), files(&BEFORE));
    project.nothing_is_left("at the end");
}

/// Who changed what.
fn owners(changesets: &Value) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for changeset in changesets["changesets"].as_array().unwrap() {
        for change in changeset["changes"].as_array().unwrap() {
            let word = |value: &Value| value.as_str().unwrap().to_owned();
            found.insert((word(&changeset["actor"]), word(&change["path"])));
        }
    }
    found
}
