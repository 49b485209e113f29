//! What is asked of a shared log: the way to it may be long. Lists over very many jobs cost what they show, and a job costs what
//! others have to know of it.

use std::fs;

use serde_json::json;

use crate::harness::wait_for;
use crate::pair::Pair;
use crate::postgres_server::TestServer;
use crate::requests::send;

/// More than any list shows.
const WAITING: usize = 300;
/// How many a list shows.
const SHOWN: usize = 100;

/// How often a job is written to the log in its life: when it is submitted, when it is taken, and when it has ended.
const COMMITS: usize = 3;

/// How often the server has been asked to commit so far.
fn commits(server: &TestServer) -> usize {
    let log = fs::read_to_string(server.directory.path().join("log")).unwrap();
    log.lines()
        .filter(|line| line.ends_with("statement: COMMIT"))
        .count()
}

/// How many prepared statements the server has been asked to execute so far. Every read of the log is one.
fn executed(server: &TestServer) -> usize {
    let log = fs::read_to_string(server.directory.path().join("log")).unwrap();
    log.lines().filter(|line| line.contains("LOG:  execute ")).count()
}

#[test]
fn a_list_of_waiting_jobs_is_not_read_job_by_job() {
    let Some((pair, server)) = Pair::with_server(&["log_statement = 'all'"]) else {
        return;
    };
    // Nobody else looks while this counts.
    pair.run(&pair.other, &["down"]);
    let (world, home) = (&pair.one, pair.one.home());
    pair.run(world, &["job", "workers", "0"]);
    let job = json!({ "command": { "argv": ["true"], "directory": world.path() } }).to_string();
    for _ in 0..WAITING {
        let answer = send(&home, "POST", "/v1/jobs", &job).unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    wait_for("all of them to wait", || {
        pair.json(world, &["status"])["jobs"]["queued"] == WAITING
    });
    let cost = |path: &str| {
        let before = executed(&server);
        let answer = send(&home, "GET", path, "").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        (answer.body, executed(&server) - before)
    };
    let (list, statements) = cost(&format!("/v1/jobs?limit={SHOWN}"));
    assert_eq!(list["jobs"].as_array().unwrap().len(), SHOWN);
    assert!(list["jobs"][0]["waiting_for"].is_string(), "{}", list["jobs"][0]);
    assert!(statements <= 4, "{statements} statements for a list of {SHOWN}");
    let (list, statements) = cost(&format!("/v1/activity?limit={SHOWN}"));
    assert_eq!(list["activity"].as_array().unwrap().len(), SHOWN, "{list}");
    // One for the events of each, and one for the newest of each kind.
    assert!(
        statements <= SHOWN + 24,
        "{statements} statements for {SHOWN} events"
    );
}

#[test]
fn a_job_costs_the_shared_log_what_others_have_to_know() {
    let Some((pair, server)) = Pair::with_server(&["log_statement = 'all'"]) else {
        return;
    };
    pair.run(&pair.other, &["down"]);
    let run = || {
        let before = commits(&server);
        pair.run(&pair.one, &["job", "run", "--wait", "--", "true"]);
        commits(&server) - before
    };
    // What goes on beside it, once in a while, does not count. Which processes there are is this machine's business.
    let least = (0..5).map(|_| run()).min().unwrap();
    assert!(least <= COMMITS, "{least} commits for a job");
    assert!(pair.one.home().machine_database().exists());
}
