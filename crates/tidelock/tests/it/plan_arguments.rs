//! What `tidelock plan`, `exec` and `workspace` take, and what they refuse before they ask anybody.

use std::fs;

use crate::harness::World;

#[test]
fn what_is_wrong_with_the_arguments_is_said_and_no_daemon_is_started_for_it() {
    let world = World::new();
    fs::write(world.path().join("file"), "").unwrap();
    let cases: [(&[&str], i32, &str, &str); 29] = [
        (&["exec"], 2, "usage", "required arguments were not provided"),
        (
            &["exec", "--"],
            2,
            "usage",
            "required arguments were not provided",
        ),
        (
            &["exec", "--nonsense", "--", "true"],
            2,
            "usage",
            "unexpected argument",
        ),
        (
            &["exec", "--strategy", "magic", "--", "true"],
            2,
            "usage",
            "invalid value 'magic'",
        ),
        (
            &["exec", "--apply", "--no-seal", "--", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["exec", "--no-input", "--stdin", "f", "--", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["exec", "--commit", "--no-seal", "--", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["exec", "-m", "message", "--", "true"],
            2,
            "usage",
            "required arguments were not provided",
        ),
        (
            &["exec", "--plan", "@", "--title", "t", "--", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["exec", "--plan", "@", "--check", "c", "--", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["exec", "--timeout", "0s", "--", "true"],
            2,
            "usage",
            "it must be more than nothing",
        ),
        (
            &["exec", "--write", "missing", "--", "true"],
            4,
            "path_unusable",
            "`missing` does not exist",
        ),
        (
            &["exec", "--stdin", "missing", "--", "true"],
            4,
            "path_unusable",
            "`missing` cannot be read",
        ),
        (
            &["exec", "--env", "NOBODY_HAS_THIS", "--", "true"],
            2,
            "usage",
            "there is no such variable here",
        ),
        (&["plan"], 2, "usage", "a command is missing"),
        (
            &["plan", "new", "missing"],
            4,
            "path_unusable",
            "`missing` does not exist",
        ),
        (
            &["plan", "new", "file"],
            4,
            "path_unusable",
            "`file` is not a directory",
        ),
        (
            &["plan", "new", "--parent", "@", "."],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["plan", "new", "--max-parallel", "0"],
            2,
            "usage",
            "0 is not in 1..=65535",
        ),
        (&["plan", "show", "abc"], 2, "usage", "`abc` is too short"),
        (&["plan", "show", ""], 2, "usage", "a value is required"),
        (
            &["plan", "diff", "@", "--stat", "--patch"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["plan", "apply"],
            2,
            "usage",
            "required arguments were not provided",
        ),
        (&["plan", "apply", "abc"], 2, "usage", "`abc` is too short"),
        (
            &["plan", "record", "@"],
            2,
            "usage",
            "required arguments were not provided",
        ),
        (
            &["plan", "record", "@", "--delete", "a", "--from", "b"],
            2,
            "usage",
            "--from belongs to --write",
        ),
        (
            &["plan", "record", "@", "--write", "a", "--from", "missing"],
            4,
            "path_unusable",
            "cannot be read",
        ),
        (
            &["plan", "list", "--all", "--state", "open"],
            2,
            "usage",
            "cannot be used with",
        ),
        (
            &["workspace", "checks", ".", "--none", "true"],
            2,
            "usage",
            "cannot be used with",
        ),
    ];
    for (arguments, code, expected_code, part) in cases {
        let mut line = vec!["--json"];
        line.extend(arguments);
        let outcome = world.run(&line).expect(code);
        let error = &outcome.json()["error"];
        assert_eq!(error["code"], expected_code, "{arguments:?}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
    assert!(world.owner().is_none(), "a daemon was started for nothing");
}
