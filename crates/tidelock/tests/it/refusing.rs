//! A disk that is full: what must be kept is refused and says so, everything else goes on, and room heals it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{World, wait_for};
use crate::requests::{events, force, send};
use crate::tools::skip;

/// A small file system in memory. Dropping it takes it away.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(path: &Path) -> Result<SmallDisk, String> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs"])
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
    fn fill(&self) {
        let mut filler = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path.join("filler"))
            .unwrap();
        for size in [65_536, 4096, 1] {
            while filler.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
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
    let disk = match SmallDisk::mount(&home.state) {
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
