//! Commits of just the paths that were landed, in real repositories.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use plans::{Author, GitCommitError, RelPath, commit_paths};
use tempfile::TempDir;

use crate::landing_kit::path;

struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(TempDir::with_prefix("tidelock-git-").unwrap());
        repository.git(&["init", "-q", "-b", "main"]);
        for (key, value) in [("user.name", "A User"), ("user.email", "user@example.org")] {
            repository.git(&["config", key, value]);
        }
        repository
    }

    /// With one commit that has some files.
    fn begun() -> Self {
        let repository = Self::new();
        for name in [
            "edit",
            "gone",
            "mode",
            "staged",
            "other",
            "becomes-dir",
            "dir/inner",
        ] {
            repository.write(name, "old\n");
        }
        repository.git(&["add", "-A"]);
        repository.git(&["commit", "-q", "-m", "begin"]);
        repository
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: &str) {
        let at = self.root().join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, content).unwrap();
    }

    fn try_git(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.root())
            .args(arguments)
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap().trim_end().to_owned(),
        )
    }

    fn git(&self, arguments: &[&str]) -> String {
        let (good, said) = self.try_git(arguments);
        assert!(good, "git {arguments:?}");
        said
    }

    fn commit(&self, names: &[&str]) -> Result<plans::GitCommit, GitCommitError> {
        let paths: Vec<RelPath> = names.iter().map(|name| path(name)).collect();
        commit_paths(self.root(), &paths, "landed\n\nby a plan", None)
    }
}

#[test]
fn only_the_paths_are_committed_and_what_is_staged_stays_staged() {
    let repository = Repository::begun();
    // What the user is doing: one thing staged, one only written, one that is new.
    repository.write("staged", "staged by the user\n");
    repository.git(&["add", "staged"]);
    repository.write("other", "written by the user\n");
    repository.write("untracked", "mine\n");
    // A hook that refuses everything is not asked.
    let hook = repository.root().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    // What was landed.
    repository.write("edit", "new\n");
    fs::remove_file(repository.root().join("gone")).unwrap();
    fs::set_permissions(repository.root().join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(repository.root().join("becomes-dir")).unwrap();
    repository.write("becomes-dir/inner", "new\n");
    fs::remove_dir_all(repository.root().join("dir")).unwrap();
    symlink("nowhere", repository.root().join("dir")).unwrap();
    repository.write("new/deep", "new\n");
    let names = [
        "edit",
        "gone",
        "mode",
        "becomes-dir",
        "becomes-dir/inner",
        "dir",
        "dir/inner",
        "new",
        "new/deep",
    ];
    let made = repository.commit(&names).unwrap();
    assert_eq!((made.still_staged.len(), made.index_left), (0, None));
    assert_eq!(repository.git(&["rev-parse", "main"]), made.id);
    let shown = repository.git(&[
        "show",
        "--no-renames",
        "--format=%an %s|%b",
        "--raw",
        "--abbrev=4",
        "HEAD",
    ]);
    let mut lines = shown.lines().map(|line| {
        let mut words = line.split_whitespace();
        match line.strip_prefix(':') {
            Some(_) => format!(
                "{} {}",
                words
                    .next_back()
                    .map_or("", |_| line.split_whitespace().nth(4).unwrap()),
                line.split('\t').nth(1).unwrap()
            ),
            None => line.to_owned(),
        }
    });
    assert_eq!(lines.next().unwrap(), "A User landed|by a plan");
    assert_eq!(
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [
            "D becomes-dir",
            "A becomes-dir/inner",
            "A dir",
            "D dir/inner",
            "M edit",
            "D gone",
            "M mode",
            "A new/deep"
        ]
    );
    assert_eq!(
        repository.git(&["status", "--porcelain"]),
        " M other\nM  staged\n?? untracked"
    );
    let leftover = fs::read_dir(repository.root().join(".git")).unwrap();
    let leftover = leftover.map(|item| item.unwrap().file_name().into_string().unwrap());
    assert_eq!(leftover.filter(|name| name.contains("tidelock")).count(), 0);
}

#[test]
fn what_is_staged_of_the_same_path_is_left_and_said() {
    let repository = Repository::begun();
    repository.write("edit", "staged by the user\n");
    repository.write("intended", "draft\n");
    repository.git(&["add", "edit"]);
    repository.git(&["add", "-N", "intended"]);
    repository.write("edit", "landed\n");
    let made = repository.commit(&["edit"]).unwrap();
    assert_eq!(made.still_staged, [path("edit")]);
    assert_eq!(repository.git(&["show", "HEAD:edit"]), "landed");
    assert_eq!(repository.git(&["show", ":edit"]), "staged by the user");
    assert_eq!(repository.git(&["status", "--porcelain"]), "MM edit\n A intended");
    // Staged as it was landed: nothing is left to be said.
    repository.write("gone", "landed\n");
    repository.git(&["add", "gone"]);
    let made = repository.commit(&["gone"]).unwrap();
    assert_eq!(made.still_staged, []);
    assert_eq!(repository.git(&["status", "--porcelain"]), "MM edit\n A intended");
}

#[test]
fn it_works_on_any_head_and_with_any_author() {
    let author = Author {
        name: "An Agent".to_owned(),
        email: "agent@example.org".to_owned(),
    };
    // A branch without a commit.
    let repository = Repository::new();
    repository.write("first", "new\n");
    repository.write("second", "new\n");
    let made = commit_paths(repository.root(), &[path("first")], "first", Some(&author)).unwrap();
    assert_eq!(repository.git(&["log", "--format=%H %an <%ae> %cn"]), {
        format!("{} An Agent <agent@example.org> A User", made.id)
    });
    assert_eq!(repository.git(&["ls-files"]), "first");
    // A HEAD that is detached.
    repository.git(&["checkout", "-q", "--detach"]);
    let second = repository.commit(&["second"]).unwrap();
    assert_eq!(repository.git(&["rev-parse", "HEAD"]), second.id);
    assert_eq!(repository.git(&["rev-parse", "main"]), made.id);
    assert!(!repository.try_git(&["symbolic-ref", "-q", "HEAD"]).0);
    // A working tree beside.
    repository.git(&["worktree", "add", "-q", "beside", "-b", "side", "main"]);
    let beside = repository.root().join("beside");
    fs::write(beside.join("third"), "new\n").unwrap();
    let third = commit_paths(&beside, &[path("third")], "third", None).unwrap();
    assert_eq!(repository.git(&["rev-parse", "side"]), third.id);
    assert_eq!(repository.git(&["rev-parse", "main"]), made.id);
}

#[test]
fn what_cannot_be_committed_is_refused_and_nothing_changes() {
    type Arrange = fn(&Repository);
    let cases: [(Arrange, &str); 5] = [
        (|_| {}, "there is nothing to commit"),
        (
            |repository| {
                repository.git(&["checkout", "-q", "-b", "side"]);
                repository.write("edit", "side\n");
                repository.git(&["commit", "-q", "-am", "side"]);
                repository.git(&["checkout", "-q", "main"]);
                repository.write("edit", "main\n");
                repository.git(&["commit", "-q", "-am", "main"]);
                assert!(!repository.try_git(&["merge", "-q", "side"]).0);
            },
            "the repository is in the middle of a merge; finish or abort it first",
        ),
        (
            |repository| {
                fs::create_dir(repository.root().join(".git/rebase-merge")).unwrap();
            },
            "the repository is in the middle of a rebase; finish or abort it first",
        ),
        (
            |repository| {
                repository.write("edit", "new\n");
                fs::write(repository.root().join(".git/refs/heads/main.lock"), "").unwrap();
            },
            "git update-ref failed",
        ),
        (
            |repository| fs::remove_dir_all(repository.root().join(".git")).unwrap(),
            "is not the top of a git working tree",
        ),
    ];
    for (arrange, expected) in cases {
        let repository = Repository::begun();
        arrange(&repository);
        let state = |repository: &Repository| {
            (
                repository.try_git(&["rev-parse", "HEAD"]),
                repository.try_git(&["status", "--porcelain"]),
            )
        };
        let before = state(&repository);
        let error = repository.commit(&["edit"]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(state(&repository), before, "{expected}");
    }
    let repository = Repository::begun();
    repository.write("dir/inner", "new\n");
    let below = commit_paths(&repository.root().join("dir"), &[path("inner")], "x", None);
    assert!(matches!(below, Err(GitCommitError::NotTheTop(_))), "{below:?}");
    let silent = commit_paths(repository.root(), &[path("dir/inner")], " \n", None);
    assert!(matches!(silent, Err(GitCommitError::NoMessage)), "{silent:?}");
}
