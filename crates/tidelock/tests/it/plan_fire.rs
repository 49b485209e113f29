//! What the tests of plans under fire have in common: whole images of directories, daemons that die where they are told to,
//! and a look at what is left.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use daemon::Liveness;
use serde_json::{Value, json};

use crate::harness::{Outcome, World, finish, wait_for};
use crate::job_stage::{NOBODY, left_behind};
use crate::plan_stage::Project;
use crate::requests::send;

/// Something in a directory, with all that a person could see of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Directory(u32),
    File(u32, Vec<u8>),
    Symlink(PathBuf),
    /// A socket, a pipe or a device.
    Special,
}

/// Everything below a directory.
pub(crate) type Image = BTreeMap<PathBuf, Thing>;

/// Everything below a directory, byte for byte.
pub(crate) fn image(root: &Path) -> Image {
    image_but(root, &[])
}

/// The same without what is at some paths.
pub(crate) fn image_but(root: &Path, left_out: &[&str]) -> Image {
    let mut image = Image::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if left_out.iter().any(|out| name == Path::new(out)) {
                continue;
            }
            let about = fs::symlink_metadata(&path).unwrap();
            let mode = about.permissions().mode() & 0o7777;
            let thing = if about.is_dir() {
                open.push(path);
                Thing::Directory(mode)
            } else if about.is_symlink() {
                Thing::Symlink(fs::read_link(&path).unwrap())
            } else if about.is_file() {
                Thing::File(mode, fs::read(&path).unwrap())
            } else {
                Thing::Special
            };
            image.insert(name, thing);
        }
    }
    image
}

/// What is different, by path. Two images as they are would fill pages.
pub(crate) fn difference(one: &Image, other: &Image) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = one.keys().chain(other.keys()).cloned().collect();
    paths.retain(|path| one.get(path) != other.get(path));
    paths.sort();
    paths.dedup();
    paths
}

/// Fails unless both are the same.
#[track_caller]
pub(crate) fn assert_same(found: &Image, expected: &Image, about: &str) {
    let difference = difference(found, expected);
    let shown: Vec<_> = difference
        .iter()
        .take(10)
        .map(|path| (path, found.get(path), expected.get(path)))
        .collect();
    assert!(
        difference.is_empty(),
        "{about}: {} differ: {shown:?}",
        difference.len()
    );
}

impl Project {
    /// Runs a line of the shell in the workspace itself, as its user would.
    #[track_caller]
    pub(crate) fn shell(&self, line: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", line]).current_dir(&self.root);
        finish(command).expect(0);
    }

    /// Starts a daemon that kills itself when a landing has reached a step.
    pub(crate) fn up_to_die_at(&self, step: &str) -> Outcome {
        let mut up = self.command(&["up"]);
        up.env("TIDELOCK_KILL_AT", step);
        finish(up)
    }

    /// Lets a daemon that shall die do so during a command.
    #[track_caller]
    pub(crate) fn die_at(&self, step: &str, arguments: &[&str]) -> Died {
        if self.world.owner().is_some() {
            self.world.kill();
        }
        self.up_to_die_at(step).expect(0);
        let before = self.world.owner().expect("it is up");
        let said = self.run(arguments);
        if said.code == Some(0) {
            return Died::No(said);
        }
        // Its connections are closed a moment before it is gone.
        wait_for("the daemon to be gone", || before.liveness() == Liveness::Gone);
        Died::Yes(said)
    }

    /// What the daemon says to a request that must be answered with this status.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = send(&self.world.home(), method, path, &body).unwrap();
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        answer.body
    }

    /// The state of a plan, in one word.
    #[track_caller]
    pub(crate) fn state_of(&self, plan: &str) -> String {
        let shown = self.ask("GET", &format!("/v1/plans/{plan}"), &json!(null), 200);
        shown["state"].as_str().unwrap().to_owned()
    }

    /// The scratch space of plans.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.world.home().state.join("plans")
    }

    /// Fails if anything is still staged, mounted or running.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self, about: &str) {
        let staged: Vec<_> = fs::read_dir(self.scratch().join("staging"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(staged.is_empty(), "{about}: something is staged: {staged:?}");
        assert!(
            !self.root.join(".tidelock").exists(),
            "{about}: something is staged inside"
        );
        assert_eq!(mounts(&self.world), [""; 0], "{about}: something is mounted");
        wait_for(&format!("{about}: nothing to run any more"), || {
            left_behind(&self.world) == NOBODY
        });
    }
}

/// Whether a daemon has died, and how the command ended that met it.
#[derive(Debug)]
pub(crate) enum Died {
    Yes(Outcome),
    No(Outcome),
}

/// What is mounted below a world, as the test and as the daemon see it.
fn mounts(world: &World) -> Vec<String> {
    let place = world.path().canonicalize().unwrap().display().to_string();
    let of = |who: &str| fs::read_to_string(format!("/proc/{who}/mountinfo")).unwrap_or_default();
    let daemon = world.owner().map(|owner| owner.pid.to_string());
    let mut all = of("self");
    all.push_str(&daemon.map(|pid| of(&pid)).unwrap_or_default());
    all.lines()
        .filter(|line| line.contains(&place))
        .map(str::to_owned)
        .collect()
}
