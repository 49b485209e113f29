//! A disk that is full: what must be kept is refused and says so, everything else goes on, and room heals it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{World, wait_for};
use crate::job_stage::{Beside, finish_bytes, job_command, shown};
use crate::plan_stage::Project;
use crate::requests::{events, force, send};
use crate::tools::skip;

/// A small file system in memory. Dropping it takes it away.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    pub(crate) fn mount(path: &Path, size: &str) -> Result<SmallDisk, String> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"])
            .arg(path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Ok(SmallDisk {
                path: path.to_owned(),
            }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Takes all the room that is left.
    pub(crate) fn fill(&self) {
        let mut filler = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path.join("filler"))
            .unwrap();
        for size in [65_536, 4096, 1] {
            while filler.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    pub(crate) fn make_room(&self) {
        fs::remove_file(self.path.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A daemon that is about to be killed may still use it, so it goes away when the last one lets go.
        drop(Command::new("umount").arg("--lazy").arg(&self.path).output());
    }
}

#[test]
fn a_full_disk_refuses_what_must_be_kept_and_says_so_until_there_is_room() {
    let world = World::new();
    let home = world.home();
    let disk = match SmallDisk::mount(&home.state, "2m") {
        Ok(disk) => disk,
        Err(reason) => return skip(&format!("no small file system can be mounted: {reason}")),
    };
    world.run(&["breaker", "force", "a", "open"]).expect(0);
    disk.fill();
    // The log may have a little room of its own left.
    let mut acknowledged = 1;
    let refused = loop {
        let answer = force(&home, "a", if acknowledged % 2 == 0 { "open" } else { "closed" }).unwrap();
        if answer.status != 200 {
            break answer;
        }
        acknowledged += 1;
        assert!(
            acknowledged < 10_000,
            "the disk is full, and everything is written"
        );
    };
    assert_eq!(
        (refused.status, &refused.body["code"]),
        (503, &"log_refusing".into())
    );
    assert_eq!(
        refused.body["detail"],
        "The log refuses writes: the disk is full."
    );

    let readiness = send(&home, "GET", "/readyz", "").unwrap();
    assert_eq!(
        (readiness.status, &readiness.body["code"]),
        (503, &"log_refusing".into())
    );
    let health = send(&home, "GET", "/healthz", "").unwrap();
    assert_eq!(health.status, 200);
    // What was refused has changed nothing, and reads go on.
    let expected = if acknowledged % 2 == 0 {
        "forced_closed"
    } else {
        "forced_open"
    };
    let shown = world.run(&["breaker", "show", "a", "--json"]).expect(0).json();
    assert_eq!(shown["state"], expected);
    assert_eq!(events(&home, "a").len(), acknowledged);
    let failed = world.run(&["breaker", "reset", "a", "--json"]).expect(1).json();
    assert_eq!(failed["error"]["code"], "log_refusing");
    let status = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["log"], "refusing");
    let doctor = world.run(&["doctor", "--json"]).expect(1).json();
    let checks = doctor["checks"].as_array().unwrap();
    let log = checks.iter().find(|check| check["id"] == "log").unwrap();
    assert_eq!(log["state"], "failed");
    assert!(
        log["detail"]
            .as_str()
            .unwrap()
            .starts_with("refuses writes: the disk is full"),
        "{log}"
    );
    // What needs no log goes on.
    world.run(&["breaker", "record", "b", "failure"]).expect(0);

    disk.make_room();
    wait_for("the daemon to find out", || {
        send(&home, "GET", "/readyz", "").unwrap().status == 200
    });
    assert_eq!(force(&home, "a", "open").unwrap().status, 200);
    assert_eq!(events(&home, "a").len(), acknowledged + 1);
    world.kill();
    world.run(&["up"]).expect(0);
    assert_eq!(events(&home, "a").len(), acknowledged + 1);
    world.run(&["down"]).expect(0);
}

/// What an agent says goes into the log a piece at a time, and is acknowledged before it is on disk. A disk that is full takes
/// some of it back, and that must not look as if somebody else had taken the turn.
#[test]
fn a_turn_that_a_full_disk_cut_off_ends_when_there_is_room() {
    let project = Project::with_git(&[("a.txt", "one\n")]);
    let home = project.world.home();
    let disk = match SmallDisk::mount(&home.state, "16m") {
        Ok(disk) => disk,
        Err(reason) => return skip(&format!("no small file system can be mounted: {reason}")),
    };
    let words = "words ".repeat(2000);
    let script = project.script(
        "talk",
        &format!("steps:\n  - repeat:\n      times: 1000\n      steps:\n        - say: {{text: \"{words}\", every: 2ms}}\n"),
    );
    project
        .run(&["run", "--script", &script, "--detach", "talk"])
        .expect(0);
    wait_for("the agent to talk", || {
        let shown = project.session("@");
        shown["active"]["turn"].is_string()
    });
    disk.fill();
    wait_for("the log to refuse", || {
        send(&home, "GET", "/readyz", "").unwrap().status == 503
    });
    disk.make_room();
    wait_for("the turn to end", || project.session("@")["state"] == "idle");
    let turn = &project.session("@")["turns"][0];
    assert_eq!(
        (&turn["state"], &turn["error"]["code"]),
        (&"failed".into(), &"log_failed".into())
    );
    // The session is free, and nothing runs.
    let script = project.script("more", "steps:\n  - say: I am back.\n");
    let more = project
        .run(&["session", "send", "@", "--script", &script, "go on"])
        .expect(0);
    assert_eq!(more.stdout, "I am back.\n");
    project.run(&["down"]).expect(0);
}

/// What a command prints is acknowledged before it is on disk. A disk that is full takes some of it back while the command
/// succeeds, and nobody may be told that all is well.
#[test]
fn a_job_whose_output_a_full_disk_did_not_keep_is_no_silent_success() {
    let mut lost = 0;
    // More than the log has room for on a full disk, and less.
    for bytes in [12_000_000, 3_000_000, 60_000] {
        let world = World::new();
        let home = world.home();
        let disk = match SmallDisk::mount(&home.state, "16m") {
            Ok(disk) => disk,
            Err(reason) => return skip(&format!("no small file system can be mounted: {reason}")),
        };
        world.run(&["up"]).expect(0);
        let go = world.path().join("go");
        let line = format!(
            "echo begun; while ! test -e '{}'; do sleep 0.01; done; head -c {bytes} /dev/urandom",
            go.display()
        );
        let mut waiting = Beside::start(&world, job_command(&world, &["run", "--wait", "--shell", &line]));
        waiting.wait_for_stdout("begun");
        let listed = world.run(&["job", "list", "--json"]).expect(0).json();
        let id = listed["jobs"][0]["id"].as_str().unwrap().to_owned();
        disk.fill();
        fs::write(&go, "").unwrap();
        wait_for("the log to refuse, or the job to end", || {
            send(&home, "GET", "/readyz", "").unwrap().status == 503 || waiting.try_wait().is_some()
        });
        disk.make_room();
        let code = waiting.wait().code();
        let said = String::from_utf8(waiting.stderr()).unwrap();
        let job = shown(&world, &id);
        // The log may have had room of its own for a little.
        if job["output_bytes"].as_u64().unwrap() < bytes {
            lost += 1;
            assert_ne!(code, Some(0), "{said} {job}");
            assert!(said.contains("output"), "{said}");
            assert!(job["output_lost"].is_string(), "{job}");
            for command in ["wait", "logs"] {
                let again = finish_bytes(&world, job_command(&world, &[command, &id]));
                assert_ne!(again.code, Some(0), "{command} of {job}");
            }
        }
        world.run(&["down"]).expect(0);
    }
    assert!(lost > 0, "the disk had room for everything");
}
