//! Commands under a real keeper.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use eventlog::{BlobId, LogError};
use jobs::{AttemptVerdict, OutputError};
use process::{Enforcement, landlock_support};
use protocol::JobTerminal;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::bench::{Bench, Heard, code, outcome, until};
use super::payload::{CommandLine, CommandPayload};

#[tokio::test]
async fn a_command_is_run_as_it_was_asked_for() {
    let bench = Bench::new().await;
    let named = |variables: &[(&str, &str)], payload: CommandPayload| CommandPayload {
        environment: Some(BTreeMap::from_iter(
            variables
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned())),
        )),
        ..payload
    };
    let words = ["printf", "%s|", "a b", "", "$HOME"].map(str::to_owned).to_vec();
    let own = bench.directory.path().to_str().unwrap().to_owned();
    let mut few_files = bench.shell("ulimit -n");
    few_files.limits.open_files = Some(55);
    let on_terminal = CommandPayload {
        terminal: Some(JobTerminal {
            columns: 91,
            rows: 17,
        }),
        ..bench.shell("test -t 1 && test -t 2 && echo $TERM; stty size <&1; test -t 0 || echo no input >&2")
    };
    fs::write(bench.path("script"), "#!/bin/sh\necho here\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(bench.path("script"), mode).unwrap();
    let cases = [
        (
            bench.shell("echo a; echo b >&2"),
            ["a\n", "b\n"],
            AttemptVerdict::Succeeded,
            "",
            code(0),
        ),
        (
            bench.shell("exit 3"),
            ["", ""],
            AttemptVerdict::Failed,
            "exit code 3",
            code(3),
        ),
        (
            bench.shell("kill -SEGV $$"),
            ["", ""],
            AttemptVerdict::Failed,
            "signal 11 (SIGSEGV)",
            json!({"exit": {"signal": 11}}),
        ),
        (
            bench.command(CommandLine::Argv(words)),
            ["a b||$HOME|", ""],
            AttemptVerdict::Succeeded,
            "",
            code(0),
        ),
        (
            bench.command(CommandLine::Argv(vec!["./script".to_owned()])),
            ["here\n", ""],
            AttemptVerdict::Succeeded,
            "",
            code(0),
        ),
        (
            bench.command(CommandLine::Argv(
                ["printenv", "PWD", "WHOSE"].map(str::to_owned).to_vec(),
            )),
            [&format!("{own}\nthe daemon's\n"), ""],
            AttemptVerdict::Succeeded,
            "",
            code(0),
        ),
        (
            named(
                &[("PATH", "/usr/bin:/bin"), ("A", "b")],
                bench.shell("echo $A $WHOSE"),
            ),
            ["b\n", ""],
            AttemptVerdict::Succeeded,
            "",
            code(0),
        ),
        (few_files, ["55\n", ""], AttemptVerdict::Succeeded, "", code(0)),
        (
            on_terminal,
            ["xterm-256color\n17 91\nno input\n", ""],
            AttemptVerdict::Succeeded,
            "",
            code(0),
        ),
    ];
    for (payload, said, verdict, text, result) in cases {
        let heard = Heard::default();
        let seen = bench.run(&payload, None, &heard).await;
        assert_eq!(
            (seen, heard.texts()),
            (outcome(verdict, text, result), said.map(str::to_owned))
        );
    }
}

#[tokio::test]
async fn what_cannot_be_run_is_hopeless() {
    let bench = Bench::new().await;
    let missing = bench.command(CommandLine::Argv(vec!["no-such-program".to_owned()]));
    let nowhere = CommandPayload {
        directory: "/proc/nothing".to_owned(),
        ..bench.shell("true")
    };
    let unreadable = BlobId::from_bytes([7; 32]);
    let no_input = format!("its standard input could not be read: there is no blob {unreadable}");
    for (payload, stdin, text) in [
        (
            missing.encode().unwrap(),
            None,
            "`no-such-program` cannot be executed: No such file or directory (os error 2)",
        ),
        (
            nowhere.encode().unwrap(),
            None,
            "nothing can be started in `/proc/nothing`: No such file or directory (os error 2)",
        ),
        (bench.shell("true").encode().unwrap(), Some(unreadable), &no_input),
        (
            b"{}".to_vec(),
            None,
            "the command cannot be read: missing field `line` at line 1 column 2",
        ),
    ] {
        let heard = Heard::default();
        let seen = bench.run_bytes(payload, stdin, &heard).await;
        assert_eq!(
            seen,
            outcome(AttemptVerdict::FailedPermanently, text, Value::Null)
        );
    }
}

#[tokio::test]
async fn input_is_whole_and_nobody_has_to_read_it() {
    let bench = Bench::new().await;
    let content: Vec<u8> = (0..700_000)
        .flat_map(|number: u32| number.to_le_bytes())
        .collect();
    let blob = bench.blob(&content).await;
    for (line, stdin, expected) in [
        ("cat", Some(blob), content.as_slice()),
        ("cat; echo end", None, b"end\n"),
        ("echo no", Some(blob), b"no\n"),
        ("exec <&-; echo closed", Some(blob), b"closed\n"),
        ("head -c 4", Some(blob), &content[..4]),
    ] {
        let heard = Heard::default();
        let seen = bench.run(&bench.shell(line), stdin, &heard).await;
        assert_eq!(seen, outcome(AttemptVerdict::Succeeded, "", code(0)), "{line}");
        assert!(heard.said.lock().unwrap()[0] == expected, "{line}");
    }
}

#[tokio::test]
async fn a_confined_command_says_how_far_it_is() {
    let bench = Bench::new().await;
    fs::create_dir(bench.path("in")).unwrap();
    let payload = CommandPayload {
        write_below: Some(vec![bench.path("in").to_str().unwrap().to_owned()]),
        ..bench
            .shell("echo x > in/file; (echo x > outside) 2>/dev/null; test -e outside && echo free; exit 0")
    };
    let heard = Heard::default();
    let seen = bench.run(&payload, None, &heard).await;
    match landlock_support() {
        Enforcement::None => {
            assert_eq!(
                (seen.verdict, seen.result),
                (AttemptVerdict::FailedPermanently, Value::Null)
            );
            assert!(!bench.path("in/file").exists(), "it ran");
        }
        support => {
            let result = json!({"exit": {"code": 0}, "confinement": support});
            assert_eq!(seen, outcome(AttemptVerdict::Succeeded, "", result));
            assert_eq!(heard.texts(), ["", ""]);
            assert!(bench.path("in/file").exists());
        }
    }
    // A missing directory would mean a confinement that the caller didn't ask for.
    let payload = CommandPayload {
        write_below: Some(vec![bench.path("missing").to_str().unwrap().to_owned()]),
        ..bench.shell("true")
    };
    assert_eq!(
        bench.run(&payload, None, &heard).await.verdict,
        AttemptVerdict::FailedPermanently
    );
}

#[tokio::test]
async fn a_cancelled_command_is_stopped_with_its_tree_and_heard_to_the_end() {
    let bench = Bench::new().await;
    let line = "trap 'echo bye; exit 4' TERM; (trap '' TERM; echo go > ready; exec sleep 1000) & while :; do sleep 0.05; done";
    let heard = Heard::default();
    let payload = bench.shell(line);
    let (seen, ()) = tokio::join!(bench.run(&payload, None, &heard), async {
        // The command may get that far before the daemon learns that it started.
        let is_started = || bench.processes.list()[0].state == protocol::ProcessState::Running;
        until("it runs", || bench.path("ready").exists() && is_started()).await;
        bench.cancel();
    });
    let killed = &seen.result["killed"];
    assert_eq!(killed.as_array().map(Vec::len), Some(1), "{seen:?}");
    let result = json!({"exit": {"code": 4}, "killed_count": 1, "killed": killed});
    let text = "stopped: exit code 4; 1 process had to be killed";
    assert_eq!(seen, outcome(AttemptVerdict::Stopped, text, result));
    let pid = killed[0]["pid"].as_u64().unwrap();
    assert!(!PathBuf::from(format!("/proc/{pid}")).exists());
    assert_eq!(heard.texts()[0], "bye\n");

    // A command that is cancelled before it starts doesn't start.
    let seen = bench.run(&bench.shell("echo > ran"), None, &heard).await;
    let text = "stopped before it ran: a test: it is time";
    assert_eq!(seen, outcome(AttemptVerdict::Stopped, text, Value::Null));
    assert!(!bench.path("ran").exists());
}

#[tokio::test]
async fn a_wish_to_stop_that_comes_after_the_end_changes_nothing() {
    let bench = Bench::new().await;
    let heard = Heard {
        gate: Some(Semaphore::new(0)),
        ..Heard::default()
    };
    let payload = bench.shell("until test -e go; do sleep 0.02; done; echo said; exit 5");
    let (seen, ()) = tokio::join!(bench.run(&payload, None, &heard), async {
        until("it has begun", || bench.processes.count() == 1).await;
        fs::write(bench.path("go"), "").unwrap();
        until("it has ended", || bench.processes.count() == 0).await;
        bench.cancel();
        // Let other tasks run before its last output is read.
        tokio::time::sleep(Duration::from_millis(20)).await;
        heard.gate.as_ref().unwrap().add_permits(100);
    });
    assert_eq!(seen, outcome(AttemptVerdict::Failed, "exit code 5", code(5)));
    assert_eq!(heard.texts(), ["said\n", ""]);
}

#[tokio::test]
async fn a_command_whose_output_is_refused_is_stopped() {
    let bench = Bench::new().await;
    let log_error = LogError::Closed;
    let lost = format!("its output could not be kept: {log_error}");
    for (refusal, verdict, text) in [
        (OutputError::Fenced, AttemptVerdict::Stopped, "stopped: "),
        (OutputError::Finished, AttemptVerdict::Stopped, "stopped: "),
        (OutputError::Log(log_error), AttemptVerdict::Failed, lost.as_str()),
    ] {
        let heard = Heard {
            refusal: Some(refusal),
            ..Heard::default()
        };
        // It would run forever, and its child doesn't even write.
        let seen = bench.run(&bench.shell("sleep 1000 & yes"), None, &heard).await;
        assert_eq!(seen.verdict, verdict);
        assert!(seen.text.starts_with(text), "{seen:?}");
        assert!(seen.result["exit"].is_object(), "{seen:?}");
    }
}

/// What an unrelated process does with a stream of the command.
#[derive(Clone, Copy, Debug)]
enum Stranger {
    Keeps,
    Floods,
}

#[tokio::test]
async fn a_stranger_who_has_the_stream_open_does_not_keep_the_job() {
    let terminal = JobTerminal {
        columns: 80,
        rows: 24,
    };
    for (stranger, terminal) in [
        (Stranger::Keeps, None),
        (Stranger::Keeps, Some(terminal)),
        (Stranger::Floods, None),
    ] {
        let bench = Bench::new().await;
        let payload = CommandPayload {
            terminal,
            ..bench.shell("echo $$ > pid; until test -e go; do sleep 0.02; done; echo last")
        };
        let heard = Heard::default();
        let (seen, _kept) = tokio::join!(bench.run(&payload, None, &heard), async {
            let pid = || fs::read_to_string(bench.path("pid")).unwrap_or_default();
            until("it runs", || pid().ends_with('\n')).await;
            let mut stream = fs::OpenOptions::new()
                .write(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(format!("/proc/{}/fd/1", pid().trim()))
                .unwrap();
            fs::write(bench.path("go"), "").unwrap();
            match stranger {
                Stranger::Keeps => Some(stream),
                Stranger::Floods => {
                    until("it has gone", || bench.processes.count() == 0).await;
                    stream.write_all(b"x").unwrap();
                    *heard.flood.lock().unwrap() = Some(stream);
                    None
                }
            }
        });
        assert_eq!(
            seen,
            outcome(AttemptVerdict::Succeeded, "", code(0)),
            "{stranger:?}"
        );
        let said = &heard.texts()[0];
        assert!(said.starts_with("last\n"), "{stranger:?}");
        // Output after the end counts as the command's as long as it could be.
        assert!(said.len() < 2 * 1024 * 1024, "{stranger:?}: {} bytes", said.len());
    }
}

#[tokio::test]
async fn much_output_is_whole() {
    let bench = Bench::new().await;
    let heard = Heard::default();
    let numbers: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    let payload = bench.shell("seq 200000; seq 200000 >&2");
    let seen = bench.run(&payload, None, &heard).await;
    assert_eq!(seen, outcome(AttemptVerdict::Succeeded, "", code(0)));
    assert!(heard.texts() == [numbers.clone(), numbers]);
}
