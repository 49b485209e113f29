//! Whatever is done in a sandbox: its base, with what was captured, is the sandbox.

use proptest::collection::vec;
use proptest::prelude::{Strategy as _, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use protocol::SandboxStrategy;
use tokio::runtime::Runtime;

use crate::sandbox_support::{WORKSPACE, World};

/// Few names, so that what one step does is undone, moved and covered by the next.
const NAMES: [&str; 12] = [
    "a.txt",
    "b.txt",
    "dir",
    "dir/one.txt",
    "dir/two.txt",
    "dir/deep",
    "dir/deep/three.txt",
    "empty",
    "link",
    "new",
    "new/a",
    "new/dir",
];
const WORDS: [&str; 4] = ["alpha", "one", "new", "other"];
/// How many histories there are for each strategy. Each has several commands in a real sandbox.
const HISTORIES: u32 = 24;

/// A line of a script. It may fail, as commands do.
pub(crate) fn line() -> impl proptest::strategy::Strategy<Value = String> {
    let name = || select(&NAMES[..]);
    prop_oneof![
        (name(), select(&WORDS[..])).prop_map(|(name, word)| format!("echo {word} > {name}")),
        (name(), select(&WORDS[..])).prop_map(|(name, word)| format!("echo {word} >> {name}")),
        name().prop_map(|name| format!("rm -rf {name}")),
        name().prop_map(|name| format!("mkdir -p {name}")),
        (name(), name()).prop_map(|(from, to)| format!("mv {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("cp -a {from} {to}")),
        (name(), name()).prop_map(|(from, to)| format!("ln -f {from} {to}")),
        (name(), name()).prop_map(|(target, name)| format!("ln -sfn {target} {name}")),
        (name(), select(&["644", "755", "600"][..])).prop_map(|(name, mode)| format!("chmod {mode} {name}")),
        name().prop_map(|name| format!("touch {name}")),
    ]
}

fn check(name: SandboxStrategy) {
    let runtime = Runtime::new().unwrap();
    let world = runtime.block_on(World::of(WORKSPACE));
    let taken = world.take();
    let Some(strategy) = world.strategy(name) else {
        return;
    };
    let config = Config {
        cases: HISTORIES,
        failure_persistence: None,
        max_shrink_iters: 64,
        ..Config::default()
    };
    let histories = vec(vec(line(), 1..8), 1..4);
    let outcome = TestRunner::new(config).run(&histories, |scripts| {
        runtime.block_on(async {
            let mut subject = world.open(strategy.clone(), &taken).await;
            for lines in &scripts {
                world
                    .run_in(&subject, &format!("({}) 2>/dev/null", lines.join("\n")))
                    .await;
                let captured = subject.capture();
                subject.record(&captured.changes);
                assert_eq!(subject.known_entries(), subject.real_entries(), "{scripts:#?}");
                assert_eq!(subject.capture().changes, []);
                subject = subject.reopen().await;
            }
            subject.remove().await;
        });
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn an_overlay_is_its_base_and_what_was_captured() {
    check(SandboxStrategy::Overlay);
}

#[test]
fn a_worktree_is_its_base_and_what_was_captured() {
    check(SandboxStrategy::GitWorktree);
}

#[test]
fn a_copy_is_its_base_and_what_was_captured() {
    check(SandboxStrategy::Copy);
}
