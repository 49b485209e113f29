//! What people read about jobs: `show`, `list`, `wait`, `cancel`, `retry`, `gc` and `workers`.

use serde_json::json;

use crate::harness::World;
use crate::job_stage::{ended, events, shown, submit, wait_for_state};

/// Snapshots in which ids, times and durations have names.
fn snapshots(world: &World) -> insta::Settings {
    let mut settings = world.snapshots();
    for (pattern, name) in [
        (r"job_[0-9A-Z]{26}", "[JOB]"),
        (r"home_[0-9A-Z]{26}", "[HOME]"),
        (r"\d{4}-\d\d-\d\d [0-9:.]+", "[TIME]"),
        (r"\+\d+ (ms|s)\b *", "+[DURATION]  "),
        (r"\d+ (ms|s) ago", "[DURATION] ago"),
        (r"(?m)^(ran\s+)\d+ (ms|s)", "$1[DURATION]"),
        (r"after \d+ (ms|s)", "after [DURATION]"),
        (r"\(\d+\)", "([PID])"),
        (r"the next one in \d+ ms", "the next one in [DURATION]"),
    ] {
        settings.add_filter(pattern, name);
    }
    settings
}

#[test]
fn a_job_is_shown_whole() {
    let world = World::new();
    let script = "echo '::progress 1/3 first'; printf 12345; exit 3";
    let options = [
        "--retries",
        "1",
        "--retry-pause",
        "10ms",
        "--lane",
        "cargo:2",
        "--priority",
        "-2",
        "--timeout",
        "1m",
        "--title",
        "the build",
        "--key",
        "k",
        "--repeat",
    ];
    let id = submit(&world, &options, &["sh", "-c", script]);
    ended(&world, &id);
    let told = world.run(&["job", "show", &id]).expect(0);
    assert_eq!(told.stderr, "");
    snapshots(&world).bind(|| insta::assert_snapshot!(told.stdout));
}

#[test]
fn people_read_local_times_and_programs_read_utc() {
    let world = World::new();
    let id = submit(&world, &[], &["true"]);
    ended(&world, &id);
    let utc = shown(&world, &id)["submitted_at"].as_str().unwrap().to_owned();
    for (zone, hours) in [("UTC0", 0), ("TEST-5", 5), ("TEST+7", -7)] {
        let run = |arguments: &[&str]| {
            let mut command = world.command(arguments);
            command.env("TZ", zone);
            let ended = command.output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            String::from_utf8(ended.stdout).unwrap()
        };
        let time: jiff::Timestamp = utc.parse().unwrap();
        let local = time.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(hours)));
        let expected = format!("{}, ", local.strftime("%Y-%m-%d %H:%M:%S%.3f"));
        let told = run(&["job", "show", &id]);
        assert!(told.contains(&expected), "{zone}: no {expected} in {told}");
        assert!(!told.contains(&utc), "{zone}: {told}");
        let value: serde_json::Value = serde_json::from_str(&run(&["job", "show", &id, "--json"])).unwrap();
        assert_eq!(value["submitted_at"], utc.as_str(), "{zone}");
    }
}

#[test]
fn a_cancelled_job_says_who_why_and_what_had_to_be_killed() {
    let world = World::new();
    let id = submit(
        &world,
        &[],
        &["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 600; done"],
    );
    crate::harness::wait_for("it to run", || {
        world.run(&["job", "logs", &id]).stdout == "deaf\n"
    });
    let told = world
        .run(&["job", "cancel", &id, "--why", "wrong branch", "--wait"])
        .expect(0);
    let shown = world.run(&["job", "show", &id]).expect(0);
    let waited = world.run(&["job", "wait", &id]).expect(1);
    let again = world.run(&["job", "cancel", &id]).expect(4);
    snapshots(&world).bind(|| {
        insta::assert_snapshot!(format!(
            "{}\n{}\n{}\n{}",
            told.stdout, shown.stdout, waited.stdout, again.stderr
        ));
    });
}

#[test]
fn lists_are_newest_first_and_can_be_narrowed() {
    let world = World::new();
    assert_eq!(
        world.run(&["job", "list"]).expect(0).stdout,
        "No jobs found. Submit one with: tidelock job run -- COMMAND\n0 running of at most 4, 0 waiting.\n"
    );
    let good = submit(&world, &[], &["true"]);
    let bad = submit(&world, &["--title", "a\u{1b}[31m\nred\u{7}"], &["false"]);
    let later = submit(&world, &["--delay", "1h"], &["true"]);
    for id in [&good, &bad] {
        ended(&world, id);
    }
    let ids = |options: &[&str]| -> (Vec<String>, bool) {
        let list = world
            .run(&[&["job", "list", "--json"], options].concat())
            .expect(0)
            .json();
        let jobs = list["jobs"].as_array().unwrap();
        let ids = jobs
            .iter()
            .map(|job| job["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, list["next_before"].is_string())
    };
    let some = |ids: &[&String]| ids.iter().map(|id| (*id).clone()).collect::<Vec<_>>();
    assert_eq!(ids(&[]), (some(&[&later, &bad, &good]), false));
    assert_eq!(ids(&["--limit", "2"]), (some(&[&later, &bad]), true));
    assert_eq!(ids(&["--state", "failed"]), (some(&[&bad]), false));
    assert_eq!(ids(&["--state", "queued"]), (some(&[&later]), false));
    assert_eq!(ids(&["--state", "running"]), (vec![], false));
    let list = world.run(&["job", "list", "--json"]).expect(0).json();
    assert_eq!(
        list["counts"],
        json!({ "queued": 1, "running": 0, "foreground": 0, "max_workers": 4 })
    );
    let text = world.run(&["job", "list"]).expect(0).stdout;
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    assert_eq!(text.lines().count(), 5, "{text}");
}

#[test]
fn a_retry_is_a_new_job_that_names_the_old_one() {
    let world = World::new();
    let script = "test -e mended && echo fine";
    let id = submit(&world, &["--lane", "a", "--timeout", "1m"], &["sh", "-c", script]);
    assert_eq!(ended(&world, &id)["state"], "failed");
    std::fs::write(world.path().join("mended"), "").unwrap();
    let outcome = world.run(&["job", "retry", &id, "--wait"]).expect(0);
    assert_eq!(outcome.stdout, "fine\n");
    let (old, new) = (shown(&world, &id), shown(&world, "last"));
    assert_eq!(new["retry_of"], id, "{new}");
    for field in ["title", "lane", "time_limit_ms", "handler"] {
        assert_eq!(new[field], old[field], "{field}");
    }
    assert_eq!(
        events(&old),
        ["submitted", "claimed", "failed"],
        "the old one has ended for good"
    );
    let running = submit(&world, &[], &["sleep", "600"]);
    wait_for_state(&world, &running, "running");
    let refused = world.run(&["job", "retry", &running, "--json"]).expect(4).json();
    assert_eq!(refused["error"]["code"], "job_not_ended", "{refused}");
    world.run(&["job", "cancel", &running, "--wait"]).expect(0);
}

#[test]
fn jobs_are_forgotten_when_they_are_old_and_nobody_waits_for_them() {
    let world = World::new();
    let ended_ones: Vec<String> = (0..3)
        .map(|_| {
            let id = submit(&world, &[], &["echo", "output"]);
            ended(&world, &id);
            id
        })
        .collect();
    let waiting = submit(&world, &["--delay", "1h", "--after", &ended_ones[0]], &["true"]);
    let told = world.run(&["job", "gc"]).expect(0);
    assert_eq!(told.stdout, "No jobs to forget.\n", "they are not a week old");
    let told = world
        .run(&["job", "gc", "--older-than", "0s", "--keep", "1", "--json"])
        .expect(0)
        .json();
    assert_eq!(told, json!({ "jobs": 1, "output_bytes": 7, "in_use": 1 }));
    for (id, code) in [
        (&ended_ones[0], 0),
        (&ended_ones[1], 4),
        (&ended_ones[2], 0),
        (&waiting, 0),
    ] {
        world.run(&["job", "show", id]).expect(code);
    }
    assert_eq!(world.run(&["job", "logs", &ended_ones[1]]).code, Some(4));
}

#[test]
fn a_part_of_an_id_is_enough_if_no_other_has_it() {
    let world = World::new();
    let first = submit(&world, &[], &["true"]);
    let second = submit(&world, &[], &["true"]);
    let end = &first[first.len() - 12..];
    assert_eq!(shown(&world, end)["id"], first);
    assert_eq!(shown(&world, "last")["id"], second);
    let outcome = world.run(&["job", "show", "job_01", "--json"]).expect(4).json();
    assert_eq!(outcome["error"]["code"], "job_ambiguous", "{outcome}");
}
