//! A process that builds an index is killed, and the next one goes on.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use context::{Index, IndexOptions};
use kernel::SystemClock;

use super::{PATIENCE, Site, check, up_to_date};

/// What tells this program that it is the one to be killed.
const CHILD: &str = "TIDELOCK_TEST_INDEX_CHILD";

/// Builds an index again and again until it is killed. It is no test, and does nothing if it is run as one.
#[tokio::test]
async fn the_one_that_is_killed() {
    let Some(base) = env::var_os(CHILD).map(PathBuf::from) else {
        return;
    };
    loop {
        let index = Index::open(IndexOptions {
            root: base.join("tree"),
            directory: base.join("index"),
            scratch: base.join("scratch"),
            limit_bytes: 1 << 30,
            tasks: process::Tasks::default(),
            clock: SystemClock::shared(),
        });
        up_to_date(&index).await;
        index.rebuild();
        up_to_date(&index).await;
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It is ours, and has no children.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn killed_at_any_moment_the_next_one_is_right() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| base.path().canonicalize().unwrap().join(name);
    for name in ["tree", "index", "scratch"] {
        fs::create_dir(at(name)).unwrap();
    }
    for number in 0..200 {
        let text = format!("fn needle_{number}() {{ other_{}(); }}\n", number % 7);
        fs::write(at("tree").join(format!("{number}.rs")), text.repeat(20)).unwrap();
    }
    for round in 0..5_u32 {
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "index::killed::the_one_that_is_killed"])
            .env(CHILD, at(""))
            .spawn();
        let child = Killed(child.unwrap());
        let began = Instant::now();
        // At other moments in every round: something is written, and so many times again.
        let mut seen = Vec::new();
        for _ in 0..=round {
            while listing(&at("index")) == seen {
                assert!(began.elapsed() < PATIENCE, "nothing is written");
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
            seen = listing(&at("index"));
        }
        drop(child);
        let site = Site::new();
        let index = Index::open(IndexOptions {
            root: at("tree"),
            directory: at("index"),
            scratch: at("scratch"),
            limit_bytes: 1 << 30,
            tasks: site.tasks.clone(),
            clock: SystemClock::shared(),
        });
        check(
            &up_to_date(&index).await,
            &at("tree"),
            &["needle_17()", "other_3"],
        );
        site.close(index).await;
        let rubbish = |name: &String| name.starts_with("new-");
        assert_eq!(listing(&at("index")).into_iter().find(rubbish), None);
    }
}

fn listing(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
