//! Nothing is left of an index that is closed.

use std::fs;

use super::{Site, check, up_to_date, wait_for};
use context::IndexState;

/// The descriptors that are open, and the threads of ours, leaving out those that the runtime keeps for later.
fn held() -> (usize, Vec<String>) {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let mut ours: Vec<String> = names
        .filter(|name| name.starts_with("index") || name.starts_with("notify"))
        .collect();
    ours.sort();
    (descriptors, ours)
}

#[tokio::test]
async fn no_task_thread_or_file_is_left() {
    let site = Site::new();
    for number in 0..400 {
        site.write(
            &format!("{number}.rs"),
            format!("fn needle_{number}() {{}}\n").repeat(50),
        );
    }
    // The clock of everybody has a thread of its own, which stays.
    super::patience();
    let before = held();
    for round in 0..4 {
        let index = site.open();
        match round {
            // Closed at once, closed while it builds, closed when it was used.
            0 => {}
            1 => {
                wait_for(&index, |state| {
                    !matches!(state, IndexState::Building { files: 0 })
                })
                .await
            }
            _ => check(&up_to_date(&index).await, &site.root(), &["needle_7"]),
        }
        site.close(index).await;
        let began = std::time::Instant::now();
        // The thread of a watch ends a moment after it was told to.
        while site.tasks.running() > 0 || held() != before {
            let now = (site.tasks.running(), held());
            assert!(
                began.elapsed() < super::PATIENCE,
                "round {round}: {now:?} is left, before: {before:?}"
            );
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(fs::read_dir(site.scratch.path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn an_index_that_is_dropped_is_closed() {
    let site = Site::new();
    site.write("a.txt", "needle");
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    drop(index);
    site.tasks.finished().await;
}
