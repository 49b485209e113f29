//! Applies that cannot be done say which path it is, why, and what to do; and nothing was changed.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::process::Command;

use crate::harness::finish;
use crate::plan_stage::Project;

/// A plan that changes `edit.txt`, sealed.
fn sealed(project: &Project) -> String {
    let plan = project.open(&[]);
    project.work(&plan, "sed -i s/two/2/ edit.txt");
    project.run(&["plan", "seal", &plan]).expect(0);
    plan
}

fn text(project: &Project) -> String {
    fs::read_to_string(project.root.join("edit.txt")).unwrap()
}

#[test]
fn a_pipe_in_the_way_is_named() {
    let project = Project::new(&[("edit.txt", "one\ntwo\n")]);
    let plan = sealed(&project);
    project.shell("rm edit.txt; mkfifo edit.txt");
    let refused = project.run(&["plan", "apply", &plan, "--json"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    let said = format!("{}{}", refused.stdout, refused.stderr);
    for part in ["special_file_in_the_way", "`edit.txt`", "Move it away"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    project.shell("rm edit.txt; printf 'one\\ntwo\\n' > edit.txt");
    project.run(&["plan", "apply", &plan]).expect(0);
}

#[test]
fn a_directory_that_cannot_be_changed_is_named_and_everything_is_taken_back() {
    let project = Project::new(&[("edit.txt", "one\ntwo\n"), ("dir/inner.txt", "a\n")]);
    let plan = project.open(&[]);
    project.work(&plan, "sed -i s/two/2/ edit.txt; echo b >> dir/inner.txt");
    // Not even root may change what is in it then; without root, permissions do.
    let is_immutable = {
        let mut command = Command::new("chattr");
        command.arg("+i").arg(project.root.join("dir"));
        finish(command).code == Some(0)
    };
    if !is_immutable {
        project.shell("chmod 555 dir");
    }
    let refused = project.run(&["plan", "apply", &plan, "--json"]);
    project.shell(if is_immutable {
        "chattr -i dir"
    } else {
        "chmod 755 dir"
    });
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert_eq!(refused.code, Some(4), "{said}");
    for part in ["path_not_permitted", "dir/inner.txt"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(text(&project), "one\ntwo\n");
    project.nothing_is_left("after it was refused");
    project.run(&["plan", "apply", &plan]).expect(0);
}

#[test]
fn a_commit_that_cannot_be_made_is_refused_before_anything_is_applied() {
    let project = Project::with_git(&[("edit.txt", "one\ntwo\n"), ("other.txt", "a\n")]);
    let plan = sealed(&project);
    // Nobody, whoever the user of the machine is.
    for name in ["user.name", "user.email"] {
        project.git(&["config", name, ""]);
    }
    let refused = project.run(&["plan", "apply", &plan, "--commit"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("user.email"), "{refused:?}");
    assert_eq!(text(&project), "one\ntwo\n");

    project.git(&["config", "user.name", "test"]);
    project.git(&["config", "user.email", "test@example.com"]);
    project.git(&["switch", "--quiet", "-c", "side"]);
    project.write("other.txt", "b\n");
    project.git(&["commit", "--quiet", "--all", "--message=side"]);
    project.git(&["switch", "--quiet", "main"]);
    project.write("other.txt", "c\n");
    project.git(&["commit", "--quiet", "--all", "--message=main"]);
    let mut merge = Command::new("git");
    merge.args(["merge", "side"]).current_dir(&project.root);
    assert_ne!(finish(merge).code, Some(0), "it conflicts");
    let refused = project.run(&["plan", "apply", &plan, "--commit"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("a merge"), "{refused:?}");
    assert_eq!(
        (text(&project).as_str(), project.state_of(&plan).as_str()),
        ("one\ntwo\n", "sealed")
    );
    project.git(&["merge", "--abort"]);

    // What cannot be known before: it is applied, it is not committed, and both are said.
    let lock = project.root.join(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let failed = project.run(&["plan", "apply", &plan, "--commit"]);
    fs::remove_file(&lock).unwrap();
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stdout.contains("no git commit was made"), "{failed:?}");
    assert!(failed.stdout.contains("tidelock plan undo"), "{failed:?}");
    assert_eq!(text(&project), "one\n2\n");
    project.run(&["plan", "undo", &plan]).expect(0);
    project.run(&["plan", "apply", &plan, "--commit"]).expect(0);
    assert!(project.git(&["log", "--oneline"]).lines().count() > 2);
}

/// Nothing but the copy of the log is left, whether or not a daemon was started in the new home before.
#[test]
fn a_sealed_plan_is_applied_after_its_log_was_restored_in_a_new_home() {
    for is_started_before in [false, true] {
        let project = Project::new(&[("edit.txt", "one\ntwo\n")]);
        let plan = sealed(&project);
        let copy = project.world.path().join("copy.sqlite3");
        project.run(&["backup", copy.to_str().unwrap()]).expect(0);
        project.run(&["down"]).expect(0);
        let home = project.world.path().join("home");
        fs::remove_dir_all(&home).unwrap();
        if is_started_before {
            project.run(&["up"]).expect(0);
            project.run(&["down"]).expect(0);
        }
        let state = home.join("state");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&state)
            .unwrap();
        for beside in ["log.sqlite3-wal", "log.sqlite3-shm"] {
            // Most likely they are not there any more.
            drop(fs::remove_file(state.join(beside)));
        }
        fs::copy(&copy, state.join("log.sqlite3")).unwrap();
        project.run(&["plan", "apply", &plan]).expect(0);
        assert_eq!(text(&project), "one\n2\n");
        project.run(&["plan", "undo", &plan]).expect(0);
        assert_eq!(text(&project), "one\ntwo\n");
    }
}

#[test]
fn a_sealed_plan_is_applied_from_what_was_recorded_though_its_sandbox_is_gone() {
    let project = Project::new(&[("edit.txt", "one\ntwo\n")]);
    let plan = sealed(&project);
    project.run(&["down"]).expect(0);
    fs::remove_dir_all(project.scratch().join("sandboxes").join(&plan)).unwrap();
    project.run(&["plan", "apply", &plan]).expect(0);
    assert_eq!(text(&project), "one\n2\n");
    project.run(&["plan", "undo", &plan]).expect(0);
    assert_eq!(text(&project), "one\ntwo\n");
}
