//! What commands in sandboxes could use later, or from outside: the user's repository, settings and programs in the home,
//! the daemon's own files, and terminals of others. Each strategy is tried through the real program.

use std::fs;
use std::path::Path;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::harness::{Outcome, World, program};
use crate::plan_escapes::{STRATEGIES, place};
use crate::plan_fire::{assert_same, image, image_but};
use crate::plan_stage::Project;

const FILES: [(&str, &str); 1] = [("a.txt", "a\n")];

/// Runs a script in a plan, with variables.
fn run_in(project: &Project, plan: &str, variables: &[(&str, &Path)], script: &str) -> Outcome {
    let variables: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{name}={}", value.display()))
        .collect();
    let mut arguments = vec!["plan", "exec", plan];
    for variable in &variables {
        arguments.extend(["--env", variable]);
    }
    arguments.extend(["--", "sh", "-c", script]);
    project.run(&arguments)
}

#[test]
fn a_worktree_whose_git_file_was_rewritten_gives_nothing_of_the_repository() {
    let project = Project::in_world(World::below(&place()), &FILES).and_git();
    let plan = project.open(&["--strategy", "git-worktree"]);
    let at = [("W", project.root.as_path())];
    run_in(
        &project,
        &plan,
        &at,
        "rm .git && echo \"gitdir: $W/.git\" > .git && echo b > b.txt",
    )
    .expect(0);
    // Who opens the sandbox next, as after any pause, must not believe that file.
    project.run(&["down"]).expect(0);
    project.run(&["up"]).expect(0);
    let plant = "mkdir -p $W/.git/hooks; \
                 (printf '#!/bin/sh\\ntouch planted' > $W/.git/hooks/post-commit) 2>/dev/null && echo planted; exit 0";
    let said = run_in(&project, &plan, &at, plant).expect(0);
    assert_eq!(said.stdout, "", "{said:?}");
    assert!(!project.root.join(".git/hooks/post-commit").exists());
    // The sandbox itself goes on working.
    project.run(&["plan", "apply", &plan]).expect(0);
    assert_eq!(fs::read_to_string(project.root.join("b.txt")).unwrap(), "b\n");
}

/// What is in a home: what a command may write, and what would run later, outside.
const OF_HOME: [(&str, bool); 20] = [
    (".cache/x", true),
    (".npm/x", true),
    (".cargo/registry/x", true),
    (".cargo/git/x", true),
    (".cargo/.package-cache", true),
    (".claude/projects/x", true),
    (".claude/todos/x", true),
    (".claude/.credentials.json", true),
    (".codex/sessions/x", true),
    (".local/share/opencode/x", true),
    (".cargo/bin/x", false),
    (".cargo/env", false),
    (".cargo/config.toml", false),
    (".claude/settings.json", false),
    (".claude/hooks/x", false),
    (".codex/config.toml", false),
    (".config/opencode/opencode.json", false),
    (".gemini/settings.json", false),
    (".bashrc", false),
    (".ssh/x", false),
];

#[test]
fn caches_of_the_callers_home_can_be_written_and_what_runs_later_cannot() {
    let project = Project::in_world(World::below(&place()), &FILES).and_git();
    // Not the home of the daemon: it is the caller's that counts.
    let home = project.world.path().join("user");
    let cargo = home.join(".cargo");
    for directory in [
        ".cache",
        ".npm",
        ".cargo/bin",
        ".claude/hooks",
        ".codex",
        ".config/opencode",
        ".local/share/opencode",
        ".gemini",
        ".ssh",
    ] {
        fs::create_dir_all(home.join(directory)).unwrap();
    }
    for file in [
        ".cargo/env",
        ".cargo/config.toml",
        ".claude/settings.json",
        ".claude/.credentials.json",
        ".codex/config.toml",
    ] {
        fs::write(home.join(file), "old\n").unwrap();
    }
    let tries: String = OF_HOME
        .iter()
        .map(|(path, _)| format!("(echo new > \"$HOME/{path}\") 2>/dev/null && echo {path}\n"))
        .collect();
    let writable = OF_HOME.iter().filter(|(_, writable)| *writable);
    let expected: String = writable.map(|(path, _)| format!("{path}\n")).collect();
    for strategy in STRATEGIES {
        let plan = project.open(&["--strategy", strategy]);
        let script = format!("{tries}exit 0");
        let at = [("HOME", home.as_path()), ("CARGO_HOME", &cargo)];
        let said = run_in(&project, &plan, &at, &script).expect(0);
        assert_eq!(said.stdout, expected, "{strategy}");
    }
    for (path, writable) in OF_HOME {
        let now = fs::read_to_string(home.join(path)).unwrap_or_default();
        assert_eq!(now == "new\n", writable, "{path}");
    }
}

/// What a command tries to do to the daemon's own files. `T` is `TIDELOCK_HOME`, `D` the directory around it.
const ON_THE_DAEMON: &str = "
rm -f $T/run/tidelock.sock; mv $T/run/tidelock.sock $T/run/away; echo x > $T/run/daemon.lock; touch $T/run/new
echo x > $T/state/token; rm -f $T/state/token; touch $T/state/new; echo '[mcp]' > $T/config.toml
mv $T/run $T/run-away; mv $T/state $T/state-away; rm -rf $T/run
mv $T $T-away && mkdir -p $T/run; mv $D $D-away && mkdir -p $T/run
mv $D/project $D/project-away
";

#[test]
fn a_home_below_a_temporary_directory_is_not_for_commands() {
    for strategy in STRATEGIES {
        let project = Project::in_world(World::below(Path::new("/tmp")), &FILES).and_git();
        let directory = project.world.path().canonicalize().unwrap();
        let home = directory.join("home");
        let plan = project.open(&["--strategy", strategy]);
        let moving = [
            "state/plans",
            "state/daemon.log",
            "state/log.sqlite3",
            "state/log.sqlite3-shm",
            "state/log.sqlite3-wal",
            "run/scratch",
        ];
        let before = image_but(&home, &moving);
        let around = |path: &Path| fs::read_dir(path).unwrap().count();
        let (in_directory, tool) = (around(&directory), program());
        let at = [
            ("T", home.as_path()),
            ("D", directory.as_path()),
            ("TOOL", tool.as_path()),
        ];
        // Whoever is inside still speaks to the daemon.
        let script = format!(
            "({ON_THE_DAEMON}) 2>/dev/null; $TOOL plan show $TIDELOCK_PLAN > /dev/null && echo asked"
        );
        let said = run_in(&project, &plan, &at, &script).expect(0);
        assert_eq!(said.stdout, "asked\n", "{strategy}: {said:?}");
        assert_same(&image_but(&home, &moving), &before, strategy);
        assert_eq!(around(&directory), in_directory, "{strategy}");
        assert_eq!(
            image(&project.root).len(),
            image(&directory.join("project")).len()
        );
        // A file for everybody can be made where the home is not in the way.
        let temporary = if strategy == "overlay" { "/tmp" } else { "$TMPDIR" };
        project.work(&plan, &format!("at=$(mktemp {temporary}/wallXXXXXX) && rm $at"));
    }
}

#[test]
fn a_command_writes_to_no_terminal_but_its_own() {
    let project = Project::in_world(World::below(&place()), &FILES).and_git();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    for strategy in STRATEGIES {
        let plan = project.open(&["--strategy", strategy]);
        let at = [("PTS", Path::new(&name))];
        let said = run_in(
            &project,
            &plan,
            &at,
            "(printf '\\033]52;c;eA==\\a' > $PTS) 2>/dev/null && echo reached; exit 0",
        );
        assert_eq!(said.expect(0).stdout, "", "{strategy}");
    }
    // In a view of its own a command can make terminals, and reach them by name.
    let plan = project.open(&["--strategy", "overlay"]);
    let line = "script -qec 'test -t 0 && echo made > $(tty)' /dev/null < /dev/null | tr -d '\\r'";
    let said = run_in(&project, &plan, &[], line).expect(0);
    assert_eq!(said.stdout, "made\n", "{said:?}");
}

#[test]
fn a_job_is_ended_before_the_daemon_when_memory_runs_out() {
    let world = World::new();
    let said = world.run(&["job", "run", "--wait", "--", "cat", "/proc/self/oom_score_adj"]);
    assert_eq!(said.expect(0).stdout, "500\n");
    let daemon = fs::read_to_string(format!("/proc/{}/oom_score_adj", world.pid())).unwrap();
    assert!(daemon.trim().parse::<i32>().unwrap() < 500, "{daemon}");
}
