//! Several agents at once on one repository: one succeeds, one conflicts, one is cancelled, and one is killed together with the
//! daemon. In the end exactly the applied work is in the tree, and there is a clear word on the rest.

use std::fs;

use rustix::process::Signal;

use crate::harness::signal;
use crate::job_stage::Beside;
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];

/// Starts an agent that works, says so, and goes on when it is told to.
fn agent(project: &Project, name: &str, line: &str) -> Beside {
    let go = project.world.path().join(format!("go-{name}"));
    let line = format!(
        "{line}; echo begun; while ! test -e {}; do sleep 0.05; done; echo {name} > {name}.txt",
        go.display()
    );
    let mut command = project.command(&["exec", "--apply", "--title", name, "--", "sh", "-c", &line]);
    command.env("TIDELOCK_ACTOR", name);
    let running = Beside::start(&project.world, command);
    running.wait_for_stdout("begun");
    running
}

fn tell(project: &Project, name: &str) {
    fs::write(project.world.path().join(format!("go-{name}")), "").unwrap();
}

#[test]
fn exactly_the_applied_work_is_in_the_tree_and_the_rest_is_said() {
    let project = Project::with_git(&BEFORE);
    let mut good = agent(&project, "good", "sed -i s/two/2/ a.txt");
    let mut rival = agent(&project, "rival", "sed -i s/two/zwei/ a.txt");
    let mut cancelled = agent(&project, "cancelled", "echo half > b.txt");
    let mut killed = agent(&project, "killed", "echo cut > b.txt; mkdir d; echo d > d/d");
    assert_eq!(project.tree(), files(&BEFORE), "nothing is applied yet");

    tell(&project, "good");
    assert_eq!(good.wait_code(), 0, "{:?}", good.said());
    let said = good.said().1;
    assert!(said.contains("applied: 2 files."), "{said}");
    let after = files(&[
        ("a.txt", "one\n2\nthree\n"),
        ("b.txt", "b\n"),
        ("good.txt", "good\n"),
    ]);
    assert_eq!(project.tree(), after);

    tell(&project, "rival");
    assert_eq!(rival.wait_code(), 1, "{:?}", rival.said());
    let said = rival.said().1;
    for part in [
        "cannot be applied: 1 file in conflict. Nothing was changed.",
        "a.txt: the workspace and the plan changed the same lines",
        "zwei",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert_eq!(project.tree(), after);

    signal(cancelled.pid(), Signal::INT);
    assert_eq!(cancelled.wait_code(), 130, "{:?}", cancelled.said());
    let said = cancelled.said().1;
    assert!(said.contains("Its changes are kept in plan_"), "{said}");

    project.world.kill();
    project.run(&["up"]).expect(0);
    tell(&project, "killed");
    assert_ne!(killed.wait_code(), 0, "{:?}", killed.said());
    let said = killed.said().1;
    println!("{said}");
    project.nothing_is_left("after the restart");
    assert_eq!(project.tree(), after);

    // Each has a plan that says what it is, and what is in it.
    let listed = project.run(&["plan", "list", "--all", "--json"]).expect(0).json();
    let mut found: Vec<(String, String, String, u64)> = Vec::new();
    for plan in listed["plans"].as_array().unwrap() {
        let word = |name: &str| plan[name].as_str().unwrap().to_owned();
        let files = plan["summary"]["files"].as_u64().unwrap();
        found.push((word("title"), word("opened_by"), word("state"), files));
    }
    found.sort();
    let expected = [
        ("cancelled", "sealed", 1),
        ("good", "applied", 2),
        ("killed", "sealed", 2),
        ("rival", "sealed", 2),
    ];
    let expected =
        expected.map(|(name, state, files)| (name.to_owned(), name.to_owned(), state.to_owned(), files));
    assert_eq!(found, expected);
    let text = project.run(&["plan", "list"]).expect(0).stdout;
    for name in ["cancelled", "killed", "rival"] {
        assert!(text.contains(name), "{name} is not in {text}");
    }

    // What the killed one had done can still be had, and the good one can be taken back alone.
    let id = |title: &str| {
        let plans = listed["plans"].as_array().unwrap();
        let plan = plans.iter().find(|plan| plan["title"] == title).unwrap();
        plan["id"].as_str().unwrap().to_owned()
    };
    project.run(&["plan", "apply", &id("killed")]).expect(0);
    project.run(&["plan", "undo", &id("good")]).expect(0);
    let expected = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "cut\n"), ("d/d", "d\n")];
    assert_eq!(project.tree(), files(&expected));
}
