//! A plan from its opening to its undo, on a real workspace.

use std::fs;
use std::time::Duration;

use plans::{FileFound, FileOperation, GcPolicy, PlanError, RelPath, Run, Unapplied};
use protocol::{OutcomeKind, PlanState};

use crate::service_kit::{Kit, actor, shell};

const SCRIPT: &str =
    "printf 'one\\ntwo\\nthree\\n' > a.txt; mkdir d; echo b > d/b.txt; echo '*.log' > .gitignore";

#[tokio::test(flavor = "multi_thread")]
async fn work_is_applied_whole_and_taken_back_whole() {
    let kit = Kit::repository(SCRIPT).await;
    let before = kit.tree();
    let plan = kit.plan("work").await;
    kit.write(plan, "ann", "new/file.txt", "new\n").await;
    kit.run(
        plan,
        "bob",
        "sed -i s/two/TWO/ a.txt; rm d/b.txt; ln -s a.txt link; echo noise > x.log",
    )
    .await;
    let rename = FileOperation::Rename {
        from: "a.txt".parse().unwrap(),
        path: "moved.txt".parse().unwrap(),
    };
    kit.operate(plan, "ann", rename).await;
    assert_eq!(kit.tree(), before, "nothing is seen outside before it is applied");

    let outcome = kit.apply(&[plan]).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    let after = kit.tree();
    assert_eq!(
        after.get("moved.txt").map(String::as_str),
        Some("644 one\nTWO\nthree\n")
    );
    assert_eq!(after.get("link").map(String::as_str), Some("-> a.txt"));
    assert!(!after.contains_key("a.txt") && !after.contains_key("d/b.txt") && !after.contains_key("x.log"));
    assert_eq!(
        kit.plans.get(plan).await.unwrap().record.state,
        PlanState::Applied
    );

    let outcome = kit.undo(plan).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(kit.tree(), before);
    assert_eq!(kit.plans.get(plan).await.unwrap().record.state, PlanState::Undone);

    let outcome = kit.apply(&[plan]).await;
    assert_eq!(
        outcome.kind,
        OutcomeKind::Done,
        "an undo is undone by applying again: {outcome:?}"
    );
    assert_eq!(kit.tree(), after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_the_sandbox_that_counts_and_none_that_was_taken_away() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("work").await;
    let path: RelPath = "a.txt".parse().unwrap();
    let read = async || match kit.plans.read_file(plan, Some(path.clone())).await {
        Ok(FileFound::File { content, .. }) => String::from_utf8(content).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(read().await, "one\ntwo\nthree\n");
    kit.write(plan, "ann", "a.txt", "written\n").await;
    assert_eq!(read().await, "written\n");
    kit.write(plan, "ann", "a.txt", "one\ntwo\nthree\n").await;
    shell(&kit.workspace, "echo outside > a.txt");
    kit.plans.refresh(plan, actor("ann"), None).await.unwrap();
    assert_eq!(read().await, "outside\n", "a refresh makes another sandbox");

    kit.plans
        .discard(plan, actor("ann"), None, Unapplied::GiveUp)
        .await
        .unwrap();
    let all = GcPolicy {
        older_than: Duration::ZERO,
        run: Run::Real,
    };
    kit.plans.collect(all).await.unwrap();
    let gone = kit.plans.read_file(plan, Some(path.clone())).await;
    assert!(matches!(gone, Err(PlanError::SandboxGone(_))), "{gone:?}");
    let places = fs::read_dir(kit.root.join("data/sandboxes")).unwrap().count();
    assert_eq!(places, 0, "an empty place would count as a sandbox");
}

/// What a command has made is recorded when the command ends. Others may write to it, or remove it, before.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_running_command_has_made_can_be_changed_meanwhile() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("work").await;
    let line = "echo a > gone.txt; echo b > written.txt; echo c > moved.txt; echo d > kept.txt";
    let run = kit.begin_command(plan, "ann", line).await;
    kit.command(&run, line).await;
    let path = |name: &str| name.parse().unwrap();
    kit.operate(
        plan,
        "bob",
        FileOperation::Delete {
            path: path("gone.txt"),
        },
    )
    .await;
    kit.write(plan, "bob", "written.txt", "by bob\n").await;
    let rename = FileOperation::Rename {
        from: path("moved.txt"),
        path: path("renamed.txt"),
    };
    kit.operate(plan, "bob", rename).await;
    kit.plans.end_command(&run).await.unwrap();
    let changes = kit.plans.changes(plan, None).await.unwrap();
    let mut found: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
    found.sort();
    assert_eq!(found, ["kept.txt", "renamed.txt", "written.txt"]);
}
