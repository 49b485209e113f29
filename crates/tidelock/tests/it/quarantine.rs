//! Records that cannot be read: they are kept and named, and stop nobody.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use eventlog::{Commit, Head, HeadsOrder, HeadsQuery, Log, SqliteOptions, Write};
use kernel::SystemClock;
use serde_json::{Value, json};

use crate::harness::World;
use crate::plan_stage::Project;
use crate::requests::send;

/// Gives the newest stream of each kind a head that means nothing, while no daemon runs. Returns the names.
pub(crate) fn damage(world: &World, kinds: &[&str]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let options = SqliteOptions {
        path: world.home().log_database(),
    };
    let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
    runtime.block_on(async {
        let mut damaged = Vec::new();
        for kind in kinds {
            let query = HeadsQuery {
                kind: (*kind).into(),
                status: None,
                order: HeadsOrder::NewestFirst,
                after: None,
                limit: 1,
            };
            let stored = log.heads(query).await.unwrap().remove(0);
            let head = Head {
                body: b"".as_slice().into(),
                ..stored.head
            };
            let write = Write {
                stream: stored.stream.clone(),
                expected: stored.version,
                head: Some(head),
                events: Vec::new(),
            };
            log.commit(Commit::one(write)).await.unwrap();
            damaged.push(stored.stream.to_string());
        }
        damaged
    })
}

fn ids(list: &Value) -> Vec<&str> {
    let entries = list.as_array().unwrap().iter();
    entries.map(|entry| entry["id"].as_str().unwrap()).collect()
}

#[test]
fn a_workspace_whose_real_path_is_not_utf8_is_refused_and_nothing_is_stored() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let strange = project.world.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&strange).unwrap();
    let link = project.world.path().join("cafe");
    symlink(&strange, &link).unwrap();

    project.run(&["up"]).expect(0);
    let body = json!({ "directory": link }).to_string();
    let refused = send(&project.world.home(), "POST", "/v1/plans", &body).unwrap();
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (422, &json!("workspace_unusable")),
        "{refused:?}"
    );
    assert!(
        refused.body["detail"].as_str().unwrap().contains("not UTF-8"),
        "{refused:?}"
    );

    // What the fault did to everybody else.
    assert_eq!(
        project.run(&["workspace", "list", "--json"]).expect(0).json(),
        json!({ "workspaces": [] })
    );
    project.open(&[]);
    project.run(&["down"]).expect(0);
    project.run(&["up"]).expect(0);
    let listed = project.run(&["quarantine", "list", "--json"]).expect(0).json();
    assert_eq!(listed, json!({ "quarantined": [] }));
}

#[test]
fn heads_that_cannot_be_read_stop_neither_the_start_nor_anybody_else() {
    let project = Project::with_git(&[("a.txt", "a\n")]);
    let other = Project::in_world_at(&project.world, "other", &[("b.txt", "b\n")]);
    // The newest of each kind is damaged; what is made first must go on.
    let kept = project.open(&[]);
    project.work(&kept, "echo kept > kept.txt");
    let job = project
        .run(&["job", "run", "--wait", "--json", "--", "true"])
        .expect(0);
    drop(job);
    project.run(&["job", "run", "--wait", "--", "false"]);
    let session = |title: &str| {
        let body = json!({ "directory": project.root, "title": title }).to_string();
        let opened = send(&project.world.home(), "POST", "/v1/sessions", &body).unwrap();
        assert_eq!(opened.status, 201, "{opened:?}");
        opened.body["id"].as_str().unwrap().to_owned()
    };
    let (kept_session, _lost_session) = (session("kept"), session("lost"));
    let lost = project
        .run(&["plan", "new", other.to_str().unwrap(), "--json"])
        .expect(0)
        .json();
    let lost = lost["id"].as_str().unwrap().to_owned();
    project.run(&["down"]).expect(0);

    let kinds = ["plan", "workspace", "session", "job", "boot"];
    let damaged = damage(&project.world, &kinds);
    assert_eq!(damaged[0], format!("plan/{lost}"));

    project.run(&["up"]).expect(0);
    let list = |what: &str| project.run(&[what, "list", "--json"]).expect(0).json();
    assert_eq!(ids(&list("plan")["plans"]), [kept.as_str()]);
    assert_eq!(ids(&list("session")["sessions"]), [kept_session.as_str()]);
    assert_eq!(list("workspace")["workspaces"].as_array().unwrap().len(), 1);
    // Plans go on, old and new.
    project.work(&kept, "cat kept.txt");
    project.open(&[]);
    project.run(&["plan", "apply", &kept]).expect(0);
    // The other directory gets a new workspace.
    project.run(&["plan", "new", other.to_str().unwrap()]).expect(0);

    // What was damaged says so.
    let shown = project.run(&["plan", "show", &lost, "--json"]);
    assert!(
        shown.stderr.contains("record_unreadable") || shown.stdout.contains("record_unreadable"),
        "{shown:?}"
    );

    // It is named, and can be dropped one by one.
    let doctor = project.run(&["doctor", "--deep", "--json"]).json();
    let check = |id: &str| {
        let checks = doctor["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap().clone()
    };
    let found = check("quarantine");
    assert_eq!(found["state"], "warning", "{found}");
    let quarantined = list("quarantine");
    let mut names: Vec<&str> = quarantined["quarantined"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["stream"].as_str().unwrap())
        .collect();
    let mut expected: Vec<&str> = damaged.iter().map(String::as_str).collect();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for name in &damaged {
        assert!(
            found["detail"].as_str().unwrap().contains(name.as_str()),
            "{name}: {found}"
        );
        let shown = project
            .run(&["quarantine", "show", name, "--json"])
            .expect(0)
            .json();
        assert_eq!((&shown["stream"], &shown["body"]), (&json!(name), &json!("")));
        project.run(&["quarantine", "drop", name]).expect(0);
        project.run(&["quarantine", "drop", name]).expect(4);
    }
    assert_eq!(list("quarantine"), json!({ "quarantined": [] }));
    project
        .run(&["quarantine", "drop", &format!("plan/{kept}")])
        .expect(4);
}

#[test]
fn the_sandbox_of_a_plan_that_cannot_be_read_is_kept() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let plan = project.open(&["--strategy", "copy"]);
    project.work(&plan, "echo work > work.txt");
    let sandbox = project.world.home().plans().join("sandboxes").join(&plan);
    assert!(sandbox.exists());
    project.run(&["down"]).expect(0);
    let damaged = damage(&project.world, &["plan"]);
    project.run(&["up"]).expect(0);
    project.run(&["plan", "gc", "--older-than", "0s"]).expect(0);
    assert!(sandbox.exists(), "what belongs to it is kept as long as it is");
    project.run(&["quarantine", "drop", &damaged[0]]).expect(0);
    project.run(&["down"]).expect(0);
    project.run(&["up"]).expect(0);
    crate::harness::wait_for("the sandbox to be removed", || !sandbox.exists());
}

#[test]
fn a_damaged_output_stops_no_collection_and_is_named() {
    let world = World::new();
    for word in ["one", "two", "three"] {
        world.run(&["job", "run", "--wait", "--", "echo", word]).expect(0);
    }
    world.run(&["down"]).expect(0);
    let damaged = damage(&world, &["job-output"]);
    let collected = world
        .run(&["job", "gc", "--older-than", "0s", "--json"])
        .expect(0)
        .json();
    assert_eq!(collected["jobs"], 2, "{collected}");
    let list = world.run(&["quarantine", "list", "--json"]).expect(0).json();
    assert_eq!(list["quarantined"][0]["stream"], *damaged[0], "{list}");
    let doctor = world.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains(&damaged[0]), "{}", doctor.stdout);
}
