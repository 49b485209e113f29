//! What `tidelock job` takes, and what it refuses before it asks anybody.

use std::fs;

use crate::harness::World;

#[test]
fn what_is_wrong_with_the_arguments_is_said_and_no_daemon_is_started_for_it() {
    let world = World::new();
    fs::write(world.path().join("file"), "").unwrap();
    fs::write(world.path().join("large"), vec![b'x'; 512 * 1024 + 1]).unwrap();
    let cases: [(&[&str], i32, &str, &str); 28] = [
        (&["run"], 2, "usage", "required arguments were not provided"),
        (&["run", "--"], 2, "usage", "required arguments were not provided"),
        (
            &["run", "--shell", "true", "--", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
        (&["run", "--shell", ""], 2, "usage", "a value is required"),
        (
            &["run", "--nonsense", "--", "true"],
            2,
            "usage",
            "unexpected argument",
        ),
        (
            &["run", "--timeout", "soon", "--", "true"],
            2,
            "usage",
            "`soon` is not a duration",
        ),
        (
            &["run", "--timeout", "0s", "--", "true"],
            2,
            "usage",
            "it must be more than nothing",
        ),
        (
            &["run", "--retries", "-1", "--", "true"],
            2,
            "usage",
            "unexpected argument",
        ),
        (
            &["run", "--priority", "11", "--", "true"],
            2,
            "usage",
            "11 is not in -10..=10",
        ),
        (
            &["run", "--priority", "-11", "--", "true"],
            2,
            "usage",
            "-11 is not in -10..=10",
        ),
        (
            &["run", "--lane", "a:0", "--", "true"],
            2,
            "usage",
            "the limit of a lane lies between",
        ),
        (
            &["run", "--lane", ":2", "--", "true"],
            2,
            "usage",
            "the name of the lane is missing",
        ),
        (
            &["run", "--env", "=x", "--", "true"],
            2,
            "usage",
            "the name of the variable is missing",
        ),
        (
            &["run", "--env", "NOT_SET_ANYWHERE", "--", "true"],
            2,
            "usage",
            "--env NOT_SET_ANYWHERE: there is no such variable here",
        ),
        (
            &["run", "--limit", "threads=2", "--", "true"],
            2,
            "usage",
            "there is no limit `threads`",
        ),
        (
            &["run", "--output-limit", "much", "--", "true"],
            2,
            "usage",
            "`much` is not a size",
        ),
        (
            &["run", "--in", "nowhere", "--", "true"],
            4,
            "path_unusable",
            "`nowhere` does not exist",
        ),
        (
            &["run", "--in", "file", "--", "true"],
            4,
            "path_unusable",
            "`file` is not a directory",
        ),
        (
            &["run", "--write-below", "nowhere", "--", "true"],
            4,
            "path_unusable",
            "`nowhere` does not exist",
        ),
        (
            &["run", "--stdin", "nowhere", "--", "cat"],
            4,
            "path_unusable",
            "`nowhere` cannot be read",
        ),
        (
            &["run", "--stdin", "large", "--", "cat"],
            4,
            "path_unusable",
            "`large` is larger than 524288 bytes",
        ),
        (
            &["list", "--state", "asleep"],
            2,
            "usage",
            "invalid value 'asleep'",
        ),
        (&["list", "--limit", "0"], 2, "usage", "invalid value '0'"),
        (
            &["list", "--limit", "3", "--all"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["logs", "last", "--channel", "stdin"],
            2,
            "usage",
            "invalid value 'stdin'",
        ),
        (&["show"], 2, "usage", "required arguments were not provided"),
        (&["gc", "--older-than", "1"], 2, "usage", "`1` is not a duration"),
        (&["workers", "257"], 2, "usage", "257 is not in 0..=256"),
    ];
    for (arguments, exit, code, expected) in cases {
        let with =
            |before: &[&'static str]| -> Vec<&str> { before.iter().chain(arguments).copied().collect() };
        let outcome = world.run(&with(&["job"])).expect(exit);
        assert!(outcome.stderr.contains(expected), "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{arguments:?}");
        let error = world.run(&with(&["--json", "job"])).expect(exit).json();
        assert_eq!(error["error"]["code"], code, "{arguments:?}: {error}");
    }
    assert!(!world.path().join("home").exists(), "a daemon was started");
}

#[test]
fn a_job_that_was_never_submitted_is_not_there() {
    let world = World::new();
    let unknown = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
    for verb in ["show", "logs", "wait", "cancel", "retry"] {
        for (wanted, message) in [
            ("last", "there are no jobs yet".to_owned()),
            (
                "9S1TX",
                "no job has an id that begins or ends with `9S1TX`".to_owned(),
            ),
            (unknown, format!("There is no job {unknown}.")),
        ] {
            let outcome = world.run(&["job", verb, wanted]).expect(4);
            assert_eq!(outcome.stdout, "");
            assert!(
                outcome.stderr.starts_with(&format!("error: {message}\nhint: ")),
                "{verb} {wanted}: {outcome:?}"
            );
            let error = world.run(&["job", verb, wanted, "--json"]).expect(4).json();
            assert_eq!(
                error["error"]["code"], "job_not_found",
                "{verb} {wanted}: {error}"
            );
        }
    }
}
