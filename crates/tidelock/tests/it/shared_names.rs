//! On which machine something is, wherever it is listed.

use std::fs;

use serde_json::Value;

use crate::harness::{World, finish, wait_for};
use crate::pair::Pair;
use crate::requests::send;

/// The machine of one entry of a list.
fn machine_of<'a>(list: &'a Value, id: &str) -> &'a Value {
    let entries = list.as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["id"] == id);
    &entry.unwrap_or_else(|| panic!("{id} is not in {list}"))["machine"]
}

fn assert_is(machine: &Value, name: &str, here: bool) {
    assert_eq!(
        (machine["name"].as_str(), machine["here"].as_bool()),
        (Some(name), Some(here)),
        "{machine}"
    );
}

#[test]
fn everything_that_is_listed_says_on_which_machine_it_is() {
    let Some((pair, _server)) = Pair::with_server(&[]) else {
        return;
    };
    let (one, desk) = (&pair.one, &pair.other);
    for (world, name) in [(one, "box"), (desk, "desk")] {
        pair.run(world, &["down"]);
        let mut up = pair.command(world, &["up"]);
        up.env("TIDELOCK_MACHINE", name);
        finish(up).expect(0);
    }
    let project = desk.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("a"), "a\n").unwrap();
    let there = |arguments: &[&str]| {
        let mut command = pair.command(desk, arguments);
        command.current_dir(&project);
        finish(command)
    };
    let plan = there(&["plan", "new", "--json"]).expect(0).json()["id"].clone();
    let plan = plan.as_str().unwrap();
    let change = ["exec", "--plan", plan, "--", "sh", "-c", "echo b >> a"];
    there(&change).expect(0);
    there(&["plan", "seal", plan]).expect(0);
    there(&["run", "--agent", "rehearsal", "hello"]).expect(0);
    let sessions = pair.json(desk, &["session", "list"])["sessions"].clone();
    let session = sessions[0]["id"].as_str().unwrap();
    let job = pair.submit(desk, &[], "exit 1");
    pair.run_any(desk, &["job", "wait", &job]);
    let anywhere = pair.submit(one, &["--anywhere", "--delay", "1h"], "true");
    // The names are known a moment later.
    wait_for("the other machine to be known", || {
        let others = pair.json(one, &["status"])["other_machines"].clone();
        others[0]["name"] == "desk"
    });

    let status = pair.json(one, &["status"]);
    assert_is(&status["machine"], "box", true);
    let jobs = pair.json(one, &["job", "list"]);
    assert_is(machine_of(&jobs["jobs"], &job), "desk", false);
    assert_eq!(machine_of(&jobs["jobs"], &anywhere), &Value::Null);
    assert_is(
        machine_of(&pair.json(desk, &["job", "list"])["jobs"], &job),
        "desk",
        true,
    );
    assert_is(
        machine_of(&pair.json(one, &["plan", "list"])["plans"], plan),
        "desk",
        false,
    );
    assert_is(
        machine_of(&pair.json(one, &["session", "list"])["sessions"], session),
        "desk",
        false,
    );
    let needs = pair.json(one, &["needs"]);
    for id in [plan, &job] {
        assert_is(machine_of(&needs["needs"], id), "desk", false);
    }
    let shown = pair.json(one, &["plan", "show", plan]);
    assert_eq!(shown["notice"], "it is on desk: apply or discard it there");

    // For people there is a column where something is elsewhere, and nothing where all is here.
    let told = |world: &World, arguments: &[&str]| pair.run(world, arguments);
    for list in ["job", "plan", "session"] {
        let (elsewhere, here) = (told(one, &[list, "list"]), told(desk, &[list, "list"]));
        assert!(
            elsewhere.contains("MACHINE") && elsewhere.contains("desk"),
            "{elsewhere}"
        );
        assert!(!here.contains("MACHINE"), "{here}");
    }
    assert!(
        told(one, &["needs"]).contains(" · on desk"),
        "{}",
        told(one, &["needs"])
    );
    assert!(
        !told(desk, &["needs"]).contains(" · on "),
        "{}",
        told(desk, &["needs"])
    );
    assert!(told(one, &["status"]).contains("box; shares its log with desk"));
    for (list, id) in [("job", job.as_str()), ("plan", plan), ("session", session)] {
        let shown = told(one, &[list, "show", id]);
        let line = shown.lines().find(|line| line.starts_with("machine"));
        assert!(line.is_some_and(|line| line.ends_with("desk")), "{shown}");
    }
}

#[test]
fn one_machine_alone_is_only_named_to_programs() {
    let world = World::new();
    let mut up = world.command(&["up"]);
    up.env("TIDELOCK_MACHINE", "box");
    finish(up).expect(0);
    let job = world
        .run(&["job", "run", "--json", "--", "true"])
        .expect(0)
        .json();
    let id = job["id"].as_str().unwrap().to_owned();
    world.run(&["job", "wait", &id]).expect(0);
    let list = send(&world.home(), "GET", "/v1/jobs", "").unwrap().body;
    assert_is(machine_of(&list["jobs"], &id), "box", true);
    assert_is(
        &world.run(&["status", "--json"]).expect(0).json()["machine"],
        "box",
        true,
    );
    for told in [&["job", "list"][..], &["job", "show", &id], &["status"]] {
        let told = world.run(told).expect(0).stdout;
        assert!(!told.to_lowercase().contains("machine"), "{told}");
    }
}

/// A machine that is gone for good leaves nothing behind that nobody can get rid of.
#[test]
fn a_plan_of_a_machine_that_is_gone_is_discarded_from_another() {
    let Some((pair, _server)) = Pair::with_server(&[]) else {
        return;
    };
    let (one, gone) = (&pair.one, &pair.other);
    let project = gone.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("a"), "a\n").unwrap();
    let mut work = pair.command(gone, &["exec", "--json", "--", "sh", "-c", "echo b >> a"]);
    work.current_dir(&project);
    finish(work).expect(0);
    let plans = pair.json(gone, &["plan", "list"])["plans"].clone();
    let plan = plans[0]["id"].as_str().unwrap();
    let discard = ["plan", "discard", plan, "--force", "--json"];
    let refused = pair.run_any(one, &discard);
    assert_eq!(refused.json()["error"]["code"], "plan_elsewhere", "{refused:?}");

    pair.run(gone, &["down"]);
    let without_force = pair.run_any(one, &["plan", "discard", plan, "--json"]);
    assert_eq!(without_force.json()["error"]["code"], "plan_elsewhere");
    pair.run(one, &discard);
    assert_eq!(pair.json(one, &["needs"])["needs"], Value::Array(Vec::new()));

    // If it comes back after all, it knows.
    assert_eq!(pair.json(gone, &["plan", "show", plan])["state"], "discarded");
    let mut apply = pair.command(gone, &["plan", "apply", plan, "--json"]);
    apply.current_dir(&project);
    assert_eq!(finish(apply).json()["error"]["code"], "plan_wrong_state");
    assert_eq!(fs::read_to_string(project.join("a")).unwrap(), "a\n");
}
