//! A plan from its opening to its undo, on a real workspace.

use plans::{FileOperation, OutcomeKind, State};

use crate::service_kit::Kit;

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
    assert_eq!(kit.plans.get(plan).await.unwrap().record.state, State::Applied);

    let outcome = kit.undo(plan).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(kit.tree(), before);
    assert_eq!(kit.plans.get(plan).await.unwrap().record.state, State::Undone);

    let outcome = kit.apply(&[plan]).await;
    assert_eq!(
        outcome.kind,
        OutcomeKind::Done,
        "an undo is undone by applying again: {outcome:?}"
    );
    assert_eq!(kit.tree(), after);
}
