//! Every route keeps what its description promises: schemathesis makes requests from `/openapi.json`, right ones and wrong
//! ones, and compares each answer with it. `tests/openapi/hooks.py` gives it real ids, and says what it must leave alone.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::harness::wait_for_within;
use crate::job_stage::Beside;
use crate::lsp_stage::{Player, Stage};
use crate::security_stage::Target;
use crate::tools::require_installed;

/// Routes that are not asked, and why. The pattern is that of a path.
const LEFT_OUT: [(&str, &str); 4] = [
    (
        "/v1/shutdown",
        "stops the daemon that all others are asked of; `life` tests it",
    ),
    (
        r"/v1/(activity|jobs|lsp|plans|sessions)/events",
        "is a stream without an end; `streams` and the tests in the browser follow it",
    ),
    (r"/v1/plans/\{id\}/events", "is a stream as well"),
    (
        r"/v1/sessions/\{id\}/events",
        "is a stream for whoever accepts one, and schemathesis accepts everything",
    ),
];

/// Checks that are not made, and why.
const NOT_CHECKED: [(&str, &str); 3] = [
    (
        "negative_data_rejection",
        "the hooks put real ids in place of wrong ones, which are then right",
    ),
    (
        "positive_data_acceptance",
        "a right shape can name something that is not there",
    ),
    (
        "allow_header_conformance",
        "a breaker may be called `reset`, so that path takes GET as well; it is described as `/v1/breakers/{name}`",
    ),
];

/// How many requests are made up for each route, besides those that follow from the description.
const EXAMPLES: &str = "5";

/// Set it to a larger number for a longer look.
const EXAMPLES_VARIABLE: &str = "TIDELOCK_OPENAPI_EXAMPLES";

/// It takes about a minute; with more examples it takes longer.
const LIMIT: Duration = Duration::from_secs(1_800);

#[test]
fn every_answer_is_as_it_is_described() {
    let Some(schemathesis) = require_installed("schemathesis") else {
        return;
    };
    let stage = Stage::without_daemon(&[Player::new("alpha", json!({}))]);
    let (file, world) = (stage.file("alpha"), stage.world);
    let (project, backups) = (world.path().join("plain"), world.path().join("backups"));
    for directory in [&project, &backups] {
        fs::create_dir(directory).unwrap();
    }
    fs::write(project.join("a.txt"), "a\n").unwrap();
    let target = Target::of(world);
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openapi");
    let examples = env::var(EXAMPLES_VARIABLE).unwrap_or_else(|_| EXAMPLES.to_owned());
    let mut command = Command::new(schemathesis);
    command
        .args([
            "--no-color",
            "run",
            &format!("http://{}/openapi.json", target.address),
        ])
        .args(["--header", &format!("Authorization: Bearer {}", target.token)])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            &examples,
        ])
        .args(["--request-timeout", "30", "--continue-on-failure", "--no-shrink"])
        .arg("--generation-deterministic")
        .args(["--exclude-checks", &NOT_CHECKED.map(|(check, _)| check).join(",")])
        .args([
            "--exclude-path-regex",
            &format!("^({})$", LEFT_OUT.map(|(path, _)| path).join("|")),
        ])
        .args(["--warnings", "off"])
        .current_dir(target.world.path())
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", hooks)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TIDELOCK_TEST_ADDRESS", target.address.to_string())
        .env("TIDELOCK_TEST_TOKEN", &target.token)
        .env("TIDELOCK_TEST_PROJECT", project)
        .env("TIDELOCK_TEST_BACKUPS", backups)
        .env("TIDELOCK_TEST_FILE", file);
    let mut running = Beside::start(&target.world, command);
    let mut status = None;
    wait_for_within("schemathesis to end", LIMIT, || {
        status = running.try_wait();
        status.is_some()
    });
    let (stdout, stderr) = (
        String::from_utf8_lossy(&running.stdout()).into_owned(),
        String::from_utf8_lossy(&running.stderr()).into_owned(),
    );
    assert!(status.unwrap().success(), "{stdout}\n{stderr}");
    // It has really asked: everything but what is left out, and thousands of times.
    let count = |before: &str, after: &str| -> u64 {
        let line = stdout
            .lines()
            .find(|line| line.contains(after))
            .unwrap_or_default();
        let (_, number) = line.split_once(before).unwrap_or_default();
        let number: String = number.trim().chars().take_while(char::is_ascii_digit).collect();
        number.parse().unwrap_or_default()
    };
    assert!(count("Tested:", "Tested:") > 100, "{stdout}");
    assert!(count("  ", "generated") > 3_000, "{stdout}");
    target.answers_others();
    let log = fs::read_to_string(target.world.home().state.join("daemon.log")).unwrap();
    assert!(
        !log.contains("panicked"),
        "a handler panicked; see the log of the daemon"
    );
}
