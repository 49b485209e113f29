//! What `tidelock run --apply` asks for is done by the daemon, whether or not the client is still there when the turn ends.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{finish, signal, wait_for};
use crate::job_stage::{NOBODY, left_behind};
use crate::plan_stage::{Project, files, last_object};
use crate::session_stage::BEFORE;

const WRITE: &str = "steps: [{write: {path: c.txt, text: new}}]";

fn last_turn(project: &Project) -> Value {
    project.session("@")["turns"][0].clone()
}

fn wait_for_finish(project: &Project) -> Value {
    wait_for("the plan of the turn to be finished", || {
        last_turn(project)["finished"].is_object()
    });
    last_turn(project)["finished"].clone()
}

fn applied() -> std::collections::BTreeMap<String, String> {
    files(&[BEFORE[0], BEFORE[1], ("c.txt", "new")])
}

#[test]
fn a_client_that_is_killed_before_the_turn_ends_does_not_keep_it_from_being_applied() {
    let project = Project::with_git(&BEFORE);
    let go = project.world.path().join("go");
    let script = format!(
        "steps: [{{write: {{path: c.txt, text: new}}}}, {{say: begun}}, {{shell: 'while ! test -e {}; do sleep 0.02; done'}}]",
        go.display()
    );
    let mut running = project.talk_beside(&script, &["--apply"]);
    running.wait_for_stdout("begun");
    signal(running.pid(), Signal::KILL);
    running.wait();
    assert_eq!(project.tree(), files(&BEFORE));
    std::fs::write(&go, "").unwrap();
    wait_for("the turn to end", || last_turn(&project)["state"] == "done");
    wait_for("the plan to be applied", || project.tree() == applied());
    let finished = wait_for_finish(&project);
    assert_eq!(
        (&finished["outcome"], &finished["files"]),
        (&json!("done"), &json!(1))
    );
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn a_daemon_that_dies_when_the_turn_has_ended_leaves_the_apply_to_the_next_one() {
    // Before anything is done about the plan, and when it was applied and that is not yet known to the job.
    for step in ["Finishing", "Cleaned"] {
        let project = Project::with_git(&BEFORE);
        let mut up = project.command(&["up"]);
        up.env("TIDELOCK_KILL_AT", step);
        finish(up).expect(0);
        let mut running = project.talk_beside(WRITE, &["--apply"]);
        wait_for("the daemon to be gone", || project.world.owner().is_none());
        signal(running.pid(), Signal::KILL);
        running.wait();
        project.run(&["up"]).expect(0);
        let finished = wait_for_finish(&project);
        assert_eq!(finished["outcome"], "done", "{step}: {finished}");
        assert_eq!(project.tree(), applied(), "{step}");
        let turn = last_turn(&project);
        let plan = turn["plan"].as_str().unwrap();
        let history = project.run(&["plan", "log", plan, "--json"]).expect(0).json();
        let moments = history["moments"].as_array().unwrap();
        let applies = moments.iter().filter(|moment| moment["event"] == "applied");
        assert_eq!(applies.count(), 1, "{step}: it is applied once: {history}");
        // Another daemon finds nothing left to do.
        project.world.kill();
        project.run(&["up"]).expect(0);
        assert_eq!(last_turn(&project)["finished"]["outcome"], "done", "{step}");
        assert_eq!(project.tree(), applied(), "{step}");
    }
}

#[test]
fn a_client_that_waits_is_told_by_the_next_daemon() {
    let project = Project::with_git(&BEFORE);
    let mut up = project.command(&["up"]);
    up.env("TIDELOCK_KILL_AT", "Finishing");
    finish(up).expect(0);
    let mut running = project.talk_beside(WRITE, &["--apply"]);
    wait_for("the daemon to be gone", || project.world.owner().is_none());
    project.run(&["up"]).expect(0);
    assert_eq!(running.wait_code(), 0);
    let (_, stderr) = running.said();
    assert!(stderr.contains(" applied: 1 file."), "{stderr}");
    assert_eq!(project.tree(), applied());
}

#[test]
fn a_turn_says_what_became_of_its_plan() {
    let project = Project::with_git(&BEFORE);
    let finished = |script: &str, code: i32| {
        let done = finish(project.talk(script, &["--apply", "--json"])).expect(code);
        let end = last_object(&done);
        assert_eq!(end["outcome"], end["turn"]["finished"], "{end}");
        end["outcome"].clone()
    };
    assert_eq!(finished(WRITE, 0)["outcome"], "done");
    assert_eq!(
        finished("steps: [{say: nothing to do}]", 0)["outcome"],
        "unchanged"
    );
    let failed = finished("steps: [{write: {path: d.txt, text: half}}, {fail: no}]", 1);
    assert_eq!(
        (&failed["outcome"], &failed["why"]),
        (&json!("not_applied"), &json!("turn_not_done"))
    );
    assert_eq!(project.tree(), applied());
    // It belongs to the turn, and is no other job in the list.
    let listed = project.run(&["job", "list", "--json"]).expect(0).json();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 0, "{listed}");
    // Without a wish there is nothing to say.
    finish(project.talk("steps: [{write: {path: e.txt, text: new}}]", &[])).expect(0);
    assert_eq!(last_turn(&project).get("finished"), None);
}
