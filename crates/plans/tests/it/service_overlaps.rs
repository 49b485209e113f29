//! Plans that touch the same files say so while their actors still work.

use std::time::Duration;

use eventlog::Sequence;
use protocol::PlanId;

use crate::service_kit::Kit;

/// How often each plan was told.
async fn told(kit: &Kit, plan: PlanId) -> usize {
    let moments = kit.plans.timeline(plan, Sequence::START, 1000).await.unwrap();
    moments
        .iter()
        .filter(|moment| moment.event == "overlapped")
        .count()
}

/// Waits until a plan overlaps with as many others.
async fn overlaps(kit: &Kit, plan: PlanId, count: usize) {
    let seen = async {
        while kit.plans.overlaps(plan).len() != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_are_told_of_an_overlap_once_and_whether_it_conflicts() {
    let mut kit =
        Kit::repository("printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > a.txt; echo b > b.txt").await;
    let (first, second) = (kit.plan("first").await, kit.plan("second").await);
    kit.write(first, "ann", "a.txt", "ONE\ntwo\nthree\nfour\nfive\n")
        .await;
    kit.write(second, "bob", "b.txt", "B\n").await;
    assert_eq!(kit.plans.overlaps(first), []);
    kit.write(second, "bob", "a.txt", "uno\ntwo\nthree\nfour\nfive\n")
        .await;
    overlaps(&kit, first, 1).await;
    let seen = kit.plans.overlaps(first);
    let path = &seen[0].paths[0];
    assert_eq!(
        (&*seen[0].plan, seen[0].title.as_str()),
        (&*second.to_string(), "second")
    );
    assert_eq!(
        (path.path.as_str(), path.conflicts, &*path.lines),
        ("a.txt", true, &[1][..])
    );
    let heard = async {
        while told(&kit, first).await + told(&kit, second).await < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), heard)
        .await
        .unwrap();

    kit.again().await;
    overlaps(&kit, second, 1).await;
    // Another change in another place is another word; the restart was none.
    kit.write(second, "bob", "a.txt", "one\ntwo\nthree\nfour\ncinco\n")
        .await;
    let calm = async {
        while kit
            .plans
            .overlaps(first)
            .iter()
            .any(|other| other.paths[0].conflicts)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while told(&kit, first).await < 2 || told(&kit, second).await < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), calm).await.unwrap();
    assert_eq!((told(&kit, first).await, told(&kit, second).await), (2, 2));
    kit.apply(&[second]).await;
    overlaps(&kit, first, 0).await;
}
