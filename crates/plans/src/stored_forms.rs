//! The log of every home contains these bytes: each literal must decode, and encode to the same bytes again.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::landings::LandingRecord;
use crate::{ChangesetRecord, PlanRecord, Recorded, RescuedRecord, WorkspaceRecord};

const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const ONES: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const PLAN: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const WORKSPACE: &str = "workspace_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const CHANGESET: &str = "changeset_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const HOME: &str = "home_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const JOB: &str = "job_01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn check<T: Debug + DeserializeOwned + Serialize>(stored: &str) {
    let read: T = serde_json::from_str(stored).unwrap_or_else(|error| panic!("{error}: {stored}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
}

fn file(hash: &str) -> String {
    format!(r#"{{"type":"file","hash":"{hash}","size":3,"mode":420}}"#)
}

fn facts(strategy: &str, if_child_fails: &str) -> String {
    format!(
        r#"{{"workspace":"{WORKSPACE}","root":"/home/me/project","title":"a plan","opened_by":"ann","opened_at":1000,"parent":"{PLAN}","depth":1,"strategy":"{strategy}","home":"{HOME}","max_parallel":2,"if_child_fails":"{if_child_fails}","idempotency_key":"k1","command":"{JOB}"}}"#
    )
}

fn few(state: &str) -> String {
    format!(
        r#"{{"facts":{{"workspace":"{WORKSPACE}","root":"/home/me/project","title":"","opened_by":"ann","opened_at":1000,"depth":0,"strategy":"copy","home":"{HOME}","if_child_fails":"carry_on"}},"state":"{state}","changed_at":1000,"base":"{ZEROS}","sandbox":1,"ignored":{{"directories":[],"files":[]}},"entries":0,"changesets":0,"files":0,"fingerprint":"{ZEROS}","has_sandbox":true}}"#
    )
}

fn conflict(kind: &str) -> String {
    let (base, ours, theirs) = (file(ZEROS), file(ONES), r#"{"type":"directory"}"#);
    format!(
        r#"{{"path":"src/main.rs","kind":"{kind}","base":{base},"ours":{ours},"theirs":{theirs},"other":"src/lib.rs","hunks":[{{"line":7,"base":"a\n","ours":"b\n","theirs":"c\n"}}]}}"#
    )
}

/// A plan with everything that a plan can have.
fn full(what: &str, facts: &str) -> String {
    let conflicts: Vec<String> = [
        "content",
        "binary",
        "both_added",
        "deleted_by_workspace",
        "deleted_by_plan",
        "both_renamed",
        "directory_and_file",
        "type",
        "moving",
    ]
    .map(conflict)
    .into();
    let conflicts = conflicts.join(",");
    let left_out: Vec<String> = [
        "repository",
        "changed_repository",
        "history",
        "too_large",
        "too_long",
        "special",
        "name",
        "unreadable",
        "too_many",
    ]
    .map(|why| format!(r#"{{"path":"vendor/x","why":"{why}"}}"#))
    .into();
    let left_out = left_out.join(",");
    let checks = [
        r#"{"command":"cargo test"}"#.to_owned(),
        format!(r#"{{"command":"cargo doc","run":{{"job":"{JOB}","fingerprint":"{ONES}"}}}}"#),
        format!(
            r#"{{"command":"cargo fmt","run":{{"job":"{JOB}","fingerprint":"{ONES}","ended":{{"passed":true,"text":"","at":3000}}}}}}"#
        ),
        format!(
            r#"{{"command":"cargo deny","run":{{"job":"{JOB}","fingerprint":"{ONES}","ended":{{"passed":false,"text":"exit code 1","at":3000}}}}}}"#
        ),
    ]
    .join(",");
    [
        format!(
            r#"{{"facts":{facts},"state":"sealed","changed_at":2000,"base":"{ZEROS}","base_taken_at":900,"sandbox":3,"ignored":{{"directories":["target"],"files":["notes"]}},"entries":5,"outdated_entries":2,"changesets":2,"#
        ),
        format!(r#""open_changesets":[{{"id":"{CHANGESET}","actor":"bob"}}],"files":4,"fingerprint":"{ONES}","#),
        format!(
            r#""running":[{{"stay":"s1","job":"{JOB}","actor":"bob","tool":"shell","reason":"make","since":1500}},{{"stay":"s2","actor":"eve","tool":"merge","reason":"merge","since":1600}}],"#
        ),
        format!(r#""checks":[{checks}],"landing":"landing_1","#),
        r#""landed":{"landing":"landing_0","number":1,"commit":"abc","commit_wanted":"a message"},"#.to_owned(),
        format!(r#""refused":{{"what":"{what}","by":"ann","at":1700,"conflicts":[{conflicts}]}},"#),
        format!(r#""remarks":["git does not work here"],"left_out":[{left_out}],"uncarried":[{left_out}],"#),
        r#""branches":[{"name":"topic","commits":2,"subjects":["two","one"]},{"name":"empty","commits":0}],"#.to_owned(),
        format!(
            r#""unrecorded":{{"actor":"bob","tool":"shell","reason":"make","job":"{JOB}","why":"the disk is full"}},"has_sandbox":false}}"#
        ),
    ]
    .concat()
}

#[test]
fn heads_of_plans() {
    for state in ["open", "sealed", "applied", "undone", "discarded"] {
        check::<PlanRecord>(&few(state));
    }
    for (what, strategy, if_child_fails) in [
        ("apply", "overlay", "carry_on"),
        ("undo", "git-worktree", "stop"),
        ("refresh", "copy", "stop"),
    ] {
        check::<PlanRecord>(&full(what, &facts(strategy, if_child_fails)));
    }
}

#[test]
fn heads_of_changesets() {
    for (job, state) in [("", "open"), (&*format!(r#""job":"{JOB}","#), "closed")] {
        check::<ChangesetRecord>(&format!(
            r#"{{"plan":"{PLAN}","number":2,"actor":"bob","tool":"shell","reason":"make",{job}"started_at":1500,"state":"{state}","entries":3}}"#
        ));
    }
}

#[test]
fn recorded_changes() {
    let (before, after) = (file(ZEROS), file(ONES));
    for change in [
        format!(r#""path":"a","after":{after}"#),
        format!(r#""path":"a","before":{before},"after":{after},"from":"b""#),
        r#""path":"a","before":{"type":"directory"},"after":{"type":"symlink","target":"b"}"#.to_owned(),
        r#""path":"a","before":{"type":"symlink","target":[255,0]},"also_running":["eve"]"#.to_owned(),
    ] {
        check::<Recorded>(&format!(r#"{{"entry":4,"at":1600,{change}}}"#));
    }
}

#[test]
fn heads_of_workspaces() {
    check::<WorkspaceRecord>(&format!(
        r#"{{"root":"/home/me/project","identity":[7,8],"home":"{HOME}","registered_at":900,"checks":["cargo test"],"landing":"landing_1"}}"#
    ));
    check::<WorkspaceRecord>(&format!(
        r#"{{"root":"/home/me/project","identity":[7,8],"home":"{HOME}","registered_at":900,"checks":[]}}"#
    ));
}

#[test]
fn heads_of_landings() {
    for state in ["written", "begun", "done", "taken_back", "set_aside"] {
        check::<LandingRecord>(&format!(
            r#"{{"state":"{state}","what":"undo","by":"ann","at":1800,"workspace":"{WORKSPACE}","parent":"{PLAN}","plans":["{PLAN}"],"changeset":"{CHANGESET}","home":"{HOME}","commit":"a message","effects":4}}"#
        ));
    }
    check::<LandingRecord>(&format!(
        r#"{{"state":"done","what":"apply","by":"ann","at":1800,"workspace":"{WORKSPACE}","plans":[],"home":"{HOME}","effects":0}}"#
    ));
}

#[test]
fn records_of_rescued_content() {
    let entry = format!(r#""entry":{},"#, file(ZEROS));
    for (kind, entry, why) in [
        ("file", &*entry, "written_meanwhile"),
        ("symlink", "", "not_put_back"),
        ("directory", "", "set_aside"),
        ("special", "", "replaced"),
    ] {
        check::<RescuedRecord>(&format!(
            r#"{{"workspace":"{WORKSPACE}","root":"/home/me/project","what":"apply","landing":"landing_1","name":"n1","plans":["{PLAN}"],"path":"src/main.rs","kind":"{kind}",{entry}"why":"{why}","since":1900}}"#
        ));
    }
}
