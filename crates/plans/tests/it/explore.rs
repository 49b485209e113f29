//! Looking through the files of a sandbox.

use std::ops::ControlFlow;

use plans::{FileKind, PlanError, RelPath, WalkOver};
use protocol::PlanId;

use crate::service_kit::Kit;

const SCRIPT: &str = "printf 'target/\\n*.log\\n' > .gitignore; mkdir -p src/deep target/out empty; \
    touch src/b src/a src/deep/c z x.log target/out/o src-more; ln -s src link; mkfifo pipe";

/// Where a walk begins, over what, how far it goes, and what it comes by.
type Case = (
    Option<&'static str>,
    WalkOver,
    usize,
    Result<&'static str, &'static str>,
);

/// What a walk comes by; directories end with a slash, symlinks with an `@`.
async fn walked(
    kit: &Kit,
    plan: PlanId,
    below: Option<&str>,
    over: WalkOver,
    at_most: usize,
) -> Result<String, String> {
    let below: Option<RelPath> = below.map(|path| path.parse().unwrap());
    let explored = kit.plans.explore(plan, move |explorer| {
        let mut seen = Vec::new();
        let walked = explorer.walk(below.as_ref(), over, &mut |path, kind| {
            seen.push(match kind {
                FileKind::Directory => format!("{path}/"),
                FileKind::Symlink => format!("{path}@"),
                FileKind::File | FileKind::Special => path.to_string(),
            });
            if seen.len() < at_most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        walked.map(|()| seen.join(" "))
    });
    explored.await.unwrap().map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_goes_in_the_order_of_names_and_passes_over_what_is_ignored() {
    let kit = Kit::repository(SCRIPT).await;
    let plan = kit.plan("look").await;
    kit.write(plan, "ann", "src/deep/new", "").await;
    kit.write(plan, "ann", "later.log", "").await;
    kit.run(plan, "ann", "rm z").await;
    let all = usize::MAX;
    let counts = WalkOver::WhatCounts;
    let cases: &[Case] = &[
        (
            None,
            counts,
            all,
            Ok(".gitignore empty/ link@ src/ src/a src/b src/deep/ src/deep/c src/deep/new src-more"),
        ),
        (
            Some("src"),
            counts,
            all,
            Ok("src/a src/b src/deep/ src/deep/c src/deep/new"),
        ),
        (Some("src/deep/new"), counts, all, Ok("src/deep/new")),
        (Some("link"), counts, all, Ok("link@")),
        (Some("empty"), counts, all, Ok("")),
        (None, counts, 3, Ok(".gitignore empty/ link@")),
        // Who names something that is ignored wants to see it.
        (Some("target"), counts, all, Ok("target/out/ target/out/o")),
        (Some("target/out"), counts, all, Ok("target/out/o")),
        (Some("x.log"), counts, all, Ok("x.log")),
        (Some("z"), counts, all, Err("there is nothing at `z`")),
        (Some("link/a"), counts, all, Err("there is nothing at `link/a`")),
    ];
    for (below, over, at_most, expected) in cases {
        let found = walked(&kit, plan, *below, *over, *at_most).await;
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, expected, "{below:?} {over:?} {at_most}");
    }
    let everything = walked(&kit, plan, None, WalkOver::Everything, all).await.unwrap();
    assert_eq!(
        everything,
        ".gitignore empty/ later.log link@ src/ src/a src/b src/deep/ src/deep/c src/deep/new src-more target/ target/out/ \
         target/out/o x.log"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_not_there_cannot_be_explored() {
    let kit = Kit::of("true").await;
    let none = PlanId::generate();
    let explored = kit.plans.explore(none, |_| ()).await;
    assert!(
        matches!(explored, Err(PlanError::NotFound(id)) if id == none),
        "{explored:?}"
    );
}
