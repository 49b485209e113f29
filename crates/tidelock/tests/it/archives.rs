//! Copies of the log: backup, export and import.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use eventlog::{HeadsOrder, HeadsQuery, Log, Sequence, SqliteOptions, StreamId};
use kernel::SystemClock;
use serde_json::json;

use crate::harness::World;
use crate::requests::{force, reset};

/// A world in which much was done by hand.
fn busy_world() -> World {
    let world = World::new();
    world.run(&["up"]).expect(0);
    for number in 0..40 {
        let name = format!("breaker-{}", number % 5);
        let state = if number % 3 == 0 { "open" } else { "closed" };
        assert_eq!(force(&world.home(), &name, state).unwrap().status, 200);
    }
    assert_eq!(reset(&world.home(), "breaker-0").unwrap().status, 200);
    world
}

/// A stream: its name, its status, the body of its head, and its events.
type Stream = (String, String, Vec<u8>, Vec<eventlog::Event>);

/// Everything in the streams of a log file that no daemon has open, without the versions.
fn contents(path: &Path) -> Vec<Stream> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let options = SqliteOptions {
        path: path.to_owned(),
    };
    let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
    runtime.block_on(async {
        assert_eq!(log.check_integrity().await.unwrap(), [] as [String; 0]);
        let mut found = Vec::new();
        for kind in ["boot", "breaker", "process"] {
            let query = HeadsQuery {
                kind: kind.into(),
                status: None,
                order: HeadsOrder::OldestFirst,
                after: None,
                limit: 1000,
            };
            for head in log.heads(query).await.unwrap() {
                let page = log.read(&head.stream, Sequence::START, 1000).await.unwrap();
                found.push((
                    head.stream.to_string(),
                    head.head.status.to_string(),
                    head.head.body.to_vec(),
                    page.events,
                ));
            }
        }
        found
    })
}

#[test]
fn an_archive_has_the_same_heads_and_events_in_another_home() {
    let (world, other) = (busy_world(), World::new());
    let listed = world.run(&["breaker", "list", "--json"]).expect(0).json();
    let history = world
        .run(&["breaker", "history", "breaker-1", "--json"])
        .expect(0)
        .json();
    world.run(&["down"]).expect(0);
    let exported = world.run(&["export", "out.archive", "--json"]).expect(0).json();
    let path = world.path().join("out.archive");
    let size_bytes = fs::metadata(&path).unwrap().len();
    assert_eq!(
        exported,
        json!({ "state": "written", "path": path.display().to_string(), "size_bytes": size_bytes })
    );
    world.run(&["down"]).expect(0);

    let imported = other
        .run(&["import", path.to_str().unwrap(), "--json"])
        .expect(0)
        .json();
    assert_eq!(imported["state"], "filled");
    let (expected, found) = (
        contents(&world.home().log_database()),
        contents(&other.home().log_database()),
    );
    // The one that exported was still running at that moment, as its processes may have been. All have ended since.
    let exporter = expected
        .iter()
        .rposition(|stream| stream.0.starts_with("boot/"))
        .unwrap();
    assert_eq!(
        (found[exporter].1.as_str(), expected[exporter].1.as_str()),
        ("running", "stopped")
    );
    let boot_id = expected[exporter].0.strip_prefix("boot/").unwrap().to_owned();
    let names = |streams: &[Stream]| -> Vec<_> { streams.iter().map(|stream| stream.0.clone()).collect() };
    assert_eq!(names(&found), names(&expected));
    let settled = |streams: &[Stream]| -> Vec<_> {
        let is_exporters = |stream: &&Stream| {
            stream.0.ends_with(&boot_id) || String::from_utf8_lossy(&stream.2).contains(&boot_id)
        };
        let streams = streams.iter().filter(|stream| !is_exporters(stream));
        streams.cloned().collect()
    };
    assert_eq!(settled(&found), settled(&expected));
    assert_eq!(imported["streams"], found.len());

    let states = |list: &serde_json::Value| -> Vec<_> {
        let breakers = list["breakers"].as_array().unwrap();
        let held = breakers.iter().filter(|breaker| breaker["state"] != "closed");
        held.map(|breaker| (breaker["id"].clone(), breaker["state"].clone()))
            .collect()
    };
    let again = other.run(&["breaker", "list", "--json"]).expect(0).json();
    assert_eq!(states(&again), states(&listed));
    assert_eq!(
        other
            .run(&["breaker", "history", "breaker-1", "--json"])
            .expect(0)
            .json(),
        history
    );

    let refused = other
        .run(&["import", path.to_str().unwrap(), "--json"])
        .expect(3)
        .json();
    assert_eq!(refused["error"]["code"], "already_running");
    other.run(&["down"]).expect(0);
    let refused = other
        .run(&["import", path.to_str().unwrap(), "--json"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "log_not_empty");
    let refused = world.run(&["export", "out.archive", "--json"]).expect(4).json();
    assert_eq!(refused["error"]["code"], "file_exists");
    assert_eq!(fs::metadata(&path).unwrap().len(), size_bytes, "it was touched");
}

#[test]
fn an_archive_goes_through_a_pipe() {
    let (world, other) = (busy_world(), World::new());
    let mut export = world.command(&["export", "-"]);
    let mut export = export
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut import = other.command(&["import", "-", "--json"]);
    import.stdin(export.stdout.take().unwrap());
    let imported = crate::harness::finish(import).expect(0).json();
    assert_eq!(
        (&imported["state"], &imported["streams"]),
        (&json!("filled"), &json!(7))
    );
    let said = export.wait_with_output().unwrap();
    assert!(said.status.success());
    assert!(
        String::from_utf8(said.stderr)
            .unwrap()
            .ends_with(" were exported.\n")
    );

    let third = World::new();
    fs::write(third.path().join("nonsense"), "this is not an archive").unwrap();
    let refused = third.run(&["import", "nonsense", "--json"]).expect(1).json();
    assert_eq!(refused["error"]["code"], "archive_unusable");
}

#[test]
fn a_backup_that_was_made_while_others_write_is_a_log() {
    let world = busy_world();
    let home = world.home();
    let before = force(&home, "a", "open").unwrap().request_id;
    let (stop, stopped) = mpsc::channel::<()>();
    let writer = thread::spawn({
        let home = home.clone();
        move || {
            let mut count = 1;
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let state = if count % 2 == 0 { "open" } else { "closed" };
                assert_eq!(force(&home, "a", state).unwrap().status, 200);
                count += 1;
            }
            count
        }
    });
    let made = world.run(&["backup", "copy.sqlite3", "--json"]).expect(0).json();
    let path = world.path().join("copy.sqlite3");
    assert_eq!(
        (&made["state"], &made["path"]),
        (&json!("written"), &json!(path.display().to_string()))
    );
    stop.send(()).unwrap();
    let count = writer.join().unwrap();

    let found = contents(&path);
    let (_, _, _, events) = found.iter().find(|stream| stream.0.ends_with("/a")).unwrap();
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence.get()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.len() <= count, "more than was written");
    assert!(
        String::from_utf8_lossy(&events[0].body).contains(&before),
        "what was acknowledged before is in it"
    );
    assert_eq!(found.len(), 8, "a life, its first process, five breakers and `a`");
    let stream = StreamId::new(&found[1].0).unwrap();
    assert!(stream.as_str().starts_with("breaker/home_"), "{stream}");

    let refused = world.run(&["backup", "copy.sqlite3", "--json"]).expect(4).json();
    assert_eq!(refused["error"]["code"], "backup_exists");
}
