//! Plans that begin with another plan and merge back into it.

use plans::{NewPlan, PlanError, PlanOrigin};
use protocol::{OutcomeKind, PlanState};

use crate::service_kit::Kit;

#[tokio::test(flavor = "multi_thread")]
async fn children_merge_into_their_parent_and_the_workspace_sees_nothing_of_it() {
    let kit = Kit::repository("printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > a.txt").await;
    let before = kit.tree();
    let parent = kit.plan("parent").await;
    kit.run(parent, "ann", "echo p > p.txt").await;
    let child = |title: &str| NewPlan {
        on: PlanOrigin::Plan(parent),
        title: title.to_owned(),
        ..kit.new_plan()
    };
    let first = kit.open_plan(child("first")).await.id;
    let second = kit.open_plan(child("second")).await.id;
    let third = kit.open_plan(child("third")).await.id;
    assert_eq!(
        kit.run(
            first,
            "bob",
            "test -f p.txt && sed -i s/one/ONE/ a.txt && echo 1 > c1"
        )
        .await,
        process::Exit::Code(0)
    );
    kit.run(
        second,
        "cy",
        "sed -i s/five/FIVE/ a.txt; test -e c1 || echo 2 > c2",
    )
    .await;
    kit.run(third, "di", "sed -i s/five/fuenf/ a.txt").await;
    assert_eq!(kit.apply(&[first]).await.kind, OutcomeKind::Done);
    assert_eq!(kit.apply(&[second]).await.kind, OutcomeKind::Done);
    let outcome = kit.apply(&[third]).await;
    assert_eq!(outcome.kind, OutcomeKind::Conflicted, "{outcome:?}");
    assert_eq!(kit.tree(), before);
    kit.run(parent, "ann", "cat a.txt > seen").await;
    let tools: Vec<_> = kit
        .plans
        .changesets(parent)
        .await
        .unwrap()
        .into_iter()
        .map(|changeset| changeset.record.tool)
        .collect();
    assert_eq!(tools, ["shell", "merge", "merge", "shell"]);
    assert_eq!(kit.apply(&[parent]).await.kind, OutcomeKind::Done);
    let tree = kit.tree();
    assert_eq!(tree["seen"], "644 ONE\ntwo\nthree\nfour\nFIVE\n");
    assert!(tree.contains_key("c1") && tree.contains_key("c2") && tree.contains_key("p.txt"));
    assert_eq!(
        kit.plans.get(first).await.unwrap().record.state,
        PlanState::Applied
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_can_be_taken_back_out_of_its_parent() {
    let kit = Kit::repository("echo a > a.txt").await;
    let parent = kit.plan("parent").await;
    let new = NewPlan {
        on: PlanOrigin::Plan(parent),
        ..kit.new_plan()
    };
    let child = kit.open_plan(new).await.id;
    kit.run(child, "bob", "echo c > c.txt; rm a.txt").await;
    kit.apply(&[child]).await;
    assert_eq!(kit.plans.changes(parent, None).await.unwrap().len(), 2);
    assert_eq!(kit.undo(child).await.kind, OutcomeKind::Done);
    assert_eq!(kit.plans.changes(parent, None).await.unwrap(), []);
    let refused = kit
        .plans
        .apply(kit.apply_order(&[parent, child]))
        .await
        .unwrap_err();
    assert!(matches!(refused, PlanError::NotTogether), "{refused:?}");
}
