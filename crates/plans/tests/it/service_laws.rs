//! What holds of every piece of work: real commands in real sandboxes, applied and taken back.

use std::collections::BTreeMap;

use plans::{Entry, FileFound};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use protocol::{OutcomeKind, PlanId, SandboxStrategy};
use tokio::runtime::Runtime;

use crate::sandbox_random::line;
use crate::service_kit::Kit;

/// How many pieces of work there are for each law. Each has several commands, applies and undos.
const CASES: u32 = 16;
const WORKSPACE: &str =
    "mkdir -p dir/deep empty; echo alpha > a.txt; echo one > dir/one.txt; echo two > dir/two.txt
    echo three > dir/deep/three.txt; chmod 755 dir/two.txt; ln -s a.txt link";

/// The same files below two directories, for work that has nothing in common.
const TWO_SIDES: &str = "for side in left right; do mkdir -p $side; (cd $side; mkdir -p dir/deep empty
    echo alpha > a.txt; echo one > dir/one.txt; echo three > dir/deep/three.txt; ln -s a.txt link); done";

fn runner() -> TestRunner {
    TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 32,
        ..Config::default()
    })
}

/// A script whose lines may fail, as commands do.
fn script(lines: &[String]) -> String {
    format!("({}) 2>/dev/null; true", lines.join("\n"))
}

/// Everything in the sandbox of a plan but `.git`, as the tree of a workspace is shown.
async fn sandbox(kit: &Kit, plan: PlanId) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![String::new()];
    while let Some(name) = waiting.pop() {
        let path = (!name.is_empty()).then(|| name.parse().unwrap());
        let shown = match kit.plans.read_file(plan, path).await.unwrap() {
            FileFound::Directory { names } => {
                let inside = names.iter().map(|inside| inside.trim_end_matches('/'));
                let inside = inside.filter(|inside| *inside != ".git");
                waiting.extend(inside.map(|inside| match name.as_str() {
                    "" => inside.to_owned(),
                    _ => format!("{name}/{inside}"),
                }));
                "directory".to_owned()
            }
            FileFound::Symlink { target } => format!("-> {}", String::from_utf8_lossy(&target)),
            FileFound::File {
                entry: Entry::File { mode, .. },
                content,
            } => format!("{mode:o} {}", String::from_utf8_lossy(&content)),
            other => panic!("{name} is {other:?}"),
        };
        if !name.is_empty() {
            found.insert(name, shown);
        }
    }
    found
}

/// Whatever was done in a sandbox, the workspace is that after an apply, and is what it was after the undo.
fn check_apply_and_undo(strategy: SandboxStrategy) {
    let runtime = Runtime::new().unwrap();
    let kit = runtime.block_on(Kit::repository(WORKSPACE));
    let works = kit
        .plans
        .strategies()
        .into_iter()
        .any(|(name, works)| name == strategy && works.is_ok());
    if !works {
        // The strategies have tests of their own that report what is not there.
        return;
    }
    let before = kit.tree();
    let outcome = runner().run(&vec(vec(line(), 1..8), 1..3), |scripts| {
        runtime.block_on(async {
            let new = plans::NewPlan {
                strategy: Some(strategy),
                ..kit.new_plan()
            };
            let plan = kit.open_plan(new).await.id;
            for lines in &scripts {
                kit.run(plan, "ann", &script(lines)).await;
            }
            let wanted = sandbox(&kit, plan).await;
            for _ in 0..2 {
                let outcome = kit.apply(&[plan]).await;
                assert_eq!(outcome.kind, OutcomeKind::Done, "{scripts:#?}\n{outcome:#?}");
                assert_eq!(kit.tree(), wanted, "{scripts:#?}");
                let outcome = kit.undo(plan).await;
                assert_eq!(outcome.kind, OutcomeKind::Done, "{scripts:#?}\n{outcome:#?}");
                assert_eq!(kit.tree(), before, "{scripts:#?}");
            }
        });
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn the_work_of_an_overlay_is_applied_exactly_and_taken_back_exactly() {
    check_apply_and_undo(SandboxStrategy::Overlay);
}

#[test]
fn the_work_of_a_copy_is_applied_exactly_and_taken_back_exactly() {
    check_apply_and_undo(SandboxStrategy::Copy);
}

#[test]
fn plans_that_have_nothing_in_common_commute() {
    let runtime = Runtime::new().unwrap();
    let kit = runtime.block_on(Kit::repository(TWO_SIDES));
    let before = kit.tree();
    let outcome = runner().run(&(vec(line(), 1..8), vec(line(), 1..8)), |(left, right)| {
        runtime.block_on(async {
            let (one, other) = (kit.plan("left").await, kit.plan("right").await);
            kit.run(one, "ann", &format!("cd left; {}", script(&left))).await;
            kit.run(other, "bob", &format!("cd right; {}", script(&right)))
                .await;
            let mut ends = Vec::new();
            for order in [[one, other], [other, one]] {
                for plan in order {
                    let outcome = kit.apply(&[plan]).await;
                    assert_eq!(
                        outcome.kind,
                        OutcomeKind::Done,
                        "{left:#?} {right:#?}\n{outcome:#?}"
                    );
                }
                ends.push(kit.tree());
                // Taken back in the same order, so that the first does not go out as it came in.
                for plan in order {
                    let outcome = kit.undo(plan).await;
                    assert_eq!(
                        outcome.kind,
                        OutcomeKind::Done,
                        "{left:#?} {right:#?}\n{outcome:#?}"
                    );
                }
                assert_eq!(kit.tree(), before, "{left:#?} {right:#?}");
            }
            let outcome = kit.apply(&[one, other]).await;
            assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:#?}");
            ends.push(kit.tree());
            kit.undo(one).await;
            kit.undo(other).await;
            assert_eq!(kit.tree(), before, "{left:#?} {right:#?}");
            assert!(ends[0] == ends[1] && ends[1] == ends[2], "{left:#?} {right:#?}");
        });
        Ok(())
    });
    outcome.unwrap();
}
