//! Large trees: an `exec` does what has changed and not what there is, sees every change, and memory goes back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::harness::wait_for;
use crate::plan_stage::Project;

/// Files in directories of twenty, all of them committed.
fn large(files: usize) -> Project {
    let project = Project::new(&[("d0/f0", "")]);
    for number in 0..files {
        let directory = project
            .root
            .join(format!("d{}", number / 400))
            .join(format!("e{}", number / 20));
        if number % 20 == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        fs::write(directory.join(format!("f{number}")), format!("{number}\n")).unwrap();
    }
    project.and_git()
}

/// How much time of a processor the daemon has used so far.
fn processor_time(project: &Project) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", project.world.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// The memory of the daemon that is no file's, in kibibytes.
fn memory_kib(project: &Project) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", project.world.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn what_was_changed_a_moment_ago_is_in_the_sandbox_and_a_large_tree_is_looked_at_only_then() {
    let project = large(10_000);
    project.run(&["exec", "--", "true"]).expect(0);
    let spent = |work: &dyn Fn()| {
        let before = processor_time(&project);
        work();
        processor_time(&project) - before
    };
    let unchanged = || drop(project.run(&["exec", "--", "true"]).expect(0));
    let unchanged: Duration = (0..3).map(|_| spent(&unchanged)).sum();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path), &'a str, &'a str);
    let changes: [Change<'_>; 5] = [
        (
            "a write",
            &|root| fs::write(root.join("d0/f0"), "one\n").unwrap(),
            "cat d0/f0",
            "one\n",
        ),
        (
            "a write of the same length",
            &|root| fs::write(root.join("d0/f0"), "two\n").unwrap(),
            "cat d0/f0",
            "two\n",
        ),
        (
            "a new directory",
            &|root| {
                fs::create_dir_all(root.join("d3/new/deep")).unwrap();
                fs::write(root.join("d3/new/deep/f"), "three\n").unwrap();
            },
            "cat d3/new/deep/f",
            "three\n",
        ),
        (
            "a write into it",
            &|root| fs::write(root.join("d3/new/deep/f"), "four\n").unwrap(),
            "cat d3/new/deep/f",
            "four\n",
        ),
        (
            "a removal",
            &|root| fs::remove_dir_all(root.join("d3/new")).unwrap(),
            "ls d3 | grep -c new || true",
            "0\n",
        ),
    ];
    let mut changed = Duration::ZERO;
    for (name, change, line, expected) in changes {
        change(&project.root);
        changed += spent(&|| {
            let seen = project.run(&["exec", "--", "sh", "-c", line]).expect(0);
            assert_eq!(seen.stdout, expected, "{name}");
        });
        project.run(&["exec", "--", "true"]).expect(0);
    }
    let (unchanged, changed) = (unchanged / 3, changed / 5);
    assert!(
        unchanged * 2 < changed,
        "{unchanged:?} with nothing changed, {changed:?} with a change"
    );
}

#[test]
fn memory_goes_back_after_a_large_tree() {
    const FILES: usize = 20_000;
    // The manifest of the workspace stays for a while, with some 200 bytes for each file. A scan takes many times that.
    const KEPT_KIB: u64 = FILES as u64 * 500 / 1024;
    let project = large(FILES);
    project.run(&["up"]).expect(0);
    let idle = memory_kib(&project);
    for round in 0..4 {
        project.run(&["exec", "--", "true"]).expect(0);
        fs::write(project.root.join("d0/f0"), format!("{round}\n")).unwrap();
    }
    project.run(&["exec", "--", "true"]).expect(0);
    wait_for("the memory to go back", || memory_kib(&project) < idle + KEPT_KIB);
}
