//! Tools that read and write files, on a real plan.

use protocol::ToolState;
use protocol::ToolState::{Done, Failed};
use serde_json::{Value, json};
use sessions::TurnEvent;

use super::tools_kit::Bench;

async fn check(bench: &Bench, cases: Vec<(&str, Value, ToolState, &str)>) {
    for (tool, arguments, state, text) in cases {
        let found = bench.ask(tool, arguments.clone()).await;
        assert_eq!(found, (state, text.to_owned()), "{tool} {arguments}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_read_and_the_workspace_stays() {
    let bench = Bench::with(&[("a/one.txt", "1\n2\n3\n"), ("a/two.txt", "")], &[]).await;
    let root = bench.kit.workspace.display().to_string();
    let absolute = format!("{root}/a/one.txt");
    let cases = vec![
        ("read", json!({"path": "a/one.txt"}), Done, "1\n2\n3\n"),
        ("read", json!({"path": absolute}), Done, "1\n2\n3\n"),
        (
            "read",
            json!({"path": "./a//one.txt", "from": 2, "lines": 1}),
            Done,
            "2\n[lines 2 to 2 of 3; go on with \"from\": 3]",
        ),
        ("read", json!({"path": "a/one.txt", "from": 3}), Done, "3\n"),
        (
            "read",
            json!({"path": "a/one.txt", "from": 4}),
            Failed,
            "`a/one.txt` has 3 lines, so there is no line 4.",
        ),
        ("read", json!({"path": "a/two.txt"}), Done, "[the file is empty]"),
        ("read", json!({"path": "a"}), Done, "one.txt\ntwo.txt\n"),
        ("read", json!({"path": "."}), Done, "README.md\na/\nsrc/\n"),
        (
            "read",
            json!({"path": "a/ones.txt"}),
            Failed,
            "there is nothing at `a/ones.txt`. Did you mean `a/one.txt`? List the directory to see what is there.",
        ),
        (
            "read",
            json!({"path": "zzz"}),
            Failed,
            "there is nothing at `zzz`. List the directory to see what is there.",
        ),
        (
            "read",
            json!({"path": "../x"}),
            Failed,
            "`../x` cannot be used: it has `.` or `..` in it. Name it from the root of the workspace, for example `src/main.rs`.",
        ),
        (
            "read",
            json!({"path": "/etc/passwd"}),
            Failed,
            "`/etc/passwd` lies outside of the workspace. Name files from its root, for example `src/main.rs`.",
        ),
        (
            "write",
            json!({"path": "b/c/new.txt", "text": "x\ny\n"}),
            Done,
            "Wrote 2 lines, 4 bytes, to `b/c/new.txt`.",
        ),
        (
            "write",
            json!({"path": "b/c/new.txt", "text": "x\ny\n"}),
            Done,
            "`b/c/new.txt` held exactly this already; nothing was changed.",
        ),
        (
            "edit",
            json!({"path": "b/c/new.txt", "find": "y", "replace": "z"}),
            Done,
            "Edited `b/c/new.txt` at line 2.",
        ),
        ("read", json!({"path": "b/c/new.txt"}), Done, "x\nz\n"),
        (
            "edit",
            json!({"path": "a/one.txt", "find": "\n", "replace": ""}),
            Failed,
            "`a/one.txt` was not changed: `find` occurs 3 times in it, at lines 1, 2, 3. Give more of what is around the one that you mean.",
        ),
        (
            "edit",
            json!({"path": "none", "find": "a", "replace": "b"}),
            Failed,
            "there is nothing at `none`. List the directory to see what is there.",
        ),
        (
            "edit",
            json!({"path": "a/one.txt", "find": "", "replace": "b"}),
            Failed,
            "`find` is empty. Give the text to replace, or use `write` for a whole file.",
        ),
        (
            "move",
            json!({"from": "b/c/new.txt", "to": "d/new.txt"}),
            Done,
            "Moved `b/c/new.txt` to `d/new.txt`.",
        ),
        (
            "move",
            json!({"from": "a/one.txt", "to": "d/new.txt"}),
            Failed,
            "`d/new.txt` was not changed: there is something already.",
        ),
        (
            "move",
            json!({"from": "zzz", "to": "y"}),
            Failed,
            "there is nothing at `zzz`. List the directory to see what is there.",
        ),
        (
            "read",
            json!({"path": "b/c/new.txt"}),
            Failed,
            "there is nothing at `b/c/new.txt`. List the directory to see what is there.",
        ),
        (
            "delete",
            json!({"path": "a"}),
            Done,
            "Deleted `a` and 2 files and directories in it.",
        ),
        (
            "delete",
            json!({"path": "a"}),
            Failed,
            "there is nothing at `a`. List the directory to see what is there.",
        ),
        (
            "delete",
            json!({"path": "."}),
            Failed,
            "this is the root of the workspace. Name a path below it, for example `src/main.rs`.",
        ),
        ("list", json!({}), Done, "README.md\nb/\nd/\nsrc/\n"),
        ("list", json!({"path": "d"}), Done, "new.txt\n"),
        ("list", json!({"glob": "*.txt"}), Done, "d/new.txt\n"),
        (
            "list",
            json!({"glob": "*.nothing"}),
            Done,
            "[no file in `.` matches]",
        ),
        (
            "nothing",
            json!({}),
            Failed,
            "there is no tool `nothing`. The tools are: read, list, search, context, edit, write, move, delete, shell, language, plan_diff.",
        ),
        (
            "read",
            json!({"pth": "a"}),
            Failed,
            "nothing was done: there is no `pth`, did you mean `path`?; `path` is missing. `read` takes `path` (a string), `from` (a whole number from 1 to 1000000, optional), `lines` (a whole number from 1 to 1000000, optional).",
        ),
    ];
    check(&bench, cases).await;
    let diff = bench.call("plan_diff", json!({})).await;
    assert_eq!(diff.full, None);
    for line in ["deleted file mode 100644", "+++ b/d/new.txt", "+x", "+z", "-1"] {
        assert!(
            diff.text.lines().any(|found| found == line),
            "{line} in {}",
            diff.text
        );
    }
    let only = bench.call("plan_diff", json!({"path": "d"})).await.text;
    assert!(
        only.contains("b/d/new.txt") && !only.contains("one.txt"),
        "{only}"
    );
    // Nothing of it has reached the workspace.
    let kept = std::fs::read_to_string(bench.kit.workspace.join("a/one.txt")).unwrap();
    assert_eq!(kept, "1\n2\n3\n");
    assert!(!bench.kit.workspace.join("d").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_is_told_everything_about_a_call() {
    let bench = Bench::with(&[], &[]).await;
    bench
        .call("write", json!({"path": "./x", "text": "1", "executable": null}))
        .await;
    bench.call("write", json!({"path": "x"})).await;
    let mut told = Vec::new();
    for event in bench.events().await {
        told.push(match event {
            TurnEvent::ToolCall { item, tool, .. } => format!("{item} call {tool}"),
            TurnEvent::ToolStarted {
                item,
                title,
                arguments,
            } => format!("{item} started {title} {arguments}"),
            TurnEvent::PlanChanged { files, paths, .. } => format!("plan {files} {paths:?}"),
            TurnEvent::ToolEnded {
                item,
                state,
                answer,
                full,
            } => {
                let begin = answer.split(". `").next().unwrap().to_owned();
                format!("{item} ended {state:?} {begin} {full:?}")
            }
            _ => continue,
        });
    }
    assert_eq!(
        told,
        [
            "0 call write",
            "0 started write x {\"path\":\"./x\",\"text\":\"1\"}",
            "plan 1 [\"x\"]",
            "0 ended Done Wrote 1 lines, 1 bytes, to `x`. None",
            "1 call write",
            "1 ended Failed nothing was done: `text` is missing None",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_are_cut_and_say_how_to_go_on() {
    let numbered: String = (1..=5000)
        .map(|number| format!("line {number} of many\n"))
        .collect();
    let long_line = "y".repeat(100_000);
    let bench = Bench::with(
        &[
            ("numbers.txt", &numbered),
            ("long.txt", &format!("{long_line}\nend\n")),
            ("data.bin", "a\0b"),
        ],
        &[],
    )
    .await;
    // Going on as the answers say comes to the whole file.
    let (mut whole, mut from, mut rounds) = (String::new(), 1, 0);
    loop {
        let answer = bench
            .call("read", json!({"path": "numbers.txt", "from": from}))
            .await;
        assert!(answer.text.len() <= 32 * 1024);
        rounds += 1;
        match answer.text.rsplit_once("[lines ") {
            None => {
                assert_eq!(answer.full, None);
                whole.push_str(&answer.text);
                break;
            }
            Some((part, note)) => {
                assert_eq!(answer.full.as_deref(), Some("numbers.txt"));
                whole.push_str(part);
                let next = note.rsplit_once("\"from\": ").unwrap().1;
                from = next.trim_end_matches(']').parse().unwrap();
            }
        }
    }
    assert!(whole == numbered, "{} and {} bytes", whole.len(), numbered.len());
    assert_eq!(rounds, 3);
    let long = bench.call("read", json!({"path": "long.txt"})).await;
    assert!(
        long.text
            .ends_with("\n[line 1 is cut: it has 100001 bytes]\n[lines 1 to 1 of 2; go on with \"from\": 2]"),
        "{}",
        &long.text[long.text.len() - 200..]
    );
    let binary = bench.ask("read", json!({"path": "data.bin"})).await;
    assert_eq!(
        binary,
        (
            Failed,
            "`data.bin` is not text; it has 3 bytes. Inspect it with a command that understands it."
                .to_owned()
        )
    );
    // A diff that does not fit says what else there is.
    bench
        .call("write", json!({"path": "numbers.txt", "text": "short"}))
        .await;
    bench.call("delete", json!({"path": "long.txt"})).await;
    let diff = bench.call("plan_diff", json!({})).await;
    assert!(diff.text.len() <= 32 * 1024 && diff.full.is_some());
    assert!(
        diff.text
            .ends_with("What is changed:]\ndeleted long.txt\nchanged numbers.txt\n"),
        "{}",
        diff.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn symlinks_lead_nowhere() {
    let bench = Bench::with(&[("a.txt", "a\n")], &[]).await;
    let outside = bench.kit.workspace.parent().unwrap().join("secret");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("key"), "KEY").unwrap();
    std::os::unix::fs::symlink(&outside, bench.kit.workspace.join("out")).unwrap();
    std::os::unix::fs::symlink(outside.join("key"), bench.kit.workspace.join("key")).unwrap();
    for (tool, arguments) in [
        ("read", json!({"path": "out/key"})),
        ("read", json!({"path": "key"})),
        ("read", json!({"path": "out"})),
        ("list", json!({"path": "out"})),
        ("search", json!({"pattern": "KEY"})),
        ("search", json!({"pattern": "KEY", "path": "out"})),
        ("edit", json!({"path": "key", "find": "KEY", "replace": "x"})),
        ("write", json!({"path": "out/key", "text": "x"})),
        ("delete", json!({"path": "out/key"})),
    ] {
        let (state, text) = bench.ask(tool, arguments.clone()).await;
        assert!(!text.contains("KEY"), "{tool} {arguments}: {text}");
        assert!(
            state == Failed || tool == "read" || tool == "search",
            "{tool} {arguments}: {text}"
        );
    }
    assert_eq!(std::fs::read_to_string(outside.join("key")).unwrap(), "KEY");
}
