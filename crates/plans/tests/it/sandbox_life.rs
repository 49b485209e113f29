//! Sandboxes are picked, made, opened, kept apart and taken away.

use std::collections::BTreeMap;
use std::fs;

use plans::{LeftOut, SandboxError, WhyLeftOut};
use process::Exit;
use protocol::SandboxStrategy;

use crate::sandbox_support::{ALL, WORKSPACE, World, path, snapshot};

#[tokio::test(flavor = "multi_thread")]
async fn the_best_strategy_that_works_is_picked() {
    let world = World::of(WORKSPACE).await;
    let list = world.strategies.list();
    assert_eq!(list.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ALL);
    let best = list.iter().find(|(_, verdict)| verdict.is_ok()).unwrap().0;
    assert_eq!(
        world.strategies.pick(None, &world.workspace).unwrap().name(),
        best
    );
    for name in ALL {
        assert_eq!(world.strategies.get(name).name(), name);
    }
    let refused = |world: &World| {
        let picked = world
            .strategies
            .pick(Some(SandboxStrategy::GitWorktree), &world.workspace);
        picked.map(|strategy| strategy.name()).unwrap_err().to_string()
    };
    if world.strategy(SandboxStrategy::GitWorktree).is_some() {
        let plain = World::bare("echo x > x").await;
        assert!(refused(&plain).ends_with("the workspace is no repository of git"));
        plain.shell("git init -q").await;
        assert!(refused(&plain).ends_with("the repository has no commit yet"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_reaches_its_own_sandbox_and_no_other_place() {
    let world = World::of(WORKSPACE).await;
    fs::write(world.outside.join("file"), "outside").unwrap();
    let taken = world.take();
    for name in ALL {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let (one, other) = (
            world.open(strategy.clone(), &taken).await,
            world.open(strategy, &taken).await,
        );
        let file = taken.base.tree.join("a.txt");
        let others = other.order.directory.join(if name == SandboxStrategy::Overlay {
            "upper"
        } else {
            "tree"
        });
        let places = [world.outside.clone(), taken.base.tree.clone(), others.clone()];
        let before = places.each_ref().map(|place| snapshot(place, &|_| false));
        // Where the tests themselves run below a temporary directory, a command in an overlay may write around it.
        let writable = one.sandbox.entrance().writable(&BTreeMap::new()).await.unwrap();
        let is_open = writable.iter().any(|place| world.outside.starts_with(place));
        let outside = [
            "echo x > \"$OUTSIDE/file\"",
            "rm \"$OUTSIDE/file\"",
            "ln -s \"$OUTSIDE\" out && echo x > out/new",
        ];
        let scratch = [
            format!("echo x > '{}'", file.display()),
            format!("echo x > '{}/new'", others.display()),
        ];
        let outside = outside
            .iter()
            .filter(|_| !is_open)
            .map(|script| (*script).to_owned());
        for refused in scratch.into_iter().chain(outside) {
            let said = world.run_in(&one, &refused).await;
            assert_ne!(said.exit, Exit::Code(0), "{name}: {refused}: {}", said.text);
        }
        // Its temporary directory is its own, and the sandbox is where it says.
        let script =
            "set -e; echo x > \"$TMPDIR/mine\"; ls \"$TMPDIR\"; pwd; echo $TIDELOCK_PLAN; echo new > a.txt";
        let said = world.run_in(&one, script).await;
        let root = one.sandbox.entrance().root;
        assert_eq!(
            said.text,
            format!("mine\n{}\n{}\n", root.display(), one.order.plan),
            "{name}"
        );
        assert_eq!(
            world.run_in(&other, "ls \"$TMPDIR\"; cat a.txt").await.text,
            "alpha\n"
        );
        if name == SandboxStrategy::Overlay {
            assert_eq!(root, world.workspace);
            let seen = world
                .run_in(
                    &one,
                    &format!(
                        "cd '{}' && find . -maxdepth 3 -type d | sort",
                        world.scratch.display()
                    ),
                )
                .await;
            let place = format!("./sandboxes/{}", one.order.plan);
            assert_eq!(
                seen.text,
                format!(".\n./sandboxes\n{place}\n{place}/objects\n{place}/tmp\n")
            );
        }
        assert_eq!(
            places.each_ref().map(|place| snapshot(place, &|_| false)),
            before,
            "{name}"
        );
        assert_eq!(one.capture().changes.len(), if is_open { 1 } else { 2 });
        assert_eq!(other.capture().changes, []);
        one.remove().await;
        other.remove().await;
    }
    assert_eq!(
        fs::read_to_string(world.workspace.join("a.txt")).unwrap(),
        "alpha\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ignored_is_warm_and_private() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    let Some(strategy) = world.strategy(SandboxStrategy::Overlay) else {
        return;
    };
    let subject = world.open(strategy, &taken).await;
    let script = "cat target/debug/out .env; echo mine > target/debug/out; echo mine > .env; rm -rf target/* ; echo two > target/two";
    assert_eq!(world.run_in(&subject, script).await.text, "built\nsecret\n");
    assert_eq!(
        fs::read_to_string(world.workspace.join("target/debug/out")).unwrap(),
        "built\n"
    );
    assert_eq!(
        fs::read_to_string(world.workspace.join(".env")).unwrap(),
        "secret\n"
    );
    // The user may clean up meanwhile.
    fs::remove_dir_all(world.workspace.join("target")).unwrap();
    let subject = subject.reopen().await;
    assert_eq!(
        world.run_in(&subject, "ls target; cat .env").await.text,
        "two\nmine\n"
    );
    assert_eq!(subject.capture(), plans::Captured::default());
    subject.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_writes_where_the_actor_reads() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    for name in ALL {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let mut subject = world.open(strategy, &taken).await;
        let tree = subject.sandbox.tree();
        tree.write(&path("dir/one.txt"), b"new\n".as_slice(), 0o644)
            .unwrap();
        tree.remove(&path("b.txt")).unwrap();
        assert_eq!(
            world
                .run_in(&subject, "cat dir/one.txt; ls b.txt 2>/dev/null")
                .await
                .text,
            "new\n"
        );
        let captured = subject.capture();
        let found: Vec<String> = captured
            .changes
            .iter()
            .map(crate::sandbox_support::shown)
            .collect();
        assert_eq!(
            found,
            ["delete b.txt: beta -> -", "modify dir/one.txt: one -> new"],
            "{name}"
        );
        subject.record(&captured.changes);
        assert_eq!(subject.real_entries(), subject.known_entries());
        subject.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_goes_away_whatever_is_in_it() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    for name in ALL {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let subject = world.open(strategy.clone(), &taken).await;
        // Deeper than anybody can name in one go.
        let deep = "n=$(printf '%0200d' 0); d=$n; for i in $(seq 14); do d=$d/$n; done
            mkdir -p one/$d two/$d && mv two one/$d/";
        let said = world.run_in(&subject, deep).await;
        assert_eq!(said.exit, Exit::Code(0), "{name}: {}", said.text);
        // All of it, by the directory that holds nothing else: half of the way to it would be of no use.
        let captured = subject.capture();
        assert_eq!(captured.changes, [], "{name}");
        assert_eq!(
            captured.left_out,
            [LeftOut::at(&path("one"), WhyLeftOut::TooLong)],
            "{name}"
        );
        let script = "mkdir -p locked/in; echo x > locked/in/x; chmod 500 locked/in; chmod 000 locked; echo x > \"$TMPDIR/x\"";
        assert_eq!(world.run_in(&subject, script).await.exit, Exit::Code(0));
        let order = subject.order.clone();
        assert!(subject.remove().await > 0);
        assert_eq!(
            strategy.remove(&order).await.unwrap(),
            0,
            "{name}: what is not there is no error"
        );

        // One that cannot be made leaves nothing.
        let mut order = world.order(&taken);
        order.base = plans::Base::outside(taken.base.manifest.clone(), world.scratch.join("nowhere"));
        if name == SandboxStrategy::Overlay {
            strategy.create(&order).await.unwrap();
            assert!(matches!(strategy.open(&order).await, Err(SandboxError::View(_))));
            strategy.remove(&order).await.unwrap();
        } else {
            assert!(matches!(
                strategy.create(&order).await,
                Err(SandboxError::Io { .. })
            ));
        }
        assert!(!order.directory.exists(), "{name}");
        // A sandbox of the directory that holds all sandboxes would hold itself.
        let mut order = world.order(&taken);
        order.workspace = world.scratch.parent().unwrap().to_owned();
        assert!(
            matches!(strategy.create(&order).await, Err(SandboxError::Io { .. })),
            "{name}"
        );
    }
    assert_eq!(
        world.shell("git worktree list | wc -l; git branch").await,
        "1\n* main\n"
    );
    assert_eq!(world.processes.count(), 0);
}
