//! Git inside a sandbox works, and leaves the user's branches, index, stash, hooks and settings as they are, byte for byte.

use crate::plan_escapes::STRATEGIES;
use crate::plan_fire::{Image, assert_same, image_but};
use crate::plan_stage::Project;

/// What git keeps for a worktree in the user's repository. Objects are only added.
const OF_WORKTREES: [&str; 4] = [
    "worktrees",
    "refs/heads/tidelock",
    "logs/refs/heads/tidelock",
    "objects",
];

/// What people and agents do with git.
const LINES: [&str; 14] = [
    "echo inside >> a.txt; git add a.txt; git commit -qm inside",
    "git checkout -qb topic; echo topic > topic.txt; git add topic.txt; git commit -qm topic",
    "git branch -f main HEAD",
    "git update-ref refs/heads/main HEAD",
    "git branch -D side",
    "git tag -f mark HEAD",
    "echo stash >> b.txt; git stash; git stash list; git stash drop; git stash clear",
    "git config user.name somebody; git config core.hooksPath /nowhere; git config alias.x '!echo x'",
    "mkdir -p .git/hooks; echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "G=$(git rev-parse --git-common-dir); echo 'exit 1' > $G/hooks/pre-commit; rm -f $G/hooks/post-commit",
    "git reset --hard HEAD~1; git rm -q --cached b.txt; git add -A",
    "git reflog expire --expire=now --all; git pack-refs --all",
    "git remote add elsewhere /nowhere; git worktree add ../another; git worktree prune",
    "git checkout -qf main; git merge topic; git rebase side; git cherry-pick side",
];

fn of_the_user(project: &Project, strategy: &str) -> Image {
    let left_out: &[&str] = if strategy == "git-worktree" {
        &OF_WORKTREES
    } else {
        &[]
    };
    let mut image = image_but(&project.root.join(".git"), left_out);
    if strategy == "git-worktree" {
        // A reference in a directory of its own makes the directories above it, if they are not there.
        image.retain(|path, _| !path.ends_with("refs/heads"));
    }
    image
}

#[test]
fn git_inside_leaves_the_users_repository_as_it_is() {
    for strategy in STRATEGIES {
        let project = Project::with_git(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
        // The user has something of everything.
        project.git(&["branch", "side"]);
        project.git(&["tag", "mark"]);
        project.write("b.txt", "stashed\n");
        project.git(&["stash"]);
        project.write("staged.txt", "staged\n");
        project.git(&["add", "staged.txt"]);
        project.write(".git/hooks/post-commit", "#!/bin/sh\n");
        project.git(&["config", "alias.mine", "status"]);
        let plan = project.open(&["--strategy", strategy]);
        let before = of_the_user(&project, strategy);
        let status = project.git(&["status", "--porcelain"]);
        let mut said = Vec::new();
        for line in LINES {
            let line = format!(
                "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a \
                 GIT_COMMITTER_EMAIL=a@example.com; {line}"
            );
            let done = project.run(&["plan", "exec", &plan, "--", "sh", "-c", &line]);
            said.push((done.code, done.stderr));
            assert_same(
                &of_the_user(&project, strategy),
                &before,
                &format!("{strategy}: {line}"),
            );
        }
        // In a worktree the objects are the user's, and cannot be written.
        for said in said.iter().take(2) {
            let is_made = said.0 == Some(0);
            assert_eq!(
                is_made,
                strategy != "git-worktree",
                "{strategy}: a commit: {said:?}"
            );
        }
        assert_eq!(project.git(&["status", "--porcelain"]), status, "{strategy}");
        project.git(&["fsck", "--strict"]);
        assert_eq!(project.git(&["stash", "list"]).lines().count(), 1, "{strategy}");
    }
}
