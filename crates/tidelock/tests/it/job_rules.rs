//! When a job runs, how often, and what it may do: limits of time, retries, keys, lanes, dependencies, delays, limits
//! and confinement.

use std::fs;

use serde_json::json;

use crate::harness::{World, wait_for};
use crate::job_stage::{NOBODY, ended, events, left_behind, shown, submit, wait_for_state};
use crate::tools::skip;

/// The lines of a file that jobs write to.
fn lines(world: &World, name: &str) -> Vec<String> {
    let text = fs::read_to_string(world.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn an_attempt_that_takes_too_long_is_stopped_with_its_tree() {
    let world = World::new();
    let line = "sleep 600 & echo begun; sleep 600";
    let outcome = world.run(&["job", "run", "--wait", "--timeout", "1s", "--shell", line]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(1), "begun\n"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("timed out"), "{outcome:?}");
    assert_eq!(left_behind(&world), NOBODY);
    let job = shown(&world, "last");
    assert_eq!(
        (&job["state"], &job["reason"]),
        (&json!("failed"), &json!("timed_out")),
        "{job}"
    );
    assert_eq!(events(&job), ["submitted", "claimed", "failed"]);

    // All attempts and pauses together have a limit too.
    let options = [
        "--wait",
        "--deadline",
        "2s",
        "--timeout",
        "600ms",
        "--retries",
        "1000",
        "--retry-pause",
        "1ms",
    ];
    let outcome = world.run(&[&["job", "run"], &options[..], &["--", "sleep", "600"]].concat());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("missed its deadline"), "{outcome:?}");
    let job = shown(&world, "last");
    assert_eq!(job["reason"], "deadline_passed", "{job}");
    assert!(job["attempts"].as_u64().unwrap() > 1, "{job}");
}

#[test]
fn there_are_exactly_as_many_attempts_as_were_asked_for() {
    let world = World::new();
    let script = "echo run >> runs; n=$(wc -l < runs); echo attempt $n; test $n -ge $0 || exit 7";
    for (enough_at, retries, runs, code) in [
        ("9", "2", 3, 7),
        ("9", "0", 1, 7),
        ("2", "5", 2, 0),
        ("1", "5", 1, 0),
    ] {
        fs::write(world.path().join("runs"), "").unwrap();
        let options = ["--wait", "--retries", retries, "--retry-pause", "10ms"];
        let command = ["--", "sh", "-c", script, enough_at];
        let outcome = world.run(&[&["job", "run"], &options[..], &command].concat());
        let what = format!("{enough_at} {retries}: {outcome:?}");
        assert_eq!(
            (outcome.code, lines(&world, "runs").len()),
            (Some(code), runs),
            "{what}"
        );
        // The output of all attempts is one text.
        let said: String = (1..=runs).map(|attempt| format!("attempt {attempt}\n")).collect();
        assert_eq!(outcome.stdout, said, "{what}");
        let job = shown(&world, "last");
        assert_eq!(job["attempts"], runs, "{job}");
        let happened = events(&job);
        let count = |event: &str| happened.iter().filter(|found| **found == event).count();
        assert_eq!((count("claimed"), count("retrying")), (runs, runs - 1), "{job}");
        assert_eq!(count("succeeded") + count("failed"), 1, "{job}");
    }
}

#[test]
fn a_key_is_one_job_however_often_it_is_submitted() {
    let world = World::new();
    let first = submit(&world, &["--key", "nightly"], &["sh", "-c", "echo run >> runs"]);
    ended(&world, &first);
    let again = [
        "job",
        "run",
        "--json",
        "--key",
        "nightly",
        "--",
        "sh",
        "-c",
        "echo run >> runs",
    ];
    let second = world.run(&again).expect(0).json();
    assert_eq!(
        (&second["id"], &second["known"]),
        (&json!(first), &json!(true)),
        "{second}"
    );
    assert_eq!(lines(&world, "runs").len(), 1);
    let told = world.run(&[
        "job",
        "run",
        "--key",
        "nightly",
        "--",
        "sh",
        "-c",
        "echo run >> runs",
    ]);
    assert_eq!(
        told.stderr, "note: this job was already submitted with the same key\n",
        "{told:?}"
    );
    let other = world
        .run(&["job", "run", "--json", "--key", "nightly", "--", "true"])
        .expect(4)
        .json();
    assert_eq!(other["error"]["code"], "idempotency_key_reused", "{other}");
    assert_eq!(other["error"]["current"]["id"], first, "{other}");
    assert_eq!(
        world.run(&["job", "list", "--json"]).json()["jobs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn jobs_of_one_lane_do_not_meet_and_others_pass_by() {
    let world = World::new();
    let hold = submit(
        &world,
        &["--lane", "cargo:/project"],
        &[
            "sh",
            "-c",
            "echo begun >> order; until test -e go; do sleep 0.01; done; echo ended >> order",
        ],
    );
    wait_for("the first to run", || lines(&world, "order") == ["begun"]);
    let waiting = submit(
        &world,
        &["--lane", "cargo:/project"],
        &["sh", "-c", "echo next >> order"],
    );
    // A lane is not a queue for everybody.
    let other = submit(&world, &["--lane", "cargo:/other:2"], &["true"]);
    assert_eq!(ended(&world, &other)["state"], "succeeded");
    let job = shown(&world, &waiting);
    assert_eq!(
        (&job["state"], &job["attempts"]),
        (&json!("queued"), &json!(0)),
        "{job}"
    );
    assert!(
        job["waiting_for"].as_str().unwrap().contains("cargo:/project"),
        "{job}"
    );
    fs::write(world.path().join("go"), "").unwrap();
    for id in [&hold, &waiting] {
        assert_eq!(ended(&world, id)["state"], "succeeded");
    }
    assert_eq!(lines(&world, "order"), ["begun", "ended", "next"]);

    // Many of them, with room for four workers.
    let meet =
        "mkdir alone || { echo met >> meetings; exit 1; }; echo in >> meetings; sleep 0.05; rmdir alone";
    let many: Vec<String> = (0..6)
        .map(|_| submit(&world, &["--lane", "one"], &["sh", "-c", meet]))
        .collect();
    for id in &many {
        assert_eq!(ended(&world, id)["state"], "succeeded");
    }
    assert_eq!(lines(&world, "meetings"), vec!["in"; 6]);
}

#[test]
fn a_job_starts_when_those_before_it_have_succeeded_and_never_if_one_has_not() {
    let world = World::new();
    let wait = "until test -e go; do sleep 0.01; done; echo first >> order";
    let first = submit(&world, &[], &["sh", "-c", wait]);
    let second = submit(
        &world,
        &["--after", "last"],
        &["sh", "-c", "echo second >> order"],
    );
    let job = shown(&world, &second);
    assert_eq!(
        (&job["state"], &job["after"]),
        (&json!("queued"), &json!([first])),
        "{job}"
    );
    assert!(job["waiting_for"].as_str().unwrap().contains(&first), "{job}");
    fs::write(world.path().join("go"), "").unwrap();
    assert_eq!(ended(&world, &second)["state"], "succeeded");
    assert_eq!(lines(&world, "order"), ["first", "second"]);

    let failing = submit(&world, &["--delay", "300ms"], &["false"]);
    let behind = submit(&world, &["--after", &failing], &["touch", "never"]);
    let last = submit(&world, &["--after", &behind], &["touch", "never"]);
    for id in [&behind, &last] {
        let job = ended(&world, id);
        assert_eq!(job["reason"], "dependency_failed", "{job}");
        assert_eq!(job["attempts"], 0, "{job}");
    }
    assert!(!world.path().join("never").exists());
    let late = world.run(&["job", "wait", &last]);
    assert_eq!(late.code, Some(1), "{late:?}");
}

#[test]
fn a_job_waits_for_its_time() {
    let world = World::new();
    let later = submit(&world, &["--delay", "1h"], &["touch", "too-early"]);
    let soon = world
        .run(&["job", "run", "--json", "--delay", "700ms", "--", "true"])
        .expect(0)
        .json();
    let job = ended(&world, soon["id"].as_str().unwrap());
    // Moments are written so that their order is that of their texts.
    let (not_before, started) = (
        soon["not_before"].as_str().unwrap(),
        job["started_at"].as_str().unwrap(),
    );
    assert!(
        soon["submitted_at"].as_str().unwrap() < not_before && not_before <= started,
        "{soon} {job}"
    );
    let job = shown(&world, &later);
    assert_eq!(job["state"], "queued", "{job}");
    assert!(job["not_before"].is_string(), "{job}");
    // It does not even have to be run for that.
    let cancelled = world
        .run(&["job", "cancel", &later, "--why", "not today", "--json"])
        .expect(0)
        .json();
    assert_eq!(cancelled["state"], "cancelled", "{cancelled}");
    assert!(!world.path().join("too-early").exists());
}

#[test]
fn limits_bind_each_process_of_the_command() {
    let world = World::new();
    let limits = ["open-files=64", "file-size=4096", "cpu-seconds=1"];
    let options: Vec<&str> = limits.iter().flat_map(|limit| ["--limit", limit]).collect();
    let run = |line: &str| world.run(&[&["job", "run", "--wait"], &options[..], &["--shell", line]].concat());
    let outcome = run("ulimit -n; sh -c 'ulimit -n; ulimit -t'");
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(0), "64\n64\n1\n"),
        "{outcome:?}"
    );
    let outcome = run("exec head -c 8192 /dev/zero > large");
    assert_eq!(outcome.code, Some(128 + 25), "{outcome:?}");
    assert_eq!(fs::metadata(world.path().join("large")).unwrap().len(), 4096);
    let outcome = run("while :; do :; done");
    assert!(matches!(outcome.code, Some(137 | 152)), "{outcome:?}");
}

#[test]
fn a_confined_job_writes_below_its_directory_and_nowhere_else() {
    let world = World::new();
    fs::create_dir(world.path().join("inside")).unwrap();
    let line = "echo fine > inside/file && echo read $(cat outside); echo bad > outside";
    fs::write(world.path().join("outside"), "untouched").unwrap();
    let outcome = world.run(&["job", "run", "--wait", "--write-below", "inside", "--shell", line]);
    let job = shown(&world, "last");
    if process::landlock_support() == process::Enforcement::None {
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(
            !world.path().join("inside/file").exists(),
            "it was run all the same"
        );
        return skip("this kernel has no Landlock");
    }
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout, "read untouched\n", "{outcome:?}");
    assert!(outcome.stderr.contains("Permission denied"), "{outcome:?}");
    assert_eq!(
        fs::read_to_string(world.path().join("outside")).unwrap(),
        "untouched"
    );
    assert_eq!(
        fs::read_to_string(world.path().join("inside/file")).unwrap(),
        "fine\n"
    );
    let expected = json!(process::landlock_support());
    assert_eq!(job["confinement"], expected, "{job}");
}

#[test]
fn the_number_of_workers_holds_and_is_kept() {
    let world = World::new();
    let told = world.run(&["job", "workers", "0", "--json"]).expect(0).json();
    assert_eq!(told["max_workers"], 0, "{told}");
    let waiting = submit(&world, &[], &["touch", "ran"]);
    world.run(&["down"]).expect(0);
    let told = world.run(&["job", "workers", "--json"]).expect(0).json();
    assert_eq!(
        (&told["max_workers"], &told["queued"]),
        (&json!(0), &json!(1)),
        "{told}"
    );
    let outcome = world
        .run(&["job", "wait", &waiting, "--timeout", "300ms", "--json"])
        .expect(1)
        .json();
    assert_eq!(outcome["error"]["code"], "wait_timeout", "{outcome}");
    assert!(!world.path().join("ran").exists());
    world.run(&["job", "workers", "2"]).expect(0);
    wait_for_state(&world, &waiting, "succeeded");

    // No more than two at once.
    let count = "mkdir $0; ls -d r_* | wc -l >> counts; sleep 0.2; rmdir $0";
    let many: Vec<String> = (0..5)
        .map(|number| submit(&world, &[], &["sh", "-c", count, &format!("r_{number}")]))
        .collect();
    for id in &many {
        ended(&world, id);
    }
    let counts = lines(&world, "counts");
    assert_eq!(counts.len(), 5, "{counts:?}");
    assert!(
        counts.iter().all(|count| ["1", "2"].contains(&count.trim())),
        "{counts:?}"
    );
}
