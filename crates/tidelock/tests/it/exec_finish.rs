//! What happens when the command of `tidelock exec` has ended is up to the daemon, whoever is still there.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{signal, wait_for};
use crate::job_stage::{Beside, NOBODY, left_behind};
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 1] = [("a.txt", "one\n")];

/// The needs that name a plan, by kind.
fn needs_of(project: &Project, plan: &str) -> Vec<String> {
    let told = project.run(&["needs", "--json"]).expect(0).json();
    let needs = told["needs"].as_array().unwrap();
    let of_plan = needs.iter().filter(|need| need["id"] == plan);
    of_plan
        .map(|need| need["kind"].as_str().unwrap().to_owned())
        .collect()
}

/// What a command does until it is told to go on, which it sees outside of its sandbox.
fn until_go(project: &Project) -> String {
    let go = project.world.path().join("go");
    format!("while ! test -e {}; do sleep 0.02; done", go.display())
}

fn go(project: &Project) {
    std::fs::write(project.world.path().join("go"), "").unwrap();
}

fn wait_for_plan(project: &Project, plan: &str, state: &str) {
    wait_for(&format!("{plan} to be {state}"), || {
        project.shown(plan)["state"] == state
    });
}

fn newest_plan(project: &Project) -> String {
    project.shown("@")["id"].as_str().unwrap().to_owned()
}

fn detached(project: &Project, options: &[&str], line: &str) -> String {
    let mut arguments = vec!["exec", "--detach", "--json"];
    arguments.extend(options);
    arguments.extend(["--", "sh", "-c", line]);
    let begun = project.run(&arguments).expect(0).json();
    begun["plan"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_command_whose_terminal_was_closed_is_sealed_and_waits_for_review() {
    let project = Project::new(&BEFORE);
    let line = format!("echo two >> a.txt; echo begun; {}", until_go(&project));
    let mut running = Beside::start(
        &project.world,
        project.command(&["exec", "--", "sh", "-c", &line]),
    );
    running.wait_for_stdout("begun");
    let plan = newest_plan(&project);
    signal(running.pid(), Signal::HUP);
    running.wait();
    assert_eq!(project.shown(&plan)["state"], "open");
    go(&project);
    wait_for_plan(&project, &plan, "sealed");
    assert_eq!(needs_of(&project, &plan), ["review"]);
    assert_eq!(project.tree(), files(&BEFORE));
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn what_was_detached_is_sealed_applied_or_discarded_when_it_ends() {
    let project = Project::new(&BEFORE);
    let sealed = detached(&project, &[], "echo two >> a.txt");
    wait_for_plan(&project, &sealed, "sealed");
    assert_eq!(needs_of(&project, &sealed), ["review"]);
    let nothing = detached(&project, &[], "true");
    wait_for_plan(&project, &nothing, "discarded");
    let applied = detached(&project, &["--apply"], "echo three >> a.txt");
    wait_for_plan(&project, &applied, "applied");
    assert_eq!(project.tree(), files(&[("a.txt", "one\nthree\n")]));
    let failed = detached(&project, &["--apply"], "echo four >> a.txt; exit 3");
    wait_for_plan(&project, &failed, "sealed");
    assert_eq!(project.tree(), files(&[("a.txt", "one\nthree\n")]));
    // Nobody was there to see the conflict, so it waits for somebody.
    let line = format!("echo five > a.txt; {}", until_go(&project));
    let conflicted = detached(&project, &["--apply"], &line);
    project.write("a.txt", "mine\n");
    go(&project);
    wait_for("the conflict to be known", || {
        needs_of(&project, &conflicted) == ["conflict"]
    });
    assert_eq!(project.tree(), files(&[("a.txt", "mine\n")]));
}

#[test]
fn a_detached_command_is_checked_before_it_is_applied() {
    let project = Project::new(&BEFORE);
    let options = ["--apply", "--check", "grep -q good a.txt"];
    let bad = detached(&project, &options, "echo bad > a.txt");
    wait_for("the check to have failed", || {
        needs_of(&project, &bad) == ["check_failed"]
    });
    let good = detached(&project, &options, "echo good > a.txt");
    wait_for_plan(&project, &good, "applied");
    assert_eq!(project.tree(), files(&[("a.txt", "good\n")]));
}

#[test]
fn a_daemon_that_dies_before_the_end_is_dealt_with_leaves_that_to_the_next_one() {
    // The first is killed while the command runs, the second when the command has ended and nothing was done about it.
    for at in ["running", "ended"] {
        let project = Project::with_git(&BEFORE);
        let mut up = project.command(&["up"]);
        if at == "ended" {
            up.env("TIDELOCK_KILL_AT", "Finishing");
        }
        crate::harness::finish(up).expect(0);
        let line = match at {
            "running" => "echo two >> a.txt; sync; echo begun; sleep 600",
            _ => "echo two >> a.txt; sync; echo begun",
        };
        let options = ["exec", "--apply", "--commit", "--", "sh", "-c", line];
        let mut running = Beside::start(&project.world, project.command(&options));
        if at == "running" {
            running.wait_for_stdout("begun");
            project.world.kill();
        }
        wait_for("the daemon to be gone", || project.world.owner().is_none());
        signal(running.pid(), Signal::KILL);
        running.wait();
        project.run(&["up"]).expect(0);
        let plan = newest_plan(&project);
        let commits = |project: &Project| project.git(&["log", "--format=%s"]).lines().count();
        if at == "running" {
            wait_for_plan(&project, &plan, "sealed");
            assert_eq!(needs_of(&project, &plan), ["review"]);
            assert_eq!(commits(&project), 1);
        } else {
            wait_for_plan(&project, &plan, "applied");
            wait_for("the commit", || commits(&project) == 2);
            project.world.kill();
            project.run(&["up"]).expect(0);
            assert_eq!(project.tree(), files(&[("a.txt", "one\ntwo\n")]));
            assert_eq!(commits(&project), 2, "it is applied once");
        }
    }
}

#[test]
fn who_waits_is_told_what_became_of_it_also_by_the_next_daemon() {
    let project = Project::new(&BEFORE);
    crate::harness::finish({
        let mut up = project.command(&["up"]);
        up.env("TIDELOCK_KILL_AT", "Finishing");
        up
    })
    .expect(0);
    let line = "echo two >> a.txt; echo said";
    let mut running = Beside::start(
        &project.world,
        project.command(&["exec", "--apply", "--", "sh", "-c", line]),
    );
    wait_for("the daemon to be gone", || project.world.owner().is_none());
    project.run(&["up"]).expect(0);
    assert_eq!(running.wait_code(), 0);
    let (stdout, stderr) = running.said();
    assert_eq!(stdout, "said\n");
    assert!(stderr.contains(" applied: 1 file."), "{stderr}");
    assert_eq!(project.tree(), files(&[("a.txt", "one\ntwo\n")]));
}

#[test]
fn the_end_of_a_command_belongs_to_its_job() {
    let project = Project::new(&BEFORE);
    let done = project
        .run(&["exec", "--json", "--", "sh", "-c", "echo two >> a.txt"])
        .expect(0);
    let end = crate::plan_stage::last_object(&done);
    let follower = end["job"]["followed_by"].as_str().unwrap();
    let shown = project.run(&["job", "show", follower, "--json"]).expect(0).json();
    assert_eq!(
        (&shown["state"], &shown["finished"]["outcome"]),
        (&Value::from("succeeded"), &Value::from("sealed"))
    );
    // It belongs to the command, and is no other job in the list.
    let listed = project.run(&["job", "list", "--json"]).expect(0).json();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1);
    // Doing the command again ends the same way.
    let job = end["job"]["id"].as_str().unwrap();
    let plan = end["plan"]["id"].as_str().unwrap();
    project.run(&["job", "retry", job, "--wait"]).expect(0);
    wait_for_plan(&project, plan, "sealed");
    assert_eq!(project.shown(plan)["entries"], 2);
}

#[test]
fn a_commit_that_a_killed_daemon_did_not_make_is_made_by_the_next_one() {
    // In the middle of the landing, and when it is over.
    for step in ["Exchanged", "Cleaned"] {
        let project = Project::with_git(&BEFORE);
        let plan = project.open(&["--title", "a change"]);
        project.work(&plan, "echo two >> a.txt");
        let died = project.die_at(step, &["plan", "apply", "--commit", &plan]);
        assert!(matches!(died, crate::plan_fire::Died::Yes(_)), "{step}: {died:?}");
        assert_eq!(project.git(&["log", "--format=%s"]).lines().count(), 1, "{step}");
        project.run(&["up"]).expect(0);
        wait_for("the commit", || {
            project.git(&["log", "--format=%s"]).lines().next() == Some("a change")
        });
        wait_for_plan(&project, &plan, "applied");
        wait_for("the plan to know it", || {
            project.shown(&plan)["commit"].is_string() || project.git(&["status", "--porcelain"]).is_empty()
        });
        assert_eq!(project.git(&["status", "--porcelain"]), "", "{step}");
    }
}
