//! An index follows its tree, whatever happens to it.

use std::fs;
use std::time::Duration;

use context::IndexState;
use kernel::ManualClock;

use super::{PATIENCE, Site, check, known, up_to_date, wait_for};

#[tokio::test]
async fn a_change_is_there_after_the_next_question() {
    let site = Site::new();
    site.write("a/one.txt", "needle one");
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    for round in 0..30 {
        // The same length, within one tick of the clock.
        site.write("a/one.txt", format!("needle {round:03}"));
        site.write(
            &format!("b{}/deep/two.txt", round % 3),
            format!("other {round:03}"),
        );
        let (one, two) = (format!("needle {round:03}"), format!("other {round:03}"));
        check(&up_to_date(&index).await, &site.root(), &[&one, &two]);
    }
    site.close(index).await;
}

#[tokio::test]
async fn directories_come_and_go_whole() {
    let site = Site::new();
    for number in 0..20 {
        site.write(&format!("a/deep/{number}.txt"), format!("needle {number}"));
    }
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    let at = |name: &str| site.root().join(name);
    fs::rename(at("a"), at("b")).unwrap();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    site.write("b/deep/3.txt", "changed after the move");
    check(&up_to_date(&index).await, &site.root(), &["changed"]);
    // Another one of the same name, at once.
    fs::rename(at("b"), at("c")).unwrap();
    site.write("b/deep/new.txt", "fresh");
    check(&up_to_date(&index).await, &site.root(), &["fresh", "needle"]);
    fs::remove_dir_all(at("c")).unwrap();
    site.write("c", "a file in the place of a directory");
    check(&up_to_date(&index).await, &site.root(), &["in the place"]);
    fs::remove_file(at("c")).unwrap();
    site.write("c/file", "and back");
    check(&up_to_date(&index).await, &site.root(), &["and back"]);
    // Out of the tree.
    fs::rename(at("b"), site.data.path().join("outside")).unwrap();
    check(&up_to_date(&index).await, &site.root(), &["fresh"]);
    site.close(index).await;
}

#[tokio::test]
async fn what_is_ignored_may_change() {
    let site = Site::new();
    site.write("kept.txt", "needle");
    site.write("out/one.txt", "needle");
    site.write(".gitignore", "out/\n");
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    site.write(".gitignore", "kept.txt\n");
    let snapshot = up_to_date(&index).await;
    check(&snapshot, &site.root(), &["needle"]);
    assert_eq!(
        known(&snapshot).into_iter().collect::<Vec<_>>(),
        [".gitignore", "out/one.txt"]
    );
    // What was not ignored any more is followed now.
    site.write("out/one.txt", "changed");
    check(&up_to_date(&index).await, &site.root(), &["changed"]);
    fs::remove_file(site.root().join(".gitignore")).unwrap();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    site.close(index).await;
}

#[tokio::test]
async fn many_changes_become_segments_and_segments_become_few() {
    let site = Site::new();
    let index = site.open();
    up_to_date(&index).await;
    for round in 0..20 {
        for number in 0..20 {
            let text = format!("round {round} number {number} needle");
            site.write(&format!("{}/{number}.txt", round % 17), text);
        }
        check(
            &up_to_date(&index).await,
            &site.root(),
            &[&format!("round {round} ")],
        );
    }
    for round in 20..22 {
        for number in 0..300 {
            site.write(
                &format!("many/{number}.txt"),
                format!("round {round} number {number}"),
            );
        }
        check(
            &up_to_date(&index).await,
            &site.root(),
            &[&format!("round {round} ")],
        );
    }
    let segments = || {
        let entries = fs::read_dir(site.directory()).unwrap().flatten();
        entries
            .filter(|entry| entry.file_name().to_str().unwrap().ends_with(".segment"))
            .count()
    };
    let began = std::time::Instant::now();
    while !(1..=9).contains(&segments()) {
        assert!(began.elapsed() < PATIENCE, "there are {} segments", segments());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    check(&up_to_date(&index).await, &site.root(), &["needle", "round 21"]);
    site.close(index).await;
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle", "round 21"]);
    site.close(index).await;
}

#[tokio::test]
async fn a_tree_that_cannot_be_followed_is_compared() {
    let site = Site::new();
    site.write("a.txt", "needle");
    fs::remove_dir(site.scratch.path()).unwrap();
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    for round in 0..5 {
        site.write("a.txt", format!("round {round}"));
        check(&up_to_date(&index).await, &site.root(), &["round", "needle"]);
    }
    site.close(index).await;
}

#[tokio::test]
async fn a_tree_that_is_gone_is_a_failure_and_is_tried_again() {
    let mut site = Site::new();
    let clock = ManualClock::new();
    site.clock = clock.clone();
    for number in 0..50 {
        site.write(&format!("{number}.txt"), "needle");
    }
    let root = site.root();
    let index = site.open();
    check(&up_to_date(&index).await, &root, &["needle"]);
    fs::remove_dir_all(&root).unwrap();
    let scope = kernel::CancellationToken::new().scope();
    let began = std::time::Instant::now();
    while !matches!(*index.state().read().state, IndexState::Failed { .. }) {
        assert!(began.elapsed() < PATIENCE, "{:?}", index.info());
        // Nothing of a tree that is gone is shown.
        if let Some(snapshot) = index.up_to_date(super::patience(), &scope).await {
            assert_eq!(snapshot.len(), 0);
        }
        index.rebuild();
    }
    assert!(index.up_to_date(super::patience(), &scope).await.is_none());
    site.write("again.txt", "needle");
    clock.advance(Duration::from_secs(60));
    assert!(index.up_to_date(super::patience(), &scope).await.is_none());
    let waiting = wait_for(&index, |state| *state == IndexState::Ready);
    let (_, ()) = tokio::join!(index.up_to_date(super::patience(), &scope), waiting);
    check(&up_to_date(&index).await, &root, &["needle"]);
    site.close(index).await;
}

#[tokio::test]
async fn everything_can_be_made_anew() {
    let site = Site::new();
    site.write("a.txt", "needle");
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    index.rebuild();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    site.close(index).await;
}
