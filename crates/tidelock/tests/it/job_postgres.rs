//! Jobs of two daemons that share a database, as on two machines.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{World, finish, wait_for};
use crate::job_stage::{Beside, NOBODY, events, left_behind};
use crate::tools::skip;

/// The server to test with. `cargo xtask test` starts one.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";

/// Two homes, and the database that they share.
struct Pair {
    url: String,
    one: World,
    other: World,
}

impl Pair {
    fn new() -> Option<Pair> {
        let Ok(url) = std::env::var(URL_VARIABLE) else {
            skip(&format!("{URL_VARIABLE} names no server"));
            return None;
        };
        let pair = Pair {
            url,
            one: World::new(),
            other: World::new(),
        };
        for world in [&pair.one, &pair.other] {
            pair.run(world, &["up"]);
        }
        Some(pair)
    }

    fn command(&self, world: &World, arguments: &[&str]) -> Command {
        let mut command = world.command(arguments);
        command.env("TIDELOCK_DATABASE_URL", &self.url);
        command
    }

    fn run(&self, world: &World, arguments: &[&str]) -> String {
        finish(self.command(world, arguments)).expect(0).stdout
    }

    fn json(&self, world: &World, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        finish(self.command(world, &arguments)).expect(0).json()
    }

    fn submit(&self, world: &World, options: &[&str], line: &str) -> String {
        let arguments = [&["job", "run", "--json"], options, &["--shell", line]].concat();
        let job = finish(self.command(world, &arguments)).expect(0).json();
        job["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_job_of_one_machine_is_followed_and_cancelled_from_the_other() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let (one, other) = (&pair.one, &pair.other);
    let id = pair.submit(one, &[], "pwd; sleep 600");
    let follow = pair.command(other, &["job", "logs", "-f", &id]);
    let mut reader = Beside::start(other, follow);
    // It runs where its directory is.
    reader.wait_for_stdout(&one.path().canonicalize().unwrap().display().to_string());
    let told = pair.run(other, &["job", "cancel", &id, "--why", "from afar", "--wait"]);
    assert!(told.contains("was cancelled by the test"), "{told}");
    assert_eq!(left_behind(one), NOBODY);
    assert_eq!(reader.wait_code(), 0);
    let (here, there) = (
        pair.json(one, &["job", "show", &id]),
        pair.json(other, &["job", "show", &id]),
    );
    assert_eq!(
        (&here["state"], &here["cancel"]["why"]),
        (&json!("cancelled"), &json!("from afar"))
    );
    assert_eq!(here, there);
}

#[test]
fn a_machine_that_dies_leaves_its_job_to_the_other_or_has_failed_it() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let (one, other) = (&pair.one, &pair.other);
    // Nobody else may take it before the one that is to die.
    let work = "echo begun; until test -e go; do sleep 0.01; done; echo ended";
    pair.run(other, &["job", "workers", "0"]);
    let again = pair.submit(one, &["--repeat", "--anywhere"], work);
    let never = pair.submit(one, &["--anywhere"], work);
    for id in [&again, &never] {
        wait_for("it to run", || {
            pair.json(other, &["job", "show", id])["state"] == "running"
        });
    }
    pair.run(other, &["job", "workers", "4"]);
    one.kill();
    fs::write(one.path().join("go"), "").unwrap();
    // Its lease has to run out first.
    let ended = |id: &str| {
        let waited = finish(pair.command(other, &["job", "wait", id, "--timeout", "50s", "--json"]));
        (waited.code, pair.json(other, &["job", "show", id]))
    };
    let (code, job) = ended(&never);
    assert_eq!((code, &job["reason"]), (Some(1), &json!("interrupted")), "{job}");
    assert_eq!(
        events(&job),
        ["submitted", "claimed", "interrupted", "failed"],
        "{job}"
    );
    let (code, job) = ended(&again);
    assert_eq!((code, &job["state"]), (Some(0), &json!("succeeded")), "{job}");
    let attempts = job["attempts"].as_u64().unwrap();
    assert_eq!(job["interruptions"].as_u64(), Some(attempts - 1), "{job}");
    assert!(attempts >= 2, "{job}");
    let said = pair.run(other, &["job", "logs", &again]);
    assert!(said.ends_with("begun\nended\n"), "{said}");
    assert_eq!(left_behind(one), NOBODY);
}
