//! What a command reads: the standard input of whoever runs it, byte for byte, and no more of it than it reads.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::harness::{finish, finish_within, program, signal, wait_for};
use crate::job_stage::Beside;
use crate::plan_stage::Project;

const BEFORE: [(&str, &str); 1] = [("a.txt", "one\n")];

/// A line of the shell in which `tidelock` is the program.
fn shell(project: &Project, line: &str) -> Command {
    let mut command = project.command(&[]);
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            &format!("tidelock() {{ {} \"$@\"; }}\n{line}", program().display()),
        ])
        .current_dir(&project.root)
        .stdin(Stdio::null());
    for (name, value) in command.stdin(Stdio::null()).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

#[test]
fn a_command_reads_what_is_piped_to_it() {
    let project = Project::new(&BEFORE);
    let plan = project.open(&[]);
    let in_plan = format!("plan exec {plan} --");
    for door in ["exec --", &in_plan, "job run --wait --"] {
        for (line, expected) in [
            (format!("echo hi | tidelock {door} cat"), "hi\n"),
            (
                format!("printf 'a\\000\\377b' | tidelock {door} od -An -tx1"),
                " 61 00 ff 62\n",
            ),
            (format!("tidelock {door} cat < a.txt"), "one\n"),
            (format!("true | tidelock {door} cat"), ""),
            (format!("tidelock {door} cat < /dev/null"), ""),
            (format!("tidelock {door} cat <&-"), ""),
            (
                format!(
                    "echo hi | tidelock {} --no-input -- cat",
                    door.trim_end_matches(" --")
                ),
                "",
            ),
            (
                format!("echo hi | tidelock {door} sh -c 'cat; echo no >&2' 2>/dev/null"),
                "hi\n",
            ),
        ] {
            let done = finish(shell(&project, &line));
            assert_eq!(
                (done.code, done.stdout.as_str()),
                (Some(0), expected),
                "{line}: {done:?}"
            );
        }
    }
}

#[test]
fn a_large_input_goes_through_and_a_command_may_leave_it() {
    let project = Project::new(&BEFORE);
    let done = finish(shell(
        &project,
        "head -c 100000000 /dev/zero | tidelock exec -- wc -c; yes | tidelock exec -- head -n 2",
    ));
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "100000000\ny\ny\n"),
        "{done:?}"
    );
}

#[test]
fn a_script_keeps_the_input_that_its_commands_do_not_read() {
    let project = Project::new(&[("list", "a\nb\nc\n")]);
    for line in [
        "while read name; do tidelock exec -- true; echo $name; done < list",
        "cat list | while read name; do tidelock job run --wait -- true; echo $name; done",
        "{ tidelock job run --wait -- sh -c 'read x; echo $x'; cat; } < list",
        "cat list | { tidelock exec -- sh -c 'read x; echo $x'; cat; }",
    ] {
        let done = finish(shell(&project, line));
        assert_eq!(
            (done.code, done.stdout.as_str()),
            (Some(0), "a\nb\nc\n"),
            "{line}: {done:?}"
        );
    }
}

#[test]
fn an_input_that_never_ends_keeps_nobody_who_does_not_read_it() {
    let project = Project::new(&BEFORE);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut command = project.command(&["exec", "--", "sh", "-c", "echo done"]);
    command.stdin(Stdio::from(reader));
    let done = finish(command);
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "done\n"), "{done:?}");
    drop(writer);
}

#[test]
fn what_was_cut_off_with_its_client_is_not_applied() {
    let project = Project::new(&BEFORE);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut command = project.command(&["exec", "--apply", "--", "sh", "-c", "echo begun; cat > a.txt"]);
    command.stdin(Stdio::from(reader));
    let mut running = Beside::start(&project.world, command);
    running.wait_for_stdout("begun");
    File::from(writer.try_clone().unwrap())
        .write_all(b"half")
        .unwrap();
    let plan = project.shown("@")["id"].as_str().unwrap().to_owned();
    signal(running.pid(), Signal::KILL);
    running.wait();
    wait_for("the plan to be sealed", || {
        project.shown(&plan)["state"] == "sealed"
    });
    assert_eq!(project.tree(), crate::plan_stage::files(&BEFORE));
    drop(writer);
}

#[test]
fn a_file_is_left_where_the_command_stopped_reading() {
    let project = Project::new(&BEFORE);
    let path = project.world.path().join("numbers");
    std::fs::write(&path, "0123456789".repeat(100_000)).unwrap();
    let mut file = File::open(&path).unwrap();
    let mut first = [0; 10];
    file.read_exact(&mut first).unwrap();
    let mut command = project.command(&["exec", "--", "dd", "bs=1000", "count=3", "status=none"]);
    command.stdin(Stdio::from(file.try_clone().unwrap()));
    let done = finish_within(command, crate::harness::COMMAND_LIMIT).expect(0);
    assert_eq!(done.stdout.len(), 3000);
    assert_eq!(file.stream_position().unwrap(), 3010);
}
