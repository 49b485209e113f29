//! `tidelock exec`: from a command to a diff, and on to the workspace or not.

use rustix::process::Signal;

use crate::harness::{finish, signal, wait_for};
use crate::job_stage::{Beside, NOBODY, left_behind};
use crate::plan_stage::{Project, files, last_object};

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\ntwo\nthree\n"), ("b.txt", "b\n")];

#[test]
fn a_command_is_reviewed_applied_and_taken_back() {
    let project = Project::new(&BEFORE);
    let line = "echo four >> a.txt; rm b.txt; mkdir d; echo new > d/c.txt; echo said";
    let done = project.run(&["exec", "--", "sh", "-c", line]).expect(0);
    // Standard output is the command's own.
    assert_eq!(done.stdout, "said\n");
    for part in [
        "a.txt",
        "| 1 +\n",
        "(gone)",
        "(new)",
        "3 files changed, 2 added, 1 removed",
        "is sealed. Next:",
        "  tidelock plan diff ",
        "  tidelock plan apply ",
        "  tidelock plan discard ",
    ] {
        assert!(done.stderr.contains(part), "{part:?} is not in {}", done.stderr);
    }
    assert_eq!(
        project.tree(),
        files(&BEFORE),
        "nothing reaches the workspace by itself"
    );

    // What is not read on a terminal is a patch that git takes.
    let patch = project.run(&["plan", "diff", "@"]).expect(0).stdout;
    assert!(patch.contains("+four\n"), "{patch}");
    let names = project
        .run(&["plan", "diff", "@", "--name-only"])
        .expect(0)
        .stdout;
    assert_eq!(names, "a.txt\nb.txt\nd/c.txt\n");

    let after = files(&[("a.txt", "one\ntwo\nthree\nfour\n"), ("d/c.txt", "new\n")]);
    let dry = project.run(&["plan", "apply", "@", "--dry-run"]).expect(0).stdout;
    assert!(dry.contains("would be applied: 3 files."), "{dry}");
    assert_eq!(project.tree(), files(&BEFORE));
    project.run(&["plan", "apply", "@"]).expect(0);
    assert_eq!(project.tree(), after);
    project.run(&["plan", "undo", "@"]).expect(0);
    assert_eq!(project.tree(), files(&BEFORE));
    project.run(&["plan", "apply", "@"]).expect(0);
    assert_eq!(project.tree(), after);
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn the_patch_is_one_that_git_takes() {
    let project = Project::with_git(&BEFORE);
    let line = "printf 'no end' > a.txt; mv b.txt c.txt; printf '\\377\\000' > binary; chmod +x c.txt; ln -s a.txt link";
    project.run(&["exec", "--", "sh", "-c", line]).expect(0);
    let patch = project.world.path().join("patch");
    let mut diff = project.command(&["plan", "diff", "@"]);
    diff.stdout(std::fs::File::create(&patch).unwrap());
    assert!(diff.status().unwrap().success());
    project.git(&["apply", "--index", patch.to_str().unwrap()]);
    let status = project.git(&["status", "--porcelain"]);
    for part in ["M  a.txt", "c.txt", "A  binary", "A  link"] {
        assert!(status.contains(part), "{part:?} is not in {status}");
    }
}

#[test]
fn the_exit_code_is_the_commands_and_what_it_changed_is_kept() {
    let project = Project::new(&BEFORE);
    let failed = project.run(&["exec", "--json", "--", "sh", "-c", "echo x > a.txt; exit 7"]);
    let end = last_object(&failed.expect(7));
    assert_eq!(end["plan"]["state"], "sealed");
    assert_eq!(end["job"]["state"], "failed");
    assert_eq!(end["outcome"]["outcome"], "sealed");
    // With --apply too it is the command's, and nothing is applied.
    let failed = project
        .run(&["exec", "--apply", "--", "sh", "-c", "echo y > a.txt; exit 7"])
        .expect(7);
    assert!(
        failed
            .stderr
            .contains("It was not applied, because the command didn't succeed."),
        "{failed:?}"
    );
    assert_eq!(project.tree(), files(&BEFORE));
}

#[test]
fn a_plan_without_changes_is_discarded() {
    let project = Project::new(&BEFORE);
    let done = project.run(&["exec", "--", "true"]).expect(0);
    assert_eq!(done.stderr, "It changed nothing, so the plan was discarded.\n");
    let end = last_object(&project.run(&["exec", "--json", "--", "false"]).expect(1));
    assert_eq!(
        (&end["plan"]["state"], &end["outcome"]["outcome"]),
        (&"discarded".into(), &"unchanged".into())
    );
    let listed = project.run(&["plan", "list", "--json"]).expect(0).json();
    assert_eq!(listed["plans"].as_array().unwrap().len(), 0);
}

#[test]
fn with_apply_the_checks_decide() {
    let project = Project::new(&BEFORE);
    let check = "grep -q good a.txt";
    let bad = [
        "exec",
        "--apply",
        "--check",
        check,
        "--",
        "sh",
        "-c",
        "echo bad > a.txt",
    ];
    let refused = project.run(&bad).expect(1);
    for part in [
        "note: check: grep -q good a.txt",
        "failed",
        "It was not applied, because not all checks have passed.",
    ] {
        assert!(
            refused.stderr.contains(part),
            "{part:?} is not in {}",
            refused.stderr
        );
    }
    assert_eq!(project.tree(), files(&BEFORE));
    let good = [
        "exec",
        "--apply",
        "--check",
        check,
        "--",
        "sh",
        "-c",
        "echo good > a.txt",
    ];
    let applied = project.run(&good).expect(0);
    assert!(applied.stderr.contains(" applied: 1 file."), "{}", applied.stderr);
    assert_eq!(project.tree(), files(&[("a.txt", "good\n"), ("b.txt", "b\n")]));

    // By hand as well: no apply without the checks.
    let plan = project.open(&["--check", "test -e c.txt"]);
    project.work(&plan, "echo c > d.txt");
    let error = project.run(&["plan", "apply", &plan, "--json"]).expect(4).json();
    assert_eq!(error["error"]["code"], "checks_not_passed");
    let checked = project.run(&["plan", "check", &plan]).expect(1);
    assert!(checked.stdout.contains("failed  test -e c.txt"), "{checked:?}");
    project.work(&plan, "mv d.txt c.txt");
    project.run(&["plan", "check", &plan]).expect(0);
    project.run(&["plan", "apply", &plan]).expect(0);
}

#[test]
fn ctrl_c_cancels_the_command_and_keeps_its_work() {
    let project = Project::new(&BEFORE);
    let line = "echo half > a.txt; echo begun; sleep 600";
    let mut running = Beside::start(&project.world, project.command(&["exec", "--", "sh", "-c", line]));
    running.wait_for_stdout("begun");
    signal(running.pid(), Signal::INT);
    assert_eq!(running.wait_code(), 130);
    let (_, said) = running.said();
    assert!(said.contains("Its changes are kept in plan_"), "{said}");
    let plan = project.shown("@");
    assert_eq!(
        (&plan["state"], &plan["summary"]["files"]),
        (&"sealed".into(), &1.into())
    );
    assert_eq!(project.tree(), files(&BEFORE));
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn a_second_ctrl_c_leaves_the_command_to_itself() {
    let project = Project::new(&BEFORE);
    let line = "trap '' TERM INT; echo begun; while ! test -e go; do sleep 0.05; done; echo done > a.txt";
    let mut running = Beside::start(&project.world, project.command(&["exec", "--", "sh", "-c", line]));
    running.wait_for_stdout("begun");
    signal(running.pid(), Signal::INT);
    running.wait_for_stderr("Cancelling job_");
    signal(running.pid(), Signal::INT);
    assert_eq!(running.wait_code(), 130);
    let (_, said) = running.said();
    assert!(said.contains("tidelock plan show"), "{said}");
    wait_for("the command to be stopped", || {
        project.shown("@")["running"].as_array().is_none_or(Vec::is_empty)
    });
    assert_eq!(left_behind(&project.world), NOBODY);
}

#[test]
fn a_command_can_be_left_at_once_and_worked_on_later() {
    let project = Project::new(&BEFORE);
    let begun = project
        .run(&["exec", "--detach", "--json", "--", "sh", "-c", "echo x > c.txt"])
        .expect(0)
        .json();
    assert_eq!(begun["outcome"]["outcome"], "detached");
    let (plan, job) = (
        begun["plan"]["id"].as_str().unwrap(),
        begun["job"]["id"].as_str().unwrap(),
    );
    project.run(&["job", "wait", job]).expect(0);
    project
        .run(&[
            "exec",
            "--plan",
            plan,
            "--no-seal",
            "--",
            "sh",
            "-c",
            "cat c.txt >> a.txt",
        ])
        .expect(0);
    let shown = project.shown(plan);
    assert_eq!(
        (&shown["state"], &shown["summary"]["files"]),
        (&"open".into(), &2.into())
    );
    // A command that changes nothing does not take the plan of others away.
    let nothing = project.run(&["exec", "--plan", plan, "--", "true"]).expect(0);
    assert_eq!(nothing.stderr, "It changed nothing.\n");
    assert_eq!(project.shown(plan)["state"], "open");
}

#[test]
fn a_command_starts_where_the_user_is() {
    for strategy in ["overlay", "copy"] {
        let project = Project::with_git(&[("sub/dir/a", "a\n")]);
        let mut command = project.command(&[
            "exec",
            "--strategy",
            strategy,
            "--",
            "sh",
            "-c",
            "cat a; echo b > b",
        ]);
        command.current_dir(project.root.join("sub/dir"));
        let done = finish(command);
        if strategy == "overlay" && done.stderr.contains("hint: leave --strategy out") {
            // This machine cannot do it, and says so.
            continue;
        }
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (Some(0), "a\n"),
            "{strategy}: {done:?}"
        );
        let names = project
            .run(&["plan", "diff", "@", "--name-only"])
            .expect(0)
            .stdout;
        assert_eq!(names, "sub/dir/b\n", "{strategy}");
    }
}
