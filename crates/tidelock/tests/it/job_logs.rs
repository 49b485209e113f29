//! What a job says, while it says it and later, to one reader or several.

use std::fs;

use jiff::civil::DateTime;
use serde_json::{Value, json};

use crate::harness::{World, wait_for};
use crate::job_stage::{Beside, ended, finish_bytes, job_command, shown, submit, wait_for_state};

fn json_lines(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn two_readers_and_a_late_one_are_told_the_same_while_it_runs() {
    let world = World::new();
    let script = "i=0; while test $i -lt 2000; do i=$((i+1)); echo line $i; test $i -ne 1000 || \
                  until test -e go; do sleep 0.01; done; done; printf 'the end' >&2";
    let id = submit(&world, &[], &["sh", "-c", script]);
    let follow = || Beside::start(&world, job_command(&world, &["logs", "-f", &id]));
    let mut readers = vec![follow(), follow()];
    for reader in &readers {
        reader.wait_for_stdout("line 1000\n");
    }
    readers.push(follow());
    readers[2].wait_for_stdout("line 1000\n");
    assert_eq!(
        shown(&world, &id)["state"],
        "running",
        "they were told while it ran"
    );
    fs::write(world.path().join("go"), "").unwrap();
    let all: String = (1..=2000).map(|number| format!("line {number}\n")).collect();
    for reader in &mut readers {
        assert_eq!(reader.wait_code(), 0);
        assert_eq!(reader.said(), (all.clone(), "the end".to_owned()));
    }
    let later = world.run(&["job", "logs", &id]).expect(0);
    assert_eq!((later.stdout, later.stderr), (all, "the end".to_owned()));
}

#[test]
fn readers_go_on_after_a_cut_and_hear_nothing_twice() {
    let world = World::new();
    // It goes on counting where the attempt before it was stopped.
    let script = "until test -e end; do echo >> count; echo $(wc -l < count); sleep 0.002; done";
    let id = submit(&world, &["--repeat"], &["sh", "-c", script]);
    let arguments = ["logs", "-f", &id, "--json"];
    let mut readers = [(); 2].map(|()| Beside::start(&world, job_command(&world, &arguments)));
    let told = |reader: &Beside| reader.stdout().len();
    for round in 0..3 {
        let before: Vec<usize> = readers.iter().map(told).collect();
        wait_for("more to be told", || {
            readers
                .iter()
                .zip(&before)
                .all(|(reader, before)| told(reader) > before + 2000)
        });
        match round {
            0 | 2 => world.kill(),
            _ => drop(world.run(&["down", "--timeout", "50s"]).expect(0)),
        }
        world.run(&["up"]).expect(0);
        wait_for_state(&world, &id, "running");
    }
    fs::write(world.path().join("end"), "").unwrap();
    assert_eq!(ended(&world, &id)["state"], "succeeded");
    let kept = json_lines(&finish_bytes(&world, job_command(&world, &["logs", &id, "--json"])).stdout);
    for reader in &mut readers {
        assert_eq!(reader.wait_code(), 0);
        let mut lines = json_lines(&reader.stdout());
        let end = lines.pop().unwrap();
        assert_eq!(end["end"]["state"], "succeeded", "{end}");
        // All that is kept was told, once, in its order; and what was told is kept.
        assert_eq!(lines, kept);
    }
    let numbers: Vec<u64> = kept
        .iter()
        .map(|line| line["output"]["sequence"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.is_sorted_by(|earlier, later| earlier < later),
        "{numbers:?}"
    );
    assert_eq!(shown(&world, &id)["interruptions"], 3);
}

#[test]
fn a_reader_chooses_what_it_wants_to_hear() {
    let world = World::new();
    let script =
        r#"printf '\033[31mred\033[0m\n'; sleep 0.3; echo '::progress 1/2 half'; echo two; echo three >&2"#;
    let id = submit(&world, &[], &["sh", "-c", script]);
    ended(&world, &id);
    let logs = |options: &[&str]| {
        let outcome = world
            .run(&[&["job", "logs", id.as_str()], options].concat())
            .expect(0);
        (outcome.stdout, outcome.stderr)
    };
    let pair = |stdout: &str, stderr: &str| (stdout.to_owned(), stderr.to_owned());
    // This goes to a file, so colours are left out. A line of progress is no output.
    assert_eq!(logs(&[]), pair("red\ntwo\n", "three\n"));
    assert_eq!(logs(&["-f"]), pair("red\ntwo\n", "three\n"));
    assert_eq!(logs(&["--channel", "stdout"]), pair("red\ntwo\n", ""));
    assert_eq!(logs(&["--channel", "stderr", "-f"]), pair("", "three\n"));
    let lines = json_lines(logs(&["--json"]).0.as_bytes());
    assert_eq!(
        lines[0]["output"]["text"], "\u{1b}[31mred\u{1b}[0m\n",
        "{lines:?}"
    );
    let first = lines[0]["output"]["sequence"].as_u64().unwrap().to_string();
    assert_eq!(logs(&["--after", &first]), pair("two\n", "three\n"));
    let stamped = logs(&["--timestamps"]).0;
    for (line, text) in stamped.lines().zip(["red", "two"]) {
        let (time, rest) = line.split_once("  ").unwrap();
        DateTime::strptime("%F %T%.f", time).expect(line);
        assert_eq!(time.len(), "2026-01-31 09:30:00.000".len(), "{line}");
        assert_eq!(rest, text);
    }
    assert_eq!(
        shown(&world, &id)["progress"],
        json!({ "done": 1, "total": 2, "text": "half" })
    );
    let raw = finish_bytes(&world, job_command(&world, &["run", "--wait", "--shell", script]));
    assert_eq!(
        raw.stdout, b"\x1b[31mred\x1b[0m\ntwo\n",
        "what one runs oneself is as it came"
    );
}

#[test]
fn output_beyond_its_limit_is_cut_in_the_middle_and_that_is_said() {
    let world = World::new();
    let script = "echo first; yes 0123456789012345678901234567890123456789 | head -c 3000000; echo last";
    let id = submit(&world, &["--output-limit", "1M"], &["sh", "-c", script]);
    let job = ended(&world, &id);
    assert_eq!(job["state"], "succeeded", "{job}");
    let (all, cut) = (
        job["output_bytes"].as_u64().unwrap(),
        job["cut_bytes"].as_u64().unwrap(),
    );
    assert_eq!(all, 3_000_000 + 11, "{job}");
    let logs = world.run(&["job", "logs", &id]).expect(0);
    assert_eq!(logs.stdout.len() as u64, all - cut, "{job}");
    // The beginning, as much as was asked for, and the last 64 KiB.
    assert!(
        logs.stdout.len() <= (1 << 20) + (64 << 10),
        "{}",
        logs.stdout.len()
    );
    assert!(
        logs.stdout.starts_with("first\n") && logs.stdout.ends_with("last\n"),
        "{}",
        logs.stdout.len()
    );
    assert!(logs.stderr.starts_with("note: "), "{}", logs.stderr);
    let text = world.run(&["job", "show", &id]).expect(0).stdout;
    assert!(text.contains("were not kept"), "{text}");
}

#[test]
fn a_program_follows_run_and_wait_as_objects() {
    let world = World::new();
    let script = r"echo '::progress 3/4 nearly'; printf '\377'; exit 3";
    let outcome = finish_bytes(
        &world,
        job_command(&world, &["run", "--wait", "--json", "--shell", script]),
    );
    assert_eq!(
        (outcome.code, outcome.stderr.as_slice()),
        (Some(3), &b""[..]),
        "{outcome:?}"
    );
    let lines = json_lines(&outcome.stdout);
    // Progress is told at leisure, so that it may come behind what was written after it.
    let mut kinds: Vec<&String> = lines
        .iter()
        .flat_map(|line| line.as_object().unwrap().keys())
        .collect();
    kinds[1..3].sort();
    assert_eq!(kinds, ["submitted", "output", "progress", "end"], "{lines:?}");
    let said = |kind: &str| lines.iter().find_map(|line| line.get(kind)).unwrap();
    assert_eq!(
        said("progress"),
        &json!({ "done": 3, "total": 4, "text": "nearly" })
    );
    assert_eq!(said("output")["base64"], "/w==");
    assert_eq!(lines[3]["end"]["exit"], json!({ "code": 3 }));
}
