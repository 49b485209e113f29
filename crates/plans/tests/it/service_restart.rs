//! What another life of the daemon finds.

use protocol::{OutcomeKind, PlanState};

use crate::service_kit::{Kit, actor};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_did_is_recorded_for_its_actor_even_if_the_daemon_was_killed() {
    let mut kit = Kit::repository("echo a > a.txt").await;
    let plan = kit.plan("cut off").await;
    let run = kit.begin_command(plan, "bob", "work").await;
    kit.command(&run, "echo b >> a.txt; echo n > n.txt").await;
    drop(run);
    // Nobody has said that the command is gone.
    let notes = kit.again().await;
    assert_eq!(
        notes,
        ["1 commands in sandboxes had been cut off; what they did is recorded"]
    );
    let changesets = kit.plans.changesets(plan).await.unwrap();
    let told: Vec<_> = changesets
        .iter()
        .map(|changeset| (&*changeset.record.actor, changeset.record.entries))
        .collect();
    assert_eq!(told, [("bob", 2)]);
    let found = kit.plans.get(plan).await.unwrap();
    assert_eq!(
        (found.record.state, found.record.running.len()),
        (PlanState::Open, 0)
    );
    assert_eq!(kit.apply(&[plan]).await.kind, OutcomeKind::Done);
    assert_eq!(kit.tree()["a.txt"], "644 a\nb\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_found_again_with_everything_that_was_done_in_it() {
    let mut kit =
        Kit::repository("echo a > a.txt; echo 'out/' > .gitignore; mkdir out; echo o > out/o").await;
    let plan = kit.plan("kept").await;
    kit.run(plan, "bob", "echo b > b.txt; echo built > out/built")
        .await;
    kit.write(plan, "ann", "c.txt", "c\n").await;
    kit.again().await;
    assert_eq!(
        kit.run(
            plan,
            "bob",
            "test -f b.txt && test -f c.txt && test -f out/built && test -f out/o"
        )
        .await,
        process::Exit::Code(0)
    );
    let counts = kit.plans.counts();
    assert_eq!((counts.open, counts.sealed), (1, 0));
    kit.plans.seal(plan, actor("ann"), None).await.unwrap();
    assert_eq!(kit.plans.counts().sealed, 1);
}
