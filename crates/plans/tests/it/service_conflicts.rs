//! What happens when the workspace has moved: merged if it can be, refused whole if it cannot.

use std::fs;

use plans::{ConflictKind, PlanError, Run};
use protocol::{OutcomeKind, PlanState};

use crate::service_kit::Kit;

const SCRIPT: &str = "printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > a.txt; echo b > b.txt; echo c > c.txt";

#[tokio::test(flavor = "multi_thread")]
async fn what_others_did_is_merged_and_stays_when_the_plan_is_undone() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("top").await;
    kit.run(plan, "ann", "sed -i s/one/ONE/ a.txt").await;
    fs::write(kit.workspace.join("a.txt"), "one\ntwo\nthree\nfour\nFIVE\n").unwrap();
    let outcome = kit.apply(&[plan]).await;
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    assert!(outcome.paths[0].merged);
    assert_eq!(kit.tree()["a.txt"], "644 ONE\ntwo\nthree\nfour\nFIVE\n");
    fs::write(kit.workspace.join("a.txt"), "ONE\ntwo\nthree\nFOUR\nFIVE\n").unwrap();
    kit.undo(plan).await;
    assert_eq!(kit.tree()["a.txt"], "644 one\ntwo\nthree\nFOUR\nFIVE\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_changes_nothing_and_names_the_place() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("clash").await;
    kit.run(plan, "ann", "sed -i s/two/TWO/ a.txt; echo new > n.txt; rm c.txt")
        .await;
    fs::write(kit.workspace.join("a.txt"), "one\n2\nthree\nfour\nfive\n").unwrap();
    fs::write(kit.workspace.join("c.txt"), "changed\n").unwrap();
    let before = kit.tree();
    for run in [Run::Dry, Run::Real] {
        let order = plans::ApplyRequest {
            run,
            ..kit.apply_order(&[plan])
        };
        let outcome = kit.plans.apply(order).await.unwrap();
        assert_eq!(outcome.kind, OutcomeKind::Conflicted);
        let kinds: Vec<_> = outcome
            .conflicts
            .iter()
            .map(|conflict| (conflict.path.to_string(), conflict.kind))
            .collect();
        assert_eq!(
            kinds,
            [
                ("a.txt".to_owned(), ConflictKind::Content),
                ("c.txt".to_owned(), ConflictKind::DeletedByPlan)
            ]
        );
        let hunk = &outcome.conflicts[0].hunks[0];
        assert_eq!(
            (hunk.line, &*hunk.base, &*hunk.ours, &*hunk.theirs),
            (2, "two\n", "2\n", "TWO\n")
        );
        assert_eq!(kit.tree(), before);
    }
    let plan = kit.plans.get(plan).await.unwrap();
    assert_eq!(plan.record.state, PlanState::Open, "a conflict is no grave");
    assert_eq!(plan.record.refused.unwrap().conflicts.len(), 2);
    // The user gives way, and it goes through.
    fs::write(kit.workspace.join("a.txt"), "one\ntwo\nthree\nfour\nfive\n").unwrap();
    fs::write(kit.workspace.join("c.txt"), "c\n").unwrap();
    assert_eq!(kit.apply(&[plan.id]).await.kind, OutcomeKind::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_applied_together_or_not_at_all_and_taken_back_one_by_one() {
    let kit = Kit::repository(SCRIPT).await;
    let before = kit.tree();
    let (first, second, third) = (kit.plan("1").await, kit.plan("2").await, kit.plan("3").await);
    kit.run(first, "ann", "sed -i s/one/ONE/ a.txt; echo 1 > n1")
        .await;
    kit.run(second, "bob", "sed -i s/five/FIVE/ a.txt; echo 2 > n2")
        .await;
    kit.run(third, "cy", "sed -i s/five/fünf/ a.txt; echo 3 > n3")
        .await;
    let outcome = kit.apply(&[first, second, third]).await;
    assert_eq!(outcome.kind, OutcomeKind::Conflicted);
    assert_eq!(kit.tree(), before);
    assert_eq!(kit.apply(&[first, second]).await.kind, OutcomeKind::Done);
    assert_eq!(kit.tree()["a.txt"], "644 ONE\ntwo\nthree\nfour\nFIVE\n");
    kit.undo(first).await;
    assert_eq!(kit.tree()["a.txt"], "644 one\ntwo\nthree\nfour\nFIVE\n");
    assert!(!kit.tree().contains_key("n1") && kit.tree().contains_key("n2"));
    kit.undo(second).await;
    assert_eq!(kit.tree(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_applies_at_once_all_land_or_are_reported() {
    let kit = Kit::repository(SCRIPT).await;
    let mut plans = Vec::new();
    for number in 0..8 {
        let plan = kit.plan(&number.to_string()).await;
        kit.run(
            plan,
            "ann",
            &format!("echo {number} > n{number}; if [ {number} -ge 6 ]; then echo {number} > b.txt; fi"),
        )
        .await;
        plans.push(plan);
    }
    let applies = plans
        .iter()
        .map(|plan| kit.plans.apply(kit.apply_order(&[*plan])));
    let outcomes = futures_util::future::join_all(applies).await;
    let done: Vec<bool> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().unwrap().kind == OutcomeKind::Done)
        .collect();
    assert_eq!(done.iter().filter(|done| **done).count(), 7, "{done:?}");
    let tree = kit.tree();
    for (number, done) in done.iter().enumerate() {
        assert_eq!(tree.contains_key(&format!("n{number}")), *done);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_applies_of_one_plan_one_applies_it() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("once").await;
    kit.run(plan, "ann", "echo more >> b.txt").await;
    let (one, other) = tokio::join!(
        kit.plans.apply(kit.apply_order(&[plan])),
        kit.plans.apply(kit.apply_order(&[plan]))
    );
    let refused = [one, other].into_iter().find_map(Result::err).unwrap();
    assert!(
        matches!(
            refused,
            PlanError::WrongState {
                state: PlanState::Applied,
                ..
            }
        ),
        "{refused:?}"
    );
    assert_eq!(kit.tree()["b.txt"], "644 b\nmore\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_seen_something_else_applies_nothing() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("moving").await;
    kit.run(plan, "ann", "echo more >> b.txt").await;
    let seen = kit.plans.get(plan).await.unwrap().record.fingerprint;
    kit.run(plan, "ann", "echo and more >> b.txt").await;
    let before = kit.tree();
    let order = |seen| plans::ApplyRequest {
        seen: vec![seen],
        ..kit.apply_order(&[plan])
    };
    let refused = kit.plans.apply(order(seen)).await.unwrap_err();
    assert!(matches!(refused, PlanError::Stale { .. }), "{refused:?}");
    assert_eq!(kit.tree(), before);
    let seen = kit.plans.get(plan).await.unwrap().record.fingerprint;
    assert_eq!(
        kit.plans.apply(order(seen)).await.unwrap().kind,
        OutcomeKind::Done
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_brings_the_workspace_in_and_keeps_the_work() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("old").await;
    kit.run(plan, "ann", "sed -i s/one/ONE/ a.txt; echo n > n.txt")
        .await;
    fs::write(kit.workspace.join("a.txt"), "one\ntwo\nthree\nfour\nFIVE\n").unwrap();
    fs::write(kit.workspace.join("b.txt"), "B\n").unwrap();
    let outcome = kit
        .plans
        .refresh(plan, crate::service_kit::actor("ann"), None)
        .await
        .unwrap();
    assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
    kit.run(plan, "ann", "cat a.txt b.txt > seen.txt").await;
    let changes = kit.plans.changes(plan, None).await.unwrap();
    let paths: Vec<_> = changes.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["a.txt", "n.txt", "seen.txt"]);
    assert_eq!(kit.apply(&[plan]).await.kind, OutcomeKind::Done);
    assert_eq!(kit.tree()["seen.txt"], "644 ONE\ntwo\nthree\nfour\nFIVE\nB\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changeset_of_an_applied_plan_is_taken_back_and_the_rest_stays() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("two stay").await;
    kit.run(plan, "ann", "sed -i s/one/ONE/ a.txt").await;
    kit.run(plan, "bob", "sed -i s/five/FIVE/ a.txt; echo n > n.txt")
        .await;
    kit.apply(&[plan]).await;
    let changesets = kit.plans.changesets(plan).await.unwrap();
    let actors: Vec<_> = changesets
        .iter()
        .map(|changeset| &*changeset.record.actor)
        .collect();
    assert_eq!(actors, ["ann", "bob"]);
    let order = plans::UndoRequest {
        plan,
        changeset: Some(changesets[1].id),
        seen: None,
        by: crate::service_kit::actor("ann"),
        run: Run::Real,
    };
    assert_eq!(kit.plans.undo(order).await.unwrap().kind, OutcomeKind::Done);
    assert_eq!(kit.tree()["a.txt"], "644 ONE\ntwo\nthree\nfour\nfive\n");
    assert!(!kit.tree().contains_key("n.txt"));
    assert_eq!(
        kit.plans.get(plan).await.unwrap().record.state,
        PlanState::Applied
    );
}
