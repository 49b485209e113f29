//! Questions with known answers, from the history of this repository: a commit's message, and the files it touched.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::tasks::Task;

/// A commit that touches more files is about everything.
const MOST_FILES: usize = 8;
/// How many commits to go back.
const COMMITS: &str = "400";

/// A commit as a task, and the tree it was based on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Commit {
    /// The commit's message, and the files that it changed.
    pub(super) task: Task,
    /// The commit before it.
    pub(super) parent: String,
}

/// The newest commits that changed a few files; empty if this is not a checkout.
pub(super) fn commits(most: usize) -> Vec<Commit> {
    let arguments = [
        "log",
        "--no-merges",
        "-n",
        COMMITS,
        "--diff-filter=M",
        "--name-only",
        "--format=%x01%P%x00%s",
    ];
    let Ok(log) = git(&arguments) else {
        return Vec::new();
    };
    let commits = log.split('\u{1}').filter_map(read_commit);
    commits.take(most).collect()
}

fn read_commit(text: &str) -> Option<Commit> {
    let (head, files) = text.split_once('\n')?;
    let (parent, subject) = head.split_once('\0')?;
    let files: Vec<String> = files
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    let is_small = (1..=MOST_FILES).contains(&files.len());
    (is_small && !parent.is_empty() && !parent.contains(' ')).then(|| Commit {
        task: Task {
            query: subject.to_owned(),
            files,
        },
        parent: parent.to_owned(),
    })
}

pub(super) fn check_out(commit: &str, into: &Path) -> Result<()> {
    fs::create_dir_all(into)?;
    let mut archive = Command::new("git")
        .args(["archive", "--format=tar", commit])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run git")?;
    let tar = archive.stdout.take().context("git has no output")?;
    let unpacked = Command::new("tar")
        .arg("-x")
        .arg("-C")
        .arg(into)
        .stdin(tar)
        .status();
    let ended = archive.wait()?;
    ensure!(ended.success(), "git archive ended with {ended}");
    ensure!(unpacked.context("cannot run tar")?.success(), "tar failed");
    Ok(())
}

fn git(arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    ensure!(output.status.success(), "git ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Commit, Task, read_commit};

    #[test]
    fn small_commits_with_one_parent_are_tasks() {
        let expected = Commit {
            task: Task {
                query: "kernel: a slot".to_owned(),
                files: vec!["a.rs".to_owned(), "b.rs".to_owned()],
            },
            parent: "abc".to_owned(),
        };
        assert_eq!(read_commit("abc\0kernel: a slot\n\na.rs\nb.rs\n"), Some(expected));
        let many = format!("abc\0x\n\n{}", "a.rs\n".repeat(9));
        for other in [
            "",
            "abc\0x\n\n",
            "\0x\n\na.rs\n",
            "abc def\0x\n\na.rs\n",
            many.as_str(),
        ] {
            assert_eq!(read_commit(other), None, "{other:?}");
        }
    }
}
