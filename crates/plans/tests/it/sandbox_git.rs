//! Git inside of sandboxes, and the user's repository that must not move.

use std::path::Path;

use plans::{LeftOut, WhyLeftOut};
use process::Exit;
use protocol::{PlanBranch, SandboxStrategy};

use crate::sandbox_support::{ALL, Said, Subject, WORKSPACE, World, path, snapshot};

/// What a user's repository has: branches, a tag, a stash, hooks, settings, staged and unstaged changes, and a merge that
/// is not finished would be one more.
const USED: &str = r#"
git branch side; git tag v1; git config alias.x status; git config core.worktree "$PWD"
printf 'stashed\n' > b.txt; git stash push -q; git pack-refs --all; git branch loose
printf '#!/bin/sh\nexit 0\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
ln -s ../../run.sh .git/hooks/pre-push
printf 'staged\n' > run.sh; git add run.sh; printf 'unstaged\n' > b.txt; printf 'new\n' > new.txt
git update-index -q --refresh || true
"#;

const LOOK: &str =
    "git status --porcelain && git log --format=%s && git stash list && git branch && git diff";

async fn used_world() -> World {
    let world = World::of(WORKSPACE).await;
    world.shell(USED).await;
    world
}

async fn done(world: &World, subject: &Subject, script: &str) -> String {
    let Said { exit, text } = world.run_in(subject, &format!("set -e\n{script}")).await;
    assert_eq!(
        exit,
        Exit::Code(0),
        "{}: {script}: {text}",
        subject.strategy.name()
    );
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn git_works_in_a_private_directory() {
    let world = used_world().await;
    let (taken, looked) = (world.take(), world.shell(LOOK).await);
    let git = world.workspace.join(".git");
    let before = snapshot(&git, &|_| false);
    for name in [SandboxStrategy::Overlay, SandboxStrategy::Copy] {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let subject = world.open(strategy, &taken).await;
        assert_eq!(
            subject.sandbox.remarks().len(),
            usize::from(name == SandboxStrategy::Copy)
        );
        assert_eq!(done(&world, &subject, LOOK).await, looked, "{name}");
        // Git believes the stat, and does not read every file again: what has the old stat is not looked at.
        let forged = "cp -p a.txt \"$TMPDIR/a\"; printf 'ALPHA\\n' > a.txt; touch -r \"$TMPDIR/a\" a.txt";
        let status = "git status --porcelain a.txt; cp -p \"$TMPDIR/a\" a.txt";
        assert_eq!(
            done(&world, &subject, &format!("{forged}; {status}")).await,
            "",
            "{name}"
        );
        let script = "git add -A; git commit -q -m inside; git branch other; git tag v2; git tag -d v1 >&2
            git checkout -q -b feature; echo more >> a.txt; git stash -q; git stash pop -q; git stash drop -q
            git config alias.y log; git update-ref refs/heads/main HEAD; git branch -q -D side loose
            echo 'exit 1' > .git/hooks/pre-commit; git reset -q --hard; git gc -q --prune=now; git fsck --no-dangling
            git log --format=%s main; git stash list; git branch --list";
        assert_eq!(
            done(&world, &subject, &format!("({script}) 2>/dev/null")).await,
            "inside\nfirst\n* feature\n  main\n  other\n",
            "{name}"
        );
        // What was committed inside is there for the next daemon. What is carried is files.
        let subject = subject.reopen().await;
        assert_eq!(
            done(&world, &subject, "git log --format=%s").await,
            "inside\nfirst\n"
        );
        assert_eq!(subject.capture().changes, []);
        subject.remove().await;
        assert_eq!(snapshot(&git, &|_| false), before, "{name}");
    }
    assert_eq!(world.shell(LOOK).await, looked);
}

/// What is the worktree's own, or shared by all.
fn is_of_worktrees(path: &Path) -> bool {
    let places = [
        "objects",
        "worktrees",
        "refs/heads/tidelock",
        "logs/refs/heads/tidelock",
    ];
    places.iter().any(|place| path.starts_with(place))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worktree_looks_and_moves_nothing() {
    let world = World::of(WORKSPACE).await;
    world
        .shell(&USED.replace("git config core.worktree \"$PWD\"", ""))
        .await;
    let (taken, looked) = (world.take(), world.shell(LOOK).await);
    let git = world.workspace.join(".git");
    let before = snapshot(&git, &|_| false);
    let shared = snapshot(&git, &is_of_worktrees);
    let Some(strategy) = world.strategy(SandboxStrategy::GitWorktree) else {
        return;
    };
    for script in ["true", "git log --oneline && git diff --stat"] {
        let subject = world.open(strategy.clone(), &taken).await;
        let status = "git status --porcelain";
        assert_eq!(done(&world, &subject, status).await, world.shell(status).await);
        done(&world, &subject, script).await;
        for refused in [
            "git commit -q -m inside",
            "echo x > new.txt; git add new.txt",
            "rm -rf \"$WORKSPACE/.git/objects\"",
            "git branch other",
            "git tag v2",
            "git stash",
            "git config alias.y log",
            "git update-ref refs/heads/main HEAD~1",
            "git update-ref -d refs/heads/side",
            "git branch -D loose",
            "git pack-refs --all",
            "echo 'exit 1' > \"$WORKSPACE/.git/hooks/pre-commit\"",
            "echo x > \"$WORKSPACE/.git/index\"",
            "rm \"$WORKSPACE/.git/HEAD\"",
            "echo x > \"$WORKSPACE/a.txt\"",
        ] {
            let said = world.run_in(&subject, refused).await;
            assert_ne!(said.exit, Exit::Code(0), "{refused}: {}", said.text);
        }
        assert_eq!(snapshot(&git, &is_of_worktrees), shared);
        let subject = subject.reopen().await;
        assert_eq!(done(&world, &subject, "git log --format=%s").await, "first\n");
        subject.remove().await;
        assert_eq!(snapshot(&git, &|_| false), before, "{script}");
    }
    assert_eq!(world.shell(LOOK).await, looked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_may_be_a_linked_worktree_or_a_submodule() {
    for (make, place) in [
        ("git worktree add -q -b linked ../linked", "../linked"),
        (
            "git init -q ../super; cd ../super; git -c protocol.file.allow=always submodule --quiet add '../work space' sub
            git commit -q -m super",
            "../super/sub",
        ),
    ] {
        let mut world = World::of(WORKSPACE).await;
        world.shell(make).await;
        let common = world.workspace.parent().unwrap().to_owned();
        world.workspace = world.workspace.join(place).canonicalize().unwrap();
        let taken = world.take();
        let is_ours = |path: &Path| path.starts_with("data") || path.to_string_lossy().contains("objects") || path.to_string_lossy().contains("log.sqlite");
        let before = snapshot(&common, &is_ours);
        for name in ALL {
            let Some(strategy) = world.strategy(name) else { continue };
            let mut subject = world.open(strategy, &taken).await;
            let script = "git status --porcelain; echo new > a.txt; git commit -q -a -m inside 2>/dev/null || true; git log --format=%s -1";
            // In a worktree the objects are the user's, and nothing is committed.
            let last = if name == SandboxStrategy::GitWorktree { "first\n" } else { "inside\n" };
            assert_eq!(done(&world, &subject, script).await, last, "{name}");
            let captured = subject.capture();
            assert_eq!(captured.changes.len(), 1, "{captured:?}");
            subject.record(&captured.changes);
            assert_eq!(subject.real_entries(), subject.known_entries());
            subject.remove().await;
            let after = snapshot(&common, &is_ours);
            let differs: Vec<_> = after.iter().filter(|(path, one)| before.get(*path) != Some(one)).collect();
            assert_eq!(differs, [], "{name}: {make}");
            assert_eq!(after.len(), before.len(), "{name}: {make}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_repository_is_seen_and_not_carried() {
    let world = World::of(WORKSPACE).await;
    world
        .shell("git init -q nested; cd nested; echo one > x; git add x; git commit -q -m nested")
        .await;
    let taken = world.take();
    let nested = world.workspace.join("nested");
    let before = snapshot(&nested, &|_| false);
    let Some(strategy) = world.strategy(SandboxStrategy::Overlay) else {
        return;
    };
    let subject = world.open(strategy, &taken).await;
    assert_eq!(
        done(&world, &subject, "cat nested/x; git -C nested status --porcelain").await,
        "one\n"
    );
    assert_eq!(subject.capture().left_out, []);
    done(
        &world,
        &subject,
        "echo two > nested/x; git -C nested commit -q -a -m inside; echo new > new.txt",
    )
    .await;
    let captured = subject.capture();
    let expected = LeftOut::at(&path("nested"), WhyLeftOut::ChangedRepository);
    assert_eq!((captured.changes.len(), captured.left_out), (1, vec![expected]));
    subject.remove().await;
    assert_eq!(snapshot(&nested, &|_| false), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submodule_works_inside() {
    let world = World::of(WORKSPACE).await;
    world
        .shell(
            "git init -q ../lib; cd ../lib; echo one > x; git add x; git commit -q -m lib; cd '../work space'
            git -c protocol.file.allow=always submodule --quiet add ../lib nested; git commit -q -m sub",
        )
        .await;
    let taken = world.take();
    let git = world.workspace.join(".git");
    let before = snapshot(&git, &|_| false);
    let Some(strategy) = world.strategy(SandboxStrategy::Overlay) else {
        return;
    };
    let subject = world.open(strategy, &taken).await;
    assert_eq!(
        done(&world, &subject, "git status --porcelain; cat nested/x").await,
        "one\n"
    );
    let script = "cd nested; echo two > x; git commit -q -a -m inside; cd ..; git status --porcelain";
    assert_eq!(done(&world, &subject, script).await, " M nested\n");
    subject.remove().await;
    assert_eq!(snapshot(&git, &|_| false), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_in_a_reftable_are_copied_too() {
    let world = World::bare(
        "git init -q -b main --ref-format=reftable; echo alpha > a.txt; git add -A; git commit -q -m first; git branch other",
    )
    .await;
    let taken = world.take();
    let git = world.workspace.join(".git");
    let before = snapshot(&git, &|_| false);
    for name in [SandboxStrategy::Overlay, SandboxStrategy::Copy] {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let subject = world.open(strategy, &taken).await;
        assert_eq!(subject.sandbox.remarks(), [""; 0]);
        let script = "git status --porcelain; git branch --format '%(refname:short)'; echo new > a.txt
            git commit -q -a -m inside; git log --format=%s -1; git branch made; git pack-refs --all";
        assert_eq!(
            done(&world, &subject, script).await,
            "main\nother\ninside\n",
            "{name}"
        );
        let captured = subject.capture();
        assert_eq!(captured.changes.len(), 1);
        assert_eq!((captured.branches[0].commits, captured.branches.len()), (1, 1));
        subject.remove().await;
    }
    assert_eq!(snapshot(&git, &|_| false), before);
    // A linked work tree has a table of its own beside that one.
    let mut linked = world;
    linked.shell("git worktree add -q ../linked").await;
    linked.workspace = linked.workspace.join("../linked").canonicalize().unwrap();
    let taken = linked.take();
    for name in [SandboxStrategy::Overlay, SandboxStrategy::Copy] {
        let Some(strategy) = linked.strategy(name) else {
            continue;
        };
        let subject = linked.open(strategy, &taken).await;
        assert!(subject.sandbox.remarks()[0].starts_with("there is no git inside: "));
        subject.remove().await;
    }
    let world = linked;
    let refused = world
        .strategies
        .pick(Some(SandboxStrategy::GitWorktree), &world.workspace);
    assert_eq!(
        refused
            .map(|strategy| strategy.name())
            .map_err(|error| error.to_string()),
        Err(
            "the strategy git-worktree does not work here: the repository keeps its branches in a reftable"
                .to_owned()
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_and_branches_made_inside_are_told() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    let branch = |name: &str, subjects: &[&str]| PlanBranch {
        name: name.to_owned(),
        commits: subjects.len() as u64,
        subjects: subjects.iter().map(|&subject| subject.to_owned()).collect(),
    };
    for name in [SandboxStrategy::Overlay, SandboxStrategy::Copy] {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let subject = world.open(strategy, &taken).await;
        done(&world, &subject, "git status --porcelain").await;
        assert_eq!(subject.capture().branches, [], "{name}");
        let script = "git checkout -q -b topic/one; echo 1 > a.txt; git commit -q -a -m 'First thing'
            echo 2 > a.txt; git commit -q -a -m 'Second thing'; git commit -q --amend -m 'Second thing, again'
            git branch plain main; git checkout -q main; git commit -q --allow-empty -m gone; git reset -q --hard HEAD~1";
        done(&world, &subject, script).await;
        let expected = [
            branch("plain", &[]),
            branch("topic/one", &["Second thing, again", "First thing"]),
        ];
        assert_eq!(subject.capture().branches, expected, "{name}");
        // Whatever its actor makes of it, nothing is waited for or followed.
        done(
            &world,
            &subject,
            "rm .git/refs/heads/topic/one; mkfifo .git/refs/heads/topic/one; ln -sf /dev/zero .git/logs/refs/heads/plain",
        )
        .await;
        assert_eq!(subject.capture().branches, [], "{name}");
        subject.remove().await;
    }
}

/// A branch that nobody has checked out is in no reflog, so nothing else keeps its commits.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_sandbox_needs_of_the_repository_outlives_a_collection() {
    let world = World::of(WORKSPACE).await;
    let make = "tree=$(git write-tree); for name in one two; do \
        git branch $name $(git -c user.name=a -c user.email=a@b commit-tree -m $name $tree); done; git pack-refs --all";
    world.shell(make).await;
    let taken = world.take();
    let git = world.workspace.join(".git");
    for name in [SandboxStrategy::Overlay, SandboxStrategy::Copy] {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let subject = world.open(strategy, &taken).await;
        let tips = world.shell("git rev-parse one two").await;
        world
            .shell("git branch -q -D one two; git reflog expire --expire=now --all; git gc -q --prune=now")
            .await;
        let look = "git log --format=%s one; git log --format=%s two; git fsck --no-dangling 2>&1";
        assert_eq!(done(&world, &subject, look).await, "one\ntwo\n", "{name}");
        let kept = world
            .shell("git for-each-ref --format='%(refname)' refs/tidelock")
            .await;
        assert_ne!(kept, "", "{name}: the collection has packed them");
        subject.remove().await;
        let left = world
            .shell("git for-each-ref --format='%(refname)' refs/tidelock")
            .await;
        assert_eq!(
            (left.as_str(), git.join("refs/tidelock").exists()),
            ("", false),
            "{name}"
        );
        assert!(!git.join("packed-refs.lock").exists());
        let (one, two) = tips.trim().split_once('\n').unwrap();
        let again = format!(
            "git branch one {one}; git branch two {two}; git fsck --no-dangling; git pack-refs --all"
        );
        world.shell(&again).await;
    }
}
