//! What a command leaves in its sandbox is recorded, or it is said why not, and there is always a way on.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Outcome, finish, finish_within, program, wait_for};
use crate::plan_stage::{Project, files, last_object};

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\n"), ("b.txt", "two\n")];

/// The program with a small number of files that it and its daemon may have open.
fn with_few_files(project: &Project, limit: u32, arguments: &[&str]) -> Outcome {
    let plain = project.command(arguments);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\"")])
        .arg(program())
        .args(arguments)
        .current_dir(&project.root)
        .stdin(std::process::Stdio::null());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(command)
}

#[test]
fn more_files_than_may_be_open_are_captured_and_applied() {
    let project = Project::new(&BEFORE);
    for number in 0..400 {
        project.write(&format!("old/{number}"), &format!("old {number}\n"));
    }
    with_few_files(&project, 256, &["up"]).expect(0);
    let line = "mkdir new && for i in $(seq 400); do echo $i > new/$i; done; for f in old/*; do echo more >> $f; done";
    let done = project.run(&["exec", "--json", "--", "sh", "-c", line]).expect(0);
    let end = last_object(&done);
    assert_eq!(end["plan"]["summary"]["files"], 800, "{end}");
    project.run(&["plan", "apply", "@"]).expect(0);
    assert_eq!(project.tree().len(), 802);
    assert_eq!(project.tree()["old/399"], "old 399\nmore\n");
}

#[test]
fn a_file_that_is_too_large_is_named_and_the_rest_is_carried() {
    let project = Project::new(&BEFORE);
    let line = "truncate -s 1T huge; echo new > a.txt";
    let begun = Instant::now();
    let done = project.run(&["exec", "--", "sh", "-c", line]).expect(0);
    assert!(done.stderr.contains("note: `huge` is not carried"), "{done:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{begun:?}");
    let plan = project.shown("@");
    assert_eq!(
        plan["left_out"],
        json!([{ "path": "huge", "why": "too_large", "work": true }])
    );
    let applied = project.run(&["plan", "apply", "@"]).expect(0);
    let said = format!("{}{}", applied.stdout, applied.stderr);
    assert!(said.contains("`huge` is not carried"), "{said}");
    assert_eq!(project.tree(), files(&[("a.txt", "new\n"), ("b.txt", "two\n")]));
    // In the workspace it keeps nobody from working.
    let huge = std::fs::File::create(project.root.join("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let plan = project.open(&[]);
    assert_eq!(
        project.shown(&plan)["left_out"],
        json!([{ "path": "huge", "why": "too_large" }])
    );
    project.run(&["plan", "discard", &plan]).expect(0);
    std::fs::remove_file(project.root.join("huge")).unwrap();
    // Alone it is work too, and nobody says that nothing was changed.
    let alone = project
        .run(&["exec", "--json", "--", "truncate", "-s", "1T", "huge"])
        .expect(0);
    let end = last_object(&alone);
    assert_eq!(end["outcome"]["outcome"], "open");
    assert_eq!(end["plan"]["state"], "open");
    assert_eq!(
        needed(&project),
        [("not_carried".to_owned(), end["plan"]["id"].clone())]
    );
    let refused = project.run(&["plan", "discard", "@"]).expect(4);
    assert!(refused.stderr.contains("`huge` is not carried"), "{refused:?}");
    // Once it is gone there is no work left.
    project.work(end["plan"]["id"].as_str().unwrap(), "rm huge");
    project.run(&["plan", "discard", "@"]).expect(0);
}

/// What waits for the user: the kind, and the id of what it is about.
fn needed(project: &Project) -> Vec<(String, Value)> {
    let needs = project.run(&["needs", "--json"]).expect(0).json();
    let needs = needs["needs"].as_array().unwrap().iter();
    needs
        .map(|need| (need["kind"].as_str().unwrap().to_owned(), need["id"].clone()))
        .collect()
}

/// How many bytes a file takes on the disk.
fn stored_bytes(path: &std::path::Path) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path).unwrap()) * 512
}

#[test]
fn a_sparse_file_costs_what_its_data_costs() {
    let project = Project::new(&BEFORE);
    project.run(&["exec", "--", "true"]).expect(0);
    let line =
        "truncate -s 3G sparse; printf mine | dd of=sparse bs=1 seek=1000000000 conv=notrunc 2>/dev/null";
    let begun = Instant::now();
    project
        .run(&["exec", "--apply", "--", "sh", "-c", line])
        .expect(0);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    let sparse = project.root.join("sparse");
    assert!(stored_bytes(&sparse) < 1 << 20, "{}", stored_bytes(&sparse));
    let mut content = [0; 6];
    let file = std::fs::File::open(&sparse).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut content, 999_999_999).unwrap();
    assert_eq!(&content, b"\0mine\0");
    assert_eq!(file.metadata().unwrap().len(), 3 << 30);
    // It is in the workspace now: the next plan has it, changes one byte of it, and takes that back.
    let line = "printf X | dd of=sparse bs=1 seek=2000000000 conv=notrunc 2>/dev/null";
    let begun = Instant::now();
    let done = project
        .run(&["exec", "--apply", "--json", "--", "sh", "-c", line])
        .expect(0);
    let plan = last_object(&done)["plan"]["id"].as_str().unwrap().to_owned();
    project.run(&["plan", "undo", &plan]).expect(0);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert!(stored_bytes(&sparse) < 1 << 20, "{}", stored_bytes(&sparse));
    std::os::unix::fs::FileExt::read_exact_at(
        &std::fs::File::open(&sparse).unwrap(),
        &mut content,
        1_999_999_998,
    )
    .unwrap();
    assert_eq!(&content, b"\0\0\0\0\0\0");
    project.run(&["doctor", "--deep"]).expect(0);
    // An archive has the holes as holes, and everything is there again after it.
    let archive = project.world.home().state.with_extension("archive");
    project.run(&["export", archive.to_str().unwrap()]).expect(0);
    assert!(std::fs::metadata(&archive).unwrap().len() < 1 << 20);
}

/// Begins a command whose capture takes long, and waits until it is in its sandbox.
fn long_capture(project: &Project) -> String {
    let line = "seq 60000 | split -l 1 -a 5 -";
    let begun = project
        .run(&["exec", "--detach", "--json", "--", "sh", "-c", line])
        .expect(0);
    let plan = begun.json()["plan"]["id"].as_str().unwrap().to_owned();
    wait_for("the command to be in its sandbox", || {
        let shown = project.shown(&plan);
        shown["running"].is_array() || shown["entries"] != 0
    });
    plan
}

#[test]
fn a_discard_by_force_does_not_wait_for_a_capture() {
    let project = Project::new(&BEFORE);
    let plan = long_capture(&project);
    let discard = project.command(&["plan", "discard", "--force", &plan, "--json"]);
    let discarded = finish_within(discard, Duration::from_secs(10)).expect(0).json();
    assert_eq!(discarded["state"], "discarded");
    assert_eq!(discarded["running"], Value::Null);
}

#[test]
fn a_daemon_that_stops_does_not_wait_for_a_capture() {
    let project = Project::new(&BEFORE);
    let plan = long_capture(&project);
    project.run(&["down"]).expect(0);
    let discard = project.command(&["plan", "discard", "--force", &plan, "--json"]);
    let discarded = finish_within(discard, Duration::from_secs(20)).expect(0).json();
    assert_eq!(discarded["state"], "discarded");
}

#[test]
fn a_plan_whose_capture_was_killed_can_be_given_up() {
    let project = Project::new(&BEFORE);
    let plan = long_capture(&project);
    project.world.kill();
    let discard = project.command(&["plan", "discard", "--force", &plan, "--json"]);
    let discarded = finish_within(discard, Duration::from_secs(20)).expect(0).json();
    assert_eq!(discarded["state"], "discarded");
    project
        .run(&["exec", "--apply", "--", "sh", "-c", "echo new > a.txt"])
        .expect(0);
    assert_eq!(project.tree()["a.txt"], "new\n");
}

#[test]
fn a_command_that_runs_is_stopped_by_a_discard_by_force() {
    let project = Project::new(&BEFORE);
    let begun = project
        .run(&["exec", "--detach", "--json", "--", "sleep", "1000"])
        .expect(0)
        .json();
    let plan = begun["plan"]["id"].as_str().unwrap();
    wait_for("the command to run", || project.shown(plan)["running"].is_array());
    project.run(&["plan", "discard", plan]).expect(4);
    let discarded = project
        .run(&["plan", "discard", "--force", plan, "--json"])
        .expect(0)
        .json();
    assert_eq!(discarded["state"], "discarded");
    let job = begun["job"]["id"].as_str().unwrap();
    let job = project.run(&["job", "show", job, "--json"]).expect(0).json();
    assert_eq!(job["state"], "cancelled", "{job}");
}

#[test]
fn work_in_a_submodule_or_a_new_repository_is_not_called_nothing() {
    let project = Project::with_git(&BEFORE);
    project.git(&["init", "--quiet", "nested"]);
    project.write("nested/x", "x\n");
    let done = project
        .run(&["exec", "--", "sh", "-c", "echo changed > nested/x"])
        .expect(0);
    for part in [
        "note: changes in `nested` are not carried",
        "The plan stays open.",
    ] {
        assert!(done.stderr.contains(part), "{part:?} is not in {}", done.stderr);
    }
    let shown = project.run(&["plan", "show", "@"]).expect(0);
    assert!(shown.stdout.contains("Not carried"), "{}", shown.stdout);
    // The same in a submodule, whose git directory is elsewhere.
    let origin = Project::with_git(&[("y", "y\n")]);
    let url = origin.root.to_str().unwrap();
    project.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url,
        "module",
    ]);
    project.git(&["commit", "--quiet", "--all", "--message=a submodule"]);
    let done = project
        .run(&["exec", "--", "sh", "-c", "echo changed > module/y"])
        .expect(0);
    assert!(
        done.stderr.contains("note: changes in `module` are not carried"),
        "{done:?}"
    );
    // Whoever wanted it applied is not told that all is well.
    project
        .run(&["exec", "--apply", "--", "sh", "-c", "echo changed > nested/x"])
        .expect(1);
    // What is in a new repository is carried, but for what git keeps.
    let line = "git init -q made && echo new > made/file";
    let done = project
        .run(&["exec", "--apply", "--", "sh", "-c", line])
        .expect(0);
    assert!(done.stderr.contains("`made/.git` is not carried"), "{done:?}");
    assert_eq!(project.tree()["made/file"], "new\n");
    assert!(!project.root.join("made/.git").exists());
}

#[test]
fn commits_made_in_a_sandbox_are_told_wherever_the_plan_is() {
    let project = Project::with_git(&BEFORE);
    let line = "git checkout -q -b topic && echo 1 > a.txt && git -c user.name=t -c user.email=t@t commit -q -a -m First \
                && echo 2 > a.txt && git -c user.name=t -c user.email=t@t commit -q -a -m Second";
    let done = project.run(&["exec", "--", "sh", "-c", line]).expect(0);
    let note = "2 commits made in the sandbox on branch `topic` are not carried; the file changes are";
    assert!(done.stderr.contains(note), "{done:?}");
    let plan = project.shown("@");
    assert_eq!(
        plan["branches"],
        json!([{ "name": "topic", "commits": 2, "subjects": ["Second", "First"] }])
    );
    assert!(
        project
            .run(&["plan", "show", "@"])
            .expect(0)
            .stdout
            .contains(note)
    );
    let applied = project.run(&["plan", "apply", "@"]).expect(0);
    assert!(
        format!("{}{}", applied.stdout, applied.stderr).contains(note),
        "{applied:?}"
    );
    assert_eq!(project.tree()["a.txt"], "2\n");
}

#[test]
fn a_replaced_directory_that_git_ignores_is_seen_by_the_next_command() {
    let project = Project::with_git(&[(".gitignore", "node_modules/\n"), ("a.txt", "one\n")]);
    let place = |path: &str| project.root.join("node_modules").join(path);
    project.write("node_modules/lib/index.js", "1\n");
    project.write("node_modules/@scope/lib/index.js", "1\n");
    let plan = project.open(&[]);
    let look = || {
        let line = "find node_modules -name '*.js' | sort | xargs cat; cat a.txt";
        let looked = project
            .run(&["plan", "exec", &plan, "--", "sh", "-c", line])
            .expect(0);
        looked.stdout.replace('\n', " ")
    };
    assert_eq!(look(), "1 1 one ");
    std::fs::remove_dir_all(project.root.join("node_modules")).unwrap();
    project.write("node_modules/lib/index.js", "2\n");
    project.write("node_modules/@scope/lib/index.js", "2\n");
    assert_eq!(look(), "2 2 one ");
    for (directory, expected) in [("lib", "2 3 one "), ("@scope/lib", "4 3 one ")] {
        std::fs::remove_dir_all(place(directory)).unwrap();
        let text = if directory == "lib" { "3\n" } else { "4\n" };
        project.write(&format!("node_modules/{directory}/index.js"), text);
        assert_eq!(look(), expected);
    }
    // What the sandbox has of its own stays.
    project.work(&plan, "echo mine > node_modules/lib/index.js; echo two > a.txt");
    std::fs::remove_dir_all(project.root.join("node_modules")).unwrap();
    assert_eq!(look(), "mine two ");
}

/// A file system in memory with room for one sandbox and not much more. Dropping it takes it away.
struct FullDisk(std::path::PathBuf);

impl FullDisk {
    fn mount(path: &std::path::Path) -> Result<FullDisk, String> {
        std::fs::create_dir_all(path).unwrap();
        let mut mount = Command::new("mount");
        // A sandbox is only made where half a gibibyte is free.
        mount
            .args(["-t", "tmpfs", "-o", "size=560m,mode=700", "tmpfs"])
            .arg(path);
        match mount.output() {
            Ok(output) if output.status.success() => Ok(FullDisk(path.to_owned())),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.0).output());
    }
}

#[test]
fn a_command_that_fills_the_disk_ends_and_its_plan_can_be_given_up() {
    let project = Project::new(&BEFORE);
    let _disk = match FullDisk::mount(&project.world.home().state) {
        Ok(disk) => disk,
        Err(reason) => return crate::tools::skip(&format!("no small file system can be mounted: {reason}")),
    };
    project.run(&["up"]).expect(0);
    let fill = "echo new > a.txt; cat /dev/urandom > filler; for i in $(seq 200); do echo x > f$i || break; done; exit 3";
    let filled = project.command(&["exec", "--json", "--", "sh", "-c", fill]);
    let filled = finish_within(filled, Duration::from_secs(60));
    // The log may not take the end of the job any more; whatever is said, it is no success.
    assert_ne!(filled.code, Some(0), "{filled:?}");
    let plans = project.run(&["plan", "list", "--json"]).expect(0).json();
    let plan = plans["plans"][0]["id"].as_str().unwrap().to_owned();
    wait_for("the command to be over", || {
        project.shown(&plan)["running"].is_null()
    });
    let shown = project.shown(&plan);
    assert_ne!(shown["unrecorded"]["why"], Value::Null, "{shown}");
    let needs = needed(&project);
    assert!(
        needs.contains(&("not_recorded".to_owned(), json!(plan))),
        "{needs:?}"
    );
    project.run(&["plan", "seal", &plan]).expect(1);
    let discarded = project
        .run(&["plan", "discard", "--force", &plan, "--json"])
        .expect(0)
        .json();
    assert_eq!(discarded["state"], "discarded");
    // There is room again, and everything works.
    project
        .run(&["exec", "--apply", "--", "sh", "-c", "echo new > a.txt"])
        .expect(0);
    assert_eq!(project.tree()["a.txt"], "new\n");
}

/// Takes all the room that there is.
fn fill(directory: &std::path::Path) {
    use std::io::Write;
    let mut filler = std::fs::File::create(directory.join("filler")).unwrap();
    let mut piece = vec![0; 1 << 20];
    while !piece.is_empty() {
        if filler.write_all(&piece).is_err() {
            piece.truncate(piece.len() / 2);
        }
    }
}

#[test]
fn a_command_that_runs_while_the_disk_becomes_full_ends() {
    let project = Project::new(&BEFORE);
    let state = project.world.home().state.clone();
    let _disk = match FullDisk::mount(&state) {
        Ok(disk) => disk,
        Err(reason) => return crate::tools::skip(&format!("no small file system can be mounted: {reason}")),
    };
    let gate = |name: &str| project.world.path().join(name);
    let wait = |name: &str| format!("until [ -e {} ]; do sleep 0.05; done", gate(name).display());
    let begun = project.run(&["job", "run", "--json", "--", "sh", "-c", &wait("outside")]);
    let outside = begun.expect(0).json()["id"].as_str().unwrap().to_owned();
    let plan = project.open(&[]);
    let line = format!("echo new > a.txt; {}", wait("inside"));
    let exec = [
        "plan", "exec", "--detach", "--json", &plan, "--", "sh", "-c", &line,
    ];
    let begun = last_object(&project.run(&exec).expect(0));
    let inside = begun["job"]["id"].as_str().unwrap().to_owned();
    let shown = |job: &str| project.run(&["job", "show", job, "--json"]).expect(0).json();
    wait_for("both to run", || {
        shown(&inside)["state"] == "running" && shown(&outside)["state"] == "running"
    });
    fill(&state);
    // The ends are written into the room that is set apart for that, and nobody has made any.
    for (name, job, state) in [("outside", &outside, "succeeded"), ("inside", &inside, "failed")] {
        std::fs::write(gate(name), "").unwrap();
        wait_for("the end of a command", || shown(job)["ended_at"].is_string());
        assert_eq!(shown(job)["state"], state, "{}", shown(job));
    }
    assert_ne!(project.shown(&plan)["unrecorded"]["why"], Value::Null);
    // With room again, what it did is recorded.
    std::fs::remove_file(state.join("filler")).unwrap();
    project.run(&["plan", "seal", &plan]).expect(0);
    project.run(&["plan", "apply", &plan]).expect(0);
    assert_eq!(project.tree()["a.txt"], "new\n");
}
