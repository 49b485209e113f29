//! Commands in sandboxes that try to get out: nothing outside changes, whatever they do and however the sandbox is made.
//!
//! Each attempt names itself in what it writes, so that a failure says who got out.
//!
//! The world of these tests should not be below a directory for temporary files, because commands may write there. It is in
//! the build directory, or where `TIDELOCK_ESCAPES_AT` says.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::World;
use crate::plan_fire::{Image, Thing, assert_same, image, image_but};
use crate::plan_stage::{Project, files};

pub(crate) const STRATEGIES: [&str; 3] = ["overlay", "git-worktree", "copy"];

const BEFORE: [(&str, &str); 3] = [("a.txt", "a\n"), ("sub/b.txt", "b\n"), ("c.txt", "c\n")];

/// What a worktree of git has of its own in the user's repository: its administration, its branch, and the objects of its
/// commits, which git keeps in one place for all.
const OF_WORKTREES: [&str; 7] = [
    ".git/worktrees",
    ".git/refs/heads/tidelock",
    ".git/logs/refs/heads/tidelock",
    ".git/objects",
    ".git/logs/refs/heads",
    ".git/logs/refs",
    ".git/refs/heads",
];

/// What is tried. Variables: `W` is the workspace, `OUT` a directory beside it, `STATE` and `RUN` the daemon's own directories,
/// `OTHER` the sandbox of another plan, `DAEMON` the pid.
const ATTEMPTS: [(&str, &str); 20] = [
    (
        "dots",
        "echo $E > ../$E; echo $E > ../../$E; echo $E > ../outside/victim; echo $E > sub/../../outside/victim",
    ),
    (
        "absolute",
        "echo $E > $OUT/victim; echo $E >> $OUT/victim; touch $OUT/$E; rm -f $OUT/victim; mv $OUT/victim $OUT/$E; \
         mkdir $OUT/$E; truncate -s 0 $OUT/victim; cp a.txt $OUT/victim",
    ),
    (
        "symlinks",
        "ln -s $OUT out; echo $E > out/victim; rm -f out/victim; touch out/$E; ln -s $OUT/victim link; echo $E > link; \
         ln -s ../outside/victim up; echo $E > up; rm -rf out/",
    ),
    (
        "raced",
        "mkdir plain; ln -s $OUT pointer; (for i in 1 2 3 4 5 6 7 8 9; do mv -T plain flip; mv -T flip plain; \
         mv -T pointer flip; mv -T flip pointer; done) & for i in 1 2 3 4 5 6 7 8 9; do echo $E > flip/victim; done; wait",
    ),
    (
        "hard links",
        "ln $OUT/victim hard && echo $E > hard; ln $W/a.txt harder && echo $E > harder; ln -f a.txt $OUT/victim",
    ),
    ("devices", "mknod null c 1 3; mkfifo pipe; mkfifo $OUT/$E"),
    (
        "git hooks",
        "mkdir -p .git/hooks; echo $E > .git/hooks/pre-commit; echo $E > $W/.git/hooks/pre-commit",
    ),
    (
        "git config",
        "git config core.worktree $OUT; git checkout -f -- .; git config --unset core.worktree; \
         git config --file $W/.git/config user.name $E; git config --global user.name $E",
    ),
    (
        "git dir",
        "GIT_DIR=$W/.git GIT_WORK_TREE=$OUT git checkout -f -- .; git --git-dir=$W/.git update-ref refs/heads/main HEAD~0",
    ),
    (
        "permissions",
        "chmod -R 777 $OUT $W $STATE/plans/bases $OTHER; chmod 644 $STATE/token; touch -d 2001-01-01 $OUT/victim",
    ),
    (
        "git alternates",
        "echo $OUT > $(git rev-parse --git-dir)/objects/info/alternates; echo $E > $W/.git/info/exclude",
    ),
    (
        "git file",
        "cp -r .git saved-git; rm -rf .git; echo \"gitdir: $W/.git\" > .git; git add -A; git commit -qm $E; \
         git branch -f main HEAD; git stash; rm -rf .git; mv saved-git .git",
    ),
    (
        "case",
        "mkdir -p .GIT/hooks; echo $E > .GIT/config; echo $E > .GIT/hooks/post-checkout; echo $E > A.TXT",
    ),
    (
        "proc",
        "for at in /proc/$DAEMON/root /proc/$PPID/root /proc/1/root; do echo $E > $at$W/a.txt; echo $E > $at$OUT/victim; \
         done; echo $E > /proc/$DAEMON/cwd/$E; for fd in /proc/self/fd/* /proc/$PPID/fd/*; do echo $E > $fd/$E; done",
    ),
    (
        "mounts",
        "umount -l $W; umount -l $STATE/plans; echo $E > $STATE/plans/$E; mount --bind $OUT $W; \
         unshare -rm sh -c \"umount -l $W; echo $E > $W/a.txt\"; nsenter -t $DAEMON -m sh -c \"echo $E > $W/a.txt\"",
    ),
    (
        "workspace",
        "echo $E > $W/a.txt; rm -rf $W/sub; touch $W/$E; mv $W $W-$E; rm -rf $W",
    ),
    (
        "bases",
        "find $STATE/plans/bases -type f | while read -r file; do echo $E > $file; rm -f $file; done; \
         rm -rf $STATE/plans/bases",
    ),
    (
        "others",
        "echo $E > $OTHER/$E; find $OTHER -type f -exec sh -c \"echo $E > {}\" \\; ; rm -rf $OTHER",
    ),
    (
        "staging",
        "touch $STATE/plans/staging/$E; touch $STATE/plans/kept/$E; touch $STATE/plans/sandboxes/$E",
    ),
    (
        "daemon",
        "echo $E > $STATE/token; rm -f $STATE/token; echo $E > $STATE/home_id; rm -f $RUN/tidelock.sock; touch $STATE/$E",
    ),
];

/// Where the world of these tests is, and whether commands are kept from everything in it.
pub(crate) fn place() -> PathBuf {
    let place = std::env::var_os("TIDELOCK_ESCAPES_AT").map(PathBuf::from);
    place.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into())
}

/// Whether a place is below one for temporary files. Commands may write there, so what is beside the workspace is theirs.
fn is_temporary(place: &Path) -> bool {
    let place = place.canonicalize().unwrap();
    ["/tmp", "/var/tmp", "/dev/shm"]
        .iter()
        .any(|temporary| place.starts_with(temporary))
}

/// All that must not change, by what it is.
fn outside(project: &Project, strategy: &str, other: &Path) -> Vec<(&'static str, Image)> {
    let state = project.world.home().state;
    let of_git: &[&str] = if strategy == "git-worktree" {
        &OF_WORKTREES
    } else {
        &[]
    };
    let mut bases = image(&state.join("plans/bases"));
    // What the daemon notes beside a base is its own.
    bases.retain(|path, _| !path.ends_with("info") && !path.ends_with("clock"));
    let mut all = vec![
        ("the workspace", image_but(&project.root, of_git)),
        ("a base", bases),
        ("another sandbox", image(other)),
        ("the staging directory", image(&state.join("plans/staging"))),
    ];
    let own = [
        "plans",
        "daemon.log",
        "log.sqlite3",
        "log.sqlite3-shm",
        "log.sqlite3-wal",
        "log.sqlite3.lock",
    ];
    all.push(("the daemon's state", image_but(&state, &own)));
    all.push((
        "the daemon's socket",
        image_but(&project.world.home().runtime, &["scratch"]),
    ));
    // In an overlay, temporary directories are the user's own.
    if strategy != "overlay" || !is_temporary(project.world.path()) {
        all.push(("a directory beside", image(&project.world.path().join("outside"))));
    }
    // Permissions are the one thing that Landlock does not know of. Only what a command does not see is safe from that.
    let hidden = [
        "the workspace",
        "a base",
        "another sandbox",
        "the staging directory",
    ];
    for (what, image) in &mut all {
        if strategy == "overlay" && hidden.contains(what) {
            continue;
        }
        for thing in image.values_mut() {
            if let Thing::Directory(mode) | Thing::File(mode, _) = thing {
                *mode = 0;
            }
        }
    }
    all
}

#[test]
fn no_command_gets_out_of_an_overlay() {
    try_everything("overlay");
}

#[test]
fn no_command_gets_out_of_a_worktree() {
    try_everything("git-worktree");
}

#[test]
fn no_command_gets_out_of_a_copy() {
    try_everything("copy");
}

fn try_everything(strategy: &str) {
    let project = Project::in_world(World::below(&place()), &BEFORE).and_git();
    let beside = project.world.path().join("outside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("victim"), "not to be touched\n").unwrap();
    // Another plan with a sandbox of its own, which is not a worktree: those of git name each other.
    let other = project.open(&["--strategy", "copy"]);
    project.work(&other, "echo other > other.txt");
    let other = project.scratch().join("sandboxes").join(&other);
    let plan = project.open(&["--strategy", strategy]);
    let before = outside(&project, strategy, &other);

    let script: String = ATTEMPTS
        .iter()
        .map(|(name, attempt)| {
            let name = name.replace(' ', "-");
            format!("(E=escape-by-{name}; {attempt}) >/dev/null 2>&1 </dev/null\ncd \"$HERE\" || exit 1\n")
        })
        .collect();
    let script = format!("HERE=$(pwd)\necho mine > mine.txt\n{script}echo tried\n");
    let home = project.world.home();
    let variables = [
        format!("W={}", project.root.display()),
        format!("OUT={}", beside.canonicalize().unwrap().display()),
        format!("STATE={}", home.state.display()),
        format!("RUN={}", home.runtime.display()),
        format!("OTHER={}", other.display()),
        format!("DAEMON={}", project.world.pid()),
        format!("HOME={}", beside.display()),
    ];
    let mut arguments = vec!["plan", "exec", &plan];
    for variable in &variables {
        arguments.extend(["--env", variable]);
    }
    arguments.extend(["--", "sh", "-c", &script]);
    let tried = project.run(&arguments).expect(0);
    assert!(tried.stdout.ends_with("tried\n"), "{tried:?}");
    check(&project, strategy, (&before, &other), "tried");

    // What was captured is applied: that reaches the workspace and nothing else, and nothing that git would run.
    let git = image_but(
        &project.root.join(".git"),
        &["worktrees", "objects", "refs", "logs"],
    );
    let shown = project.shown(&plan);
    let said = project.run(&["plan", "apply", &plan]);
    println!("{strategy}: {said:?} {shown}");
    assert_same(
        &image_but(
            &project.root.join(".git"),
            &["worktrees", "objects", "refs", "logs"],
        ),
        &git,
        "git after the apply",
    );
    for (what, image) in outside(&project, strategy, &other) {
        if !["the workspace", "a base"].contains(&what) {
            let (_, before) = before.iter().find(|(name, _)| *name == what).unwrap();
            assert_same(&image, before, what);
        }
    }
    assert!(!project.root.join(".GIT").exists());
    // Worktrees share their objects with the user, and a test of its own.
    if strategy != "git-worktree" {
        project.git(&["fsck", "--strict"]);
    }
}

#[test]
fn a_command_in_a_worktree_leaves_the_users_objects_alone() {
    let project = Project::with_git(&BEFORE);
    let plan = project.open(&["--strategy", "git-worktree"]);
    let line = format!("rm -rf {}; exit 0", project.root.display());
    project.work(&plan, &line);
    assert_eq!(project.tree(), files(&BEFORE));
    project.git(&["fsck", "--strict"]);
}

#[track_caller]
fn check(project: &Project, strategy: &str, (before, other): (&[(&'static str, Image)], &Path), about: &str) {
    for ((what, found), (_, before)) in outside(project, strategy, other).iter().zip(before) {
        assert_same(found, before, &format!("{strategy}, {about}: {what}"));
    }
    assert_eq!(project.tree(), files(&BEFORE));
}
