//! `tidelock plan` and `tidelock workspace`, as users type them.

use std::thread;

use serde_json::Value;

use crate::harness::finish;
use crate::job_stage::on_a_terminal;
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];

#[test]
fn two_plans_on_the_same_line_are_one_apply_and_one_conflict() {
    let project = Project::new(&BEFORE);
    let (first, second) = (
        project.open(&["--title", "first"]),
        project.open(&["--title", "second"]),
    );
    thread::scope(|scope| {
        scope.spawn(|| project.work(&first, "sed -i s/two/2/ a.txt"));
        scope.spawn(|| project.work(&second, "sed -i s/two/zwei/ a.txt"));
    });
    let listed = project.run(&["plan", "list"]).expect(0).stdout;
    assert!(listed.contains("first") && listed.contains("second"), "{listed}");
    project.run(&["plan", "apply", &first]).expect(0);
    let after = files(&[("a.txt", "one\n2\nthree\n"), ("b.txt", "b\n")]);
    assert_eq!(project.tree(), after);
    let refused = project.run(&["plan", "apply", &second]).expect(1);
    for part in [
        "cannot be applied: 1 file in conflict. Nothing was changed.",
        "a.txt: the workspace and the plan changed the same lines\n  line 2 of the workspace\n",
        "    base\n      | two\n    workspace\n      | 2\n    plan\n      | zwei\n",
    ] {
        assert!(
            refused.stdout.contains(part),
            "{part:?} is not in {}",
            refused.stdout
        );
    }
    assert_eq!(project.tree(), after);
    let shown = project.run(&["plan", "show", &second]).expect(0).stdout;
    assert!(shown.contains("Refused: apply by the test"), "{shown}");
    // Given up with --force only.
    let error = project
        .run(&["plan", "discard", &second, "--json"])
        .expect(4)
        .json();
    assert_eq!(error["error"]["code"], "plan_has_work");
    project.run(&["plan", "discard", &second, "--force"]).expect(0);
    assert_eq!(project.shown(&second)["state"], "discarded");
}

#[test]
fn plans_that_belong_together_are_applied_together() {
    let project = Project::new(&BEFORE);
    let plans: Vec<String> = (0..3).map(|_| project.open(&[])).collect();
    for (number, plan) in plans.iter().enumerate() {
        project.work(plan, &format!("echo {number} > new{number}"));
    }
    let applied = project
        .run(&["plan", "apply", &plans[0], &plans[1], &plans[2], "--json"])
        .expect(0)
        .json();
    assert_eq!(applied["outcome"], "done");
    assert_eq!(applied["plans"].as_array().unwrap().len(), 3);
    assert_eq!(project.tree().len(), 5);
    project.run(&["plan", "undo", &plans[1]]).expect(0);
    assert_eq!(
        project.tree().keys().map(String::as_str).collect::<Vec<_>>(),
        ["a.txt", "b.txt", "new0", "new2"]
    );
}

#[test]
fn a_plan_is_named_by_its_end_or_by_where_one_is() {
    let project = Project::new(&BEFORE);
    assert_eq!(
        project.run(&["plan", "show", "@", "--json"]).expect(4).json()["error"]["code"],
        "plan_not_found"
    );
    let first = project.open(&[]);
    let second = project.open(&[]);
    assert_eq!(project.shown("@")["id"], second);
    assert_eq!(
        project.shown(&first[first.len() - 6..].to_lowercase())["id"],
        first
    );
    // Ids share their beginnings.
    let beginning = &first["plan_".len().."plan_".len() + 4];
    let error = project
        .run(&["plan", "show", beginning, "--json"])
        .expect(4)
        .json();
    assert_eq!(error["error"]["code"], "plan_ambiguous");
    let mut elsewhere = project.world.command(&["plan", "show", "@", "--json"]);
    elsewhere.current_dir(project.world.path());
    assert_eq!(
        finish(elsewhere).expect(4).json()["error"]["code"],
        "plan_not_found"
    );
}

#[test]
fn writes_through_the_command_line_are_recorded_in_their_order() {
    let project = Project::new(&BEFORE);
    let plan = project.open(&[]);
    let source = project.world.path().join("source");
    std::fs::write(&source, "from a file\n").unwrap();
    for arguments in [
        &["--write", "d/new.txt", "--from", source.to_str().unwrap()][..],
        &["--edit", "a.txt", "--find", "two", "--replace", "2"],
        &["--rename", "b.txt", "c.txt"],
        &["--chmod", "c.txt", "+x"],
        &["--symlink", "link", "a.txt"],
        &["--delete", "d/new.txt"],
    ] {
        let mut line = vec![
            "plan", "record", &plan, "--tool", "the tool", "--reason", "why not",
        ];
        line.extend(arguments);
        project.run(&line).expect(0);
    }
    assert_eq!(
        project.run(&["plan", "cat", &plan, "a.txt"]).expect(0).stdout,
        "one\n2\nthree\n"
    );
    assert_eq!(
        project.run(&["plan", "cat", &plan, "link"]).expect(0).stdout,
        "a.txt\n"
    );
    let answer = project
        .run(&["plan", "changesets", &plan, "--json"])
        .expect(0)
        .json();
    let changesets = answer["changesets"].as_array().unwrap();
    assert_eq!(changesets.len(), 1, "{answer}");
    let said = ["actor", "tool", "reason"].map(|name| changesets[0][name].as_str().unwrap());
    assert_eq!(said, ["the test", "the tool", "why not"]);
    let changes = changesets[0]["changes"].as_array().unwrap();
    let word = |change: &Value, name: &str| change[name].as_str().unwrap_or_default().to_owned();
    let made: Vec<String> = changes
        .iter()
        .map(|change| format!("{} {}", word(change, "kind"), word(change, "path")))
        .collect();
    assert_eq!(
        made,
        [
            "create d",
            "create d/new.txt",
            "modify a.txt",
            "rename c.txt",
            "chmod c.txt",
            "symlink link",
            "delete d/new.txt",
        ]
    );
    let text = project.run(&["plan", "changesets", &plan]).expect(0).stdout;
    for part in ["the test with the tool, 7 changes", "why not", "b.txt -> c.txt"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    for (arguments, code) in [
        (
            &["--edit", "a.txt", "--find", "nowhere", "--replace", "x"][..],
            "file_refused",
        ),
        (&["--write", "../out"], "path_not_allowed"),
        (&["--write", ".git/hooks/x"], "path_not_allowed"),
    ] {
        let mut line = vec!["plan", "record", &plan, "--json"];
        line.extend(arguments);
        let outcome = project.run(&line);
        assert_eq!(outcome.json()["error"]["code"], code, "{arguments:?}");
    }
    let log = project.run(&["plan", "log", &plan]).expect(0).stdout;
    assert!(log.contains("opened"), "{log}");
    assert_eq!(project.tree(), files(&BEFORE));
}

#[test]
fn a_diff_on_a_terminal_is_coloured_and_paged() {
    let project = Project::new(&BEFORE);
    let plan = project.open(&[]);
    project.work(&plan, "printf 'one\\n\\033[31mred\\n' > a.txt");
    let mut diff = project.command(&["plan", "diff", &plan]);
    diff.env("GIT_PAGER", "sed s/^/paged:/").env("TERM", "xterm");
    let (code, text) = on_a_terminal(diff);
    assert_eq!(code, 0, "{text:?}");
    assert!(text.contains("paged:\u{1b}[31m-two\u{1b}[0m\r\n"), "{text:?}");
    // What is in a file does not speak to the terminal.
    assert!(
        text.contains("paged:\u{1b}[32m+\u{fffd}[31mred\u{1b}[0m\r\n"),
        "{text:?}"
    );
    let mut plain = project.command(&["plan", "diff", &plan]);
    plain.env("GIT_PAGER", "cat").env("NO_COLOR", "1");
    let (_, text) = on_a_terminal(plain);
    assert!(text.contains("-two\r\n") && !text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn workspaces_are_listed_have_checks_and_are_forgotten() {
    let project = Project::with_git(&BEFORE);
    assert!(
        project
            .run(&["workspace", "list"])
            .expect(0)
            .stdout
            .starts_with("No plans yet.")
    );
    let plan = project.open(&[]);
    let listed = project.run(&["workspace", "list", "--json"]).expect(0).json();
    assert_eq!(listed["workspaces"][0]["root"], project.root.to_str().unwrap());
    project
        .run(&["workspace", "checks", ".", "test -e a.txt"])
        .expect(0);
    let told = project.run(&["workspace", "checks", "."]).expect(0).stdout;
    assert!(told.ends_with("must pass:\n  test -e a.txt\n"), "{told}");
    let checked = project.open(&[]);
    assert_eq!(project.shown(&checked)["checks"][0]["command"], "test -e a.txt");
    let error = project
        .run(&["workspace", "forget", ".", "--json"])
        .expect(4)
        .json();
    assert_eq!(error["error"]["code"], "workspace_in_use");
    for plan in [&plan, &checked] {
        project.run(&["plan", "discard", plan]).expect(0);
    }
    project.run(&["workspace", "forget", "."]).expect(0);
    assert_eq!(project.tree(), files(&BEFORE));
}

#[test]
fn a_plan_follows_its_workspace_and_its_parent() {
    let project = Project::new(&BEFORE);
    let plan = project.open(&[]);
    project.work(&plan, "echo mine > c.txt");
    project.write("a.txt", "moved on\n");
    project.run(&["plan", "refresh", &plan]).expect(0);
    assert_eq!(
        project.run(&["plan", "cat", &plan, "a.txt"]).expect(0).stdout,
        "moved on\n"
    );
    assert_eq!(
        project
            .run(&["plan", "diff", &plan, "--name-only"])
            .expect(0)
            .stdout,
        "c.txt\n"
    );
    let child = project.open(&["--parent", &plan]);
    project.work(&child, "cat c.txt > d.txt");
    project.run(&["plan", "seal", &child]).expect(0);
    project.run(&["plan", "apply", &child]).expect(0);
    assert_eq!(
        project.run(&["plan", "cat", &plan, "d.txt"]).expect(0).stdout,
        "mine\n"
    );
    assert!(!project.tree().contains_key("d.txt"));
    let freed = project
        .run(&["plan", "gc", "--older-than", "0s", "--dry-run", "--json"])
        .expect(0)
        .json();
    assert_eq!(freed["kept"], serde_json::json!([plan]));
}
