//! Searching a plan's sandbox.

use protocol::ToolState::{Done, Failed};
use serde_json::json;

use super::tools_kit::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_found_in_the_order_of_paths() {
    let large = "needle\n".repeat(1_300_000);
    let bench = Bench::with(
        &[
            (".gitignore", "target/\n*.log\n"),
            ("b.txt", "one needle\nnone\nNeedle two\n"),
            ("a/deep/c.rs", "needle(1)\r\n"),
            ("target/x.txt", "needle\n"),
            ("x.log", "needle\n"),
            ("data.bin", "needle\0"),
            ("z.txt", "a.c\nabc\n"),
            ("large/data", &large),
        ],
        &[],
    )
    .await;
    let cases = [
        (
            json!({"pattern": "needle"}),
            Done,
            "a/deep/c.rs:1:needle(1)\nb.txt:1:one needle\n[1 files of more than 8 MiB were not searched]",
        ),
        (
            json!({"pattern": "needle", "ignore_case": true, "glob": "*.txt"}),
            Done,
            "b.txt:1:one needle\nb.txt:3:Needle two\n",
        ),
        (
            json!({"pattern": "needle", "path": "a"}),
            Done,
            "a/deep/c.rs:1:needle(1)\n",
        ),
        (
            json!({"pattern": "needle", "path": "a", "glob": "deep/*.rs"}),
            Done,
            "a/deep/c.rs:1:needle(1)\n",
        ),
        (
            json!({"pattern": "needle", "path": "b.txt"}),
            Done,
            "b.txt:1:one needle\n",
        ),
        // What is ignored is looked into if it is named.
        (
            json!({"pattern": "needle", "path": "target"}),
            Done,
            "target/x.txt:1:needle\n",
        ),
        (
            json!({"pattern": "needle", "path": "x.log"}),
            Done,
            "x.log:1:needle\n",
        ),
        (
            json!({"pattern": "a.c", "path": "z.txt"}),
            Done,
            "z.txt:1:a.c\nz.txt:2:abc\n",
        ),
        (
            json!({"pattern": "a.c", "literal": true, "path": "z.txt"}),
            Done,
            "z.txt:1:a.c\n",
        ),
        (
            json!({"pattern": "zebra", "path": "a"}),
            Done,
            "[nothing in `a` matches]",
        ),
        (
            json!({"pattern": "(", "literal": true, "glob": "*.rs"}),
            Done,
            "a/deep/c.rs:1:needle(1)\nsrc/main.rs:1:fn main() {}\n",
        ),
        (
            json!({"pattern": "("}),
            Failed,
            "`pattern` cannot be used: unclosed group. For a plain text set `literal` to true.",
        ),
        (
            json!({"pattern": ""}),
            Failed,
            "`pattern` cannot be used: it is empty. For a plain text set `literal` to true.",
        ),
        (
            json!({"pattern": "x", "path": "zzz"}),
            Failed,
            "there is nothing at `zzz`. List the directory to see what is there.",
        ),
        (
            json!({"pattern": "x", "glob": "["}),
            Failed,
            "`glob` cannot be used: error parsing glob '[': unclosed character class; missing ']'. Examples: `*.rs`, `src/**/*.ts`, `**/test_*.py`.",
        ),
    ];
    for (arguments, state, text) in cases {
        let found = bench.ask("search", arguments.clone()).await;
        assert_eq!(found, (state, text.to_owned()), "{arguments}");
    }
    // What the plan changed is what is searched.
    bench
        .call("write", json!({"path": "b.txt", "text": "gone"}))
        .await;
    bench
        .call("write", json!({"path": "new/file.txt", "text": "needle 3"}))
        .await;
    bench.call("delete", json!({"path": "large"})).await;
    let found = bench.ask("search", json!({"pattern": "needle"})).await;
    assert_eq!(
        found,
        (
            Done,
            "a/deep/c.rs:1:needle(1)\nnew/file.txt:1:needle 3\n".to_owned()
        )
    );
    let many = &large[..70_000];
    bench
        .call("write", json!({"path": "many.txt", "text": many}))
        .await;
    let answer = bench
        .call("search", json!({"pattern": "needle", "path": "many.txt"}))
        .await;
    assert!(answer.text.ends_with("many.txt:300:needle\n[only the first 300 lines are shown; search for something narrower, in a `path`, or with a `glob`]"), "{}", answer.text);
    assert_eq!(answer.full.as_deref(), Some("many.txt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_not_found() {
    let files = [
        ("a.txt", "needle\n"),
        (".env", "needle\n"),
        ("keys/x", "needle\n"),
    ];
    let bench = Bench::with(&files, &["deny read *.env", "ask search keys/*"]).await;
    let found = bench.ask("search", json!({"pattern": "needle"})).await;
    let expected =
        "a.txt:1:needle\n[2 files were not searched: the rules do not allow to read them without asking]";
    assert_eq!(found, (Done, expected.to_owned()));
}
