//! What people and agents work on.

use std::fs;

use context::StrategyError;

use super::sources_kit::Kit;

const HISTORY: &str = "git init -q .; \
    echo 1 > a.rs; echo 1 > b.rs; echo 1 > gone.rs; commit 'first files'; \
    echo 2 > a.rs; echo 2 > b.rs; echo 2 > gone.rs; commit 'parser: dates are read'; \
    mkdir -p 'd/ä b'; echo 1 > 'd/ä b/c.rs'; commit 'sockets'; \
    git rm -q gone.rs; commit 'one file less'";

#[tokio::test(flavor = "multi_thread")]
async fn the_history_is_found_by_words_and_by_focus() {
    let kit = Kit::new(HISTORY, &[]).await;
    let dates = [
        "a.rs: commit `parser: dates are read`",
        "b.rs: commit `parser: dates are read`",
    ];
    assert_eq!(kit.found("recent", "dates", &[]).await, dates);
    assert_eq!(
        kit.found("recent", "sockets", &[]).await,
        ["d/ä b/c.rs: commit `sockets`"]
    );
    let together = ["b.rs: changed together with the focus in 2 of 2 commits"];
    assert_eq!(kit.found("recent", "", &["a.rs"]).await, together);

    // Another commit is another history; uncommitted work is none.
    fs::write(kit.root.join("e.rs"), "new").unwrap();
    assert_eq!(kit.found("recent", "timers", &[]).await, [] as [&str; 0]);
    kit.sh("commit 'timers'");
    assert_eq!(
        kit.found("recent", "timers", &[]).await,
        ["e.rs: commit `timers`"]
    );
    assert_eq!(kit.processes.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_read_once() {
    let kit = Kit::new(HISTORY, &[]).await;
    let first = kit.found("recent", "dates", &[]).await;
    // Without its objects git could say nothing.
    fs::rename(kit.root.join(".git/objects"), kit.root.join(".git/hidden")).unwrap();
    assert_eq!(kit.found("recent", "dates", &[]).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_a_repository_and_a_work_tree_have_its_history() {
    let script = format!("{HISTORY}; git worktree add -q ../other; git pack-refs --all");
    let mut kit = Kit::new(&script, &[]).await;
    let root = kit.root.clone();
    kit.root = root.join("d");
    assert_eq!(
        kit.found("recent", "sockets", &[]).await,
        ["ä b/c.rs: commit `sockets`"]
    );
    kit.root = root.parent().unwrap().join("other");
    assert_eq!(
        kit.found("recent", "sockets", &[]).await,
        ["d/ä b/c.rs: commit `sockets`"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_found_with_a_history_and_without() {
    let kit = Kit::new("echo 1 > a.rs", &[]).await;
    kit.open(&[("Dates", &["a.rs", "made-in-the-plan.rs"])]);
    assert_eq!(
        kit.found("recent", "dates", &[]).await,
        ["a.rs: plan p1 is changing it: Dates"]
    );
    kit.sh(HISTORY);
    let found = [
        "a.rs: plan p1 is changing it: Dates",
        "b.rs: commit `parser: dates are read`",
    ];
    assert_eq!(kit.found("recent", "dates", &[]).await, found);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_said() {
    let cases = [
        ("true", "the tree is in no repository"),
        ("git init -q .", "the repository has no commit"),
        (
            "git init -q .; echo 1 > a; commit a; rm -r .git/objects/*",
            "git cannot read the history (exit code 128): ",
        ),
    ];
    for (script, why) in cases {
        let kit = Kit::new("true", &[]).await;
        kit.sh(script);
        match kit.ask("recent", "a", &[]).await {
            Err(StrategyError::NotApplicable(found)) => assert!(found.starts_with(why), "{script}: {found}"),
            other => panic!("{script}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_decides_nothing() {
    let kit = Kit::new(HISTORY, &[]).await;
    // A commit that claims to be signed, so that git would ask somebody whether it is.
    let signed = "tree=$(git rev-parse HEAD^{tree}); parent=$(git rev-parse HEAD); \
        printf 'tree %s\\nparent %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned dates\\n' $tree $parent \
        > ../signed; git update-ref HEAD $(git hash-object -t commit -w ../signed)";
    kit.sh(signed);
    let marks = "echo '#!/bin/sh\ntouch ../seen' > ../evil; chmod +x ../evil; evil=$(cd .. && pwd)/evil; \
        git config log.showSignature true; git config gpg.program $evil; git config core.fsmonitor $evil; \
        git config core.pager $evil; git config pager.log true; git config diff.external $evil; \
        git config core.sshCommand $evil; git config diff.orderFile /nowhere; git config log.follow true; \
        git config log.diffMerges on; git config diff.x.textconv $evil; echo '* diff=x' > .gitattributes; \
        git config extensions.partialClone origin; git config remote.origin.url ext::$evil; \
        git config protocol.ext.allow always; mkdir -p .git/hooks; cp ../evil .git/hooks/post-index-change";
    kit.sh(marks);
    let found = kit.found("recent", "dates", &[]).await;
    assert_eq!(found[0], "a.rs: commit `parser: dates are read`", "{found:?}");
    // What is missing is not fetched.
    kit.sh("git config core.repositoryFormatVersion 1; git update-ref HEAD HEAD~1; rm -f .git/objects/*/*");
    assert!(kit.ask("recent", "dates", &[]).await.is_err());
    assert!(!kit.root.parent().unwrap().join("seen").exists());
    assert_eq!(kit.processes.count(), 0);
}
