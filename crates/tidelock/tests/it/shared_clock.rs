//! A machine whose clock is wrong, on a log that it shares.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::harness::finish;
use crate::pair::Pair;
use crate::tools::require_tool;

/// What gives a process a clock that is wrong. The program of the same name keeps its child waiting, so it is not used.
pub(crate) fn wrong_clock() -> Option<PathBuf> {
    require_tool("faketime")?;
    let directories = fs::read_dir("/usr/lib").unwrap().flatten();
    let mut libraries = directories.map(|directory| directory.path().join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.is_file())
}

#[test]
fn a_machine_whose_clock_is_wrong_neither_fails_nor_starts_nor_forgets_the_jobs_of_others() {
    let Some(library) = wrong_clock() else { return };
    let Some((pair, _server)) = Pair::with_server(&[]) else {
        return;
    };
    let (one, ahead) = (&pair.one, &pair.other);
    pair.run(ahead, &["down"]);
    let mut skewed = pair.command(ahead, &["up"]);
    skewed.env("LD_PRELOAD", library).env("FAKETIME", "+20d");
    skewed.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    finish(skewed).expect(0);
    let started = pair.json(ahead, &["status"])["started_at"].clone();
    assert!(
        started.as_str() > pair.json(one, &["status"])["started_at"].as_str(),
        "its clock is right: {started}"
    );
    pair.run(one, &["job", "workers", "0"]);
    let late = pair.submit(
        one,
        &["--anywhere", "--deadline", "30m", "--delay", "10m"],
        "echo too late",
    );
    let mut ended = Vec::new();
    for _ in 0..3 {
        // Only the other one can run these, and by then it has seen the first.
        let id = pair.submit(one, &["--anywhere"], "true");
        pair.run(one, &["job", "wait", &id, "--timeout", "30s"]);
        ended.push(id);
    }
    let job = pair.json(one, &["job", "show", &late]);
    assert_eq!(
        (&job["state"], &job["attempts"]),
        (&json!("queued"), &json!(0)),
        "{job}"
    );
    let gone = pair.json(ahead, &["job", "gc", "--older-than", "336h"]);
    assert_eq!(gone["jobs"], 0, "{gone}");
    // What it writes down means the same to all.
    let there = pair.submit(ahead, &[], "true");
    pair.run(ahead, &["job", "wait", &there]);
    ended.push(there);
    let days_of = |id: &String| {
        let job = pair.json(one, &["job", "show", id]);
        ["submitted_at", "started_at", "ended_at"].map(|at| job[at].as_str().unwrap()[..10].to_owned())
    };
    let days: Vec<String> = ended.iter().flat_map(days_of).collect();
    let today = pair.json(one, &["status"])["started_at"].as_str().unwrap()[..10].to_owned();
    let its_day = started.as_str().unwrap()[..10].to_owned();
    assert!(days.iter().all(|day| *day >= today && *day < its_day), "{days:?}");
}
