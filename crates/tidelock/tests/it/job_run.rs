//! `tidelock job run` behaves as the command itself would: its exit code, its bytes, its directory and environment, and
//! what it reads.

use std::fs::{self, File};

use serde_json::json;

use crate::harness::{World, wait_for};
use crate::job_stage::{Bytes, ended, finish_bytes, job_command, shown, submit};

#[test]
fn the_exit_code_is_that_of_the_command() {
    let world = World::new();
    let cases: [(&[&str], i32, &str, &str); 6] = [
        (&["true"], 0, "", ""),
        (
            &["sh", "-c", "echo out; echo err >&2; exit 3"],
            3,
            "out\n",
            "err\n",
        ),
        (&["sh", "-c", "exit 255"], 255, "", ""),
        (&["sh", "-c", "kill -9 $$"], 137, "", "note: signal 9 (SIGKILL)\n"),
        (
            &["sh", "-c", "kill -15 $$"],
            143,
            "",
            "note: signal 15 (SIGTERM)\n",
        ),
        (&["sh", "-c", "exit 130"], 130, "", ""),
    ];
    for (command, code, stdout, stderr) in cases {
        let arguments = [&["job", "run", "--wait", "--"], command].concat();
        let outcome = world.run(&arguments);
        let expected = (Some(code), stdout, stderr);
        let found = (outcome.code, outcome.stdout.as_str(), outcome.stderr.as_str());
        assert_eq!(found, expected, "{command:?}");
        // Whoever comes later is told the same.
        assert_eq!(
            world.run(&["job", "wait", "last"]).code,
            Some(code),
            "{command:?}"
        );
    }
    let outcome = world.run(&["job", "run", "--wait", "--shell", "exit 4 | cat; exit 5"]);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
}

#[test]
fn a_program_that_is_not_there_and_a_directory_that_has_gone_are_said_and_not_tried_again() {
    let world = World::new();
    let outcome = world.run(&["job", "run", "--wait", "--retries", "3", "--", "no-such-program"]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(1), ""),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("no-such-program"), "{outcome:?}");
    assert!(
        outcome.stderr.contains("hint: `tidelock job show job_"),
        "{outcome:?}"
    );
    assert_eq!(shown(&world, "last")["attempts"], 1);

    let directory = world.path().join("gone");
    fs::create_dir(&directory).unwrap();
    let id = submit(
        &world,
        &["--in", "gone", "--delay", "1s", "--retries", "3"],
        &["true"],
    );
    fs::remove_dir(&directory).unwrap();
    let job = ended(&world, &id);
    assert_eq!(
        (&job["state"], &job["attempts"]),
        (&json!("failed"), &json!(1)),
        "{job}"
    );
    let text = job["text"].as_str().unwrap();
    assert!(text.contains("gone") && text.contains("No such file"), "{job}");
}

#[test]
fn every_byte_comes_out_as_it_went_in() {
    let world = World::new();
    let line = r"printf '\377\000\033[1mbold\r\n no end'; printf '\376' >&2";
    let outcome = finish_bytes(&world, job_command(&world, &["run", "--wait", "--shell", line]));
    let expected = Bytes {
        code: Some(0),
        stdout: b"\xff\x00\x1b[1mbold\r\n no end".to_vec(),
        stderr: b"\xfe".to_vec(),
    };
    assert_eq!(outcome, expected);

    // Five MiB that repeat nowhere.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let large: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take(5 * 1024 * 1024 / 8)
    .flatten()
    .collect();
    fs::write(world.path().join("large"), &large).unwrap();
    for (line, channel) in [("cat large", "stdout"), ("cat large >&2", "stderr")] {
        let outcome = finish_bytes(&world, job_command(&world, &["run", "--wait", "--shell", line]));
        let (said, silent) = match channel {
            "stdout" => (outcome.stdout, outcome.stderr),
            _ => (outcome.stderr, outcome.stdout),
        };
        assert_eq!(outcome.code, Some(0), "{line}");
        assert!(said == large, "{line}: {} of {} bytes", said.len(), large.len());
        assert_eq!(silent, b"", "{line}");
        assert_eq!(shown(&world, "last")["output_bytes"], large.len(), "{line}");
    }
}

#[test]
fn a_job_runs_where_and_as_its_caller_is_not_as_the_daemon_was() {
    let world = World::new();
    // The daemon knows nothing of what follows.
    world.run(&["up"]).expect(0);
    let below = world.path().join("below");
    fs::create_dir(&below).unwrap();
    let line = r#"pwd; printf '%s|%s|%s\n' "$PWD" "$COLOUR" "${EXTRA-unset}"; test -t 0 || cat"#;
    let here = world.path().canonicalize().unwrap();
    let here = here.display();
    let cases: [(&[&str], String); 5] = [
        (&[], format!("{here}\n{here}|blue|unset\n")),
        (
            &["--in", "below"],
            format!("{here}/below\n{here}/below|blue|unset\n"),
        ),
        (&["--env", "EXTRA=a=b"], format!("{here}\n{here}|blue|a=b\n")),
        (&["--clean-env"], format!("{here}\n{here}||unset\n")),
        (
            &["--clean-env", "--env", "COLOUR"],
            format!("{here}\n{here}|blue|unset\n"),
        ),
    ];
    for (options, expected) in cases {
        let mut command = job_command(&world, &["run", "--wait"]);
        command
            .args(options)
            .args(["--shell", line])
            .env("COLOUR", "blue");
        let outcome = finish_bytes(&world, command);
        assert_eq!(
            String::from_utf8(outcome.stdout).unwrap(),
            expected,
            "{options:?}"
        );
        assert_eq!(
            (outcome.code, outcome.stderr),
            (Some(0), Vec::new()),
            "{options:?}"
        );
    }
}

#[test]
fn what_a_job_reads_comes_from_a_file_or_from_here_and_is_kept_for_a_retry() {
    let world = World::new();
    let content = b"\x00first\nsecond\xff";
    fs::write(world.path().join("input"), content).unwrap();
    for source in ["input", "-"] {
        let mut command = job_command(&world, &["run", "--wait", "--stdin", source, "--", "cat"]);
        command.stdin(File::open(world.path().join("input")).unwrap());
        let outcome = finish_bytes(&world, command);
        assert_eq!(
            (outcome.code, outcome.stdout),
            (Some(0), content.to_vec()),
            "{source}"
        );
    }
    // The file may change or go; the job has what it was given.
    fs::remove_file(world.path().join("input")).unwrap();
    let outcome = finish_bytes(&world, job_command(&world, &["retry", "last", "--wait"]));
    assert_eq!((outcome.code, outcome.stdout), (Some(0), content.to_vec()));
    // One that reads little is not held up by what it does not want.
    fs::write(world.path().join("much"), vec![b'x'; 512 * 1024]).unwrap();
    let outcome = world.run(&["job", "run", "--wait", "--stdin", "much", "--", "head", "-c", "3"]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(0), "xxx"),
        "{outcome:?}"
    );
}

#[test]
fn without_wait_the_job_is_on_disk_and_goes_on_by_itself() {
    let world = World::new();
    let outcome = world
        .run(&["job", "run", "--", "sh", "-c", "echo done > result"])
        .expect(0);
    let id = outcome.stdout.split_whitespace().next().unwrap().to_owned();
    assert_eq!(outcome.stdout, format!("{id} queued\n"));
    assert_eq!(
        outcome.stderr, "",
        "nobody is told how to watch it but on a terminal"
    );
    wait_for("the job to be done", || world.path().join("result").exists());
    let job = ended(&world, &id);
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_eq!(job["exit"], json!({ "code": 0 }));
}
