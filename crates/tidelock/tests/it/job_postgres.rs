//! Jobs of two daemons that share a database, as on two machines.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{World, finish, wait_for};
use crate::job_stage::{Beside, NOBODY, events, left_behind};
use crate::pair::{Pair, URL_VARIABLE};
use crate::tools::skip;

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
    let (here, mut there) = (
        pair.json(one, &["job", "show", &id]),
        pair.json(other, &["job", "show", &id]),
    );
    assert_eq!(
        (&here["state"], &here["cancel"]["why"]),
        (&json!("cancelled"), &json!("from afar"))
    );
    // The one difference is where it is seen from. That both machines have the same name is known to one of them first.
    let (machine, elsewhere) = (&here["machine"], there["machine"].take());
    assert_eq!(
        (&machine["here"], &elsewhere["here"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(machine["home"], elsewhere["home"]);
    there["machine"] = machine.clone();
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

/// A password that the server does not ask for, and that is easy to find.
const PASSWORD: &str = "word-that-nobody-sees";

#[test]
fn the_address_of_the_database_is_in_no_environment_and_in_no_file() {
    let Ok(url) = std::env::var(URL_VARIABLE) else {
        return skip(&format!("{URL_VARIABLE} names no server"));
    };
    let (before, after) = url.split_once('@').expect("a user");
    let pair = Pair::at(format!("{before}:{PASSWORD}@{after}"));
    let one = &pair.one;
    let anybody = [
        "--anywhere",
        "--env",
        "TIDELOCK_DATABASE_URL=postgres://word-that-nobody-sees",
    ];
    let mut jobs = Vec::new();
    for options in [&[][..], &anybody, &["--repeat"]] {
        let id = pair.submit(
            one,
            options,
            "env; echo done; until test -e go; do sleep 0.01; done",
        );
        wait_for("it to run", || {
            pair.run(one, &["job", "logs", &id]).contains("done")
        });
        jobs.push(id);
    }
    // What a caller leaves out is that of the daemon.
    let submitted = post(
        one,
        "/v1/jobs",
        &json!({ "command": { "shell": "env", "directory": one.path() } }),
    );
    jobs.push(submitted["job"]["id"].as_str().unwrap().to_owned());
    let holds = |text: &[u8]| {
        text.windows(PASSWORD.len())
            .any(|part| part == PASSWORD.as_bytes())
    };
    let kept = files_below(&one.path().join("home"));
    assert!(
        kept.iter()
            .any(|path| path.starts_with(one.home().environments())),
        "{kept:?}"
    );
    for path in kept {
        assert!(
            !fs::read(&path).is_ok_and(|bytes| holds(&bytes)),
            "{}",
            path.display()
        );
    }
    fs::write(one.path().join("go"), "").unwrap();
    for id in &jobs {
        pair.run(one, &["job", "wait", id]);
        let said = pair.run(one, &["job", "logs", id]);
        assert!(said.contains("TIDELOCK_PROCESS="), "{said}");
        assert!(!said.contains("DATABASE_URL"), "{said}");
    }
    pair.run(one, &["export", "all"]);
    assert!(!holds(&fs::read(one.path().join("all")).unwrap()));
}

/// The answer to a request that no command of ours makes.
fn post(world: &World, path: &str, body: &Value) -> Value {
    let token = fs::read_to_string(world.home().token_file()).unwrap();
    let body = body.to_string();
    let mut socket = UnixStream::connect(world.home().socket()).unwrap();
    write!(
        socket,
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    });
    files.collect()
}
