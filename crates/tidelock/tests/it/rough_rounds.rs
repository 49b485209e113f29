//! A workspace that is treated badly, round after round: agents that make too much of everything, a small disk, few open files,
//! submodules, symlinks, a program that holds a file open while it is replaced, kills at random moments, and a user who edits in
//! between. After each round nothing may be stuck, and nothing that was saved may be lost without a word.
//!
//! `TIDELOCK_ROUGH_ROUNDS` is the number of rounds, `TIDELOCK_CRASH_SEED` plays a run again as far as chance is ours.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::crash_rounds::Numbers;
use crate::harness::{Outcome, World, finish, wait_for};
use crate::job_stage::{Beside, NOBODY, left_behind};
use crate::plan_fire::Thing;
use crate::plan_fire::image_but;
use crate::plan_stage::Project;
use crate::requests::send;
use daemon::Liveness;

/// How many rounds are played, unless `TIDELOCK_ROUGH_ROUNDS` says so. Each kind of work comes at least once.
const USUAL_ROUNDS: u64 = 14;
/// The disk of everything: the workspace, the sandboxes and the log.
const DISK: &str = "size=800m";
/// How many files the daemon may have open where it may have few, and how many an agent then makes or changes.
const FEW_OPEN_FILES: u32 = 256;
const MANY: u32 = 400;

/// What an agent does in its sandbox, after it has left its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    ChangeMany,
    MakeMany,
    MakeSparse,
    FillDisk,
    DropLink,
    InSubmodule,
    InNestedRepository,
    MakeRepository,
    LongPath,
    Specials,
    Commit,
    LockedDirectory,
    Leave,
    Nothing,
}

const WORKS: [Work; 14] = [
    Work::ChangeMany,
    Work::MakeMany,
    Work::MakeSparse,
    Work::FillDisk,
    Work::DropLink,
    Work::InSubmodule,
    Work::InNestedRepository,
    Work::MakeRepository,
    Work::LongPath,
    Work::Specials,
    Work::Commit,
    Work::LockedDirectory,
    Work::Leave,
    Work::Nothing,
];

impl Work {
    /// As a line for the shell.
    fn line(self, round: u64) -> String {
        match self {
            Work::ChangeMany => "sed -i s/^line.*/changed/ many/*".to_owned(),
            Work::MakeMany => format!("mkdir -p made{round}; i=0; while [ $i -lt {MANY} ]; do echo $i > made{round}/$i; i=$((i+1)); done"),
            Work::MakeSparse => "truncate -s 1T sparse".to_owned(),
            Work::FillDisk => "yes | head -c 2G > fill 2>/dev/null; true".to_owned(),
            Work::DropLink => "rm link; sed -i s/^line.*/changed/ many/*; sed -i 's/^shared.*/shared by the plan/' shared.txt".to_owned(),
            Work::InSubmodule => format!("echo {round} >> sub/inside.txt"),
            Work::InNestedRepository => format!("echo {round} >> nested/inside.txt"),
            Work::MakeRepository => format!("git init -q new{round}; echo {round} > new{round}/inside.txt"),
            // Longer than any path that the system takes in one piece.
            Work::LongPath => {
                let name = "n".repeat(200);
                format!("i=0; while [ $i -lt 25 ]; do mkdir {name}; cd -P {name}; i=$((i+1)); done; echo deep > deep; true")
            }
            Work::Specials => "mkfifo pipe; ln -s nowhere dangling; ln -s / root; mkdir empty; printf x > \"$(printf 'new\\nline')\"".to_owned(),
            Work::Commit => format!("git checkout -q -b agent{round}; git add -A; git -c user.name=a -c user.email=a@example.com commit -qm 'by the agent'"),
            Work::LockedDirectory => format!("mkdir locked{round}; echo {round} > locked{round}/inside; chmod 000 locked{round}"),
            Work::Leave => "setsid sh -c 'while :; do echo more >> grows; sleep 0.01; done' >/dev/null 2>&1 & true".to_owned(),
            Work::Nothing => "true".to_owned(),
        }
    }
}

/// When the daemon is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    Never,
    /// While the command runs, or while what it changed is recorded.
    Working,
    /// While the plan is applied.
    Landing,
}

/// One world for all rounds, on a small disk of its own. Dropping it unmounts the disk.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Disk> {
        fs::create_dir(at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(at);
        (finish(mount).code == Some(0)).then(|| Disk(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        unmount.arg("--lazy").arg(&self.0);
        drop(unmount.status());
    }
}

/// The files that everything begins with.
fn furnish(project: &Project) {
    for number in 0..MANY {
        project.write(&format!("many/{number}"), "line\n1\n2\n3\n");
    }
    project.write("shared.txt", "shared\n1\n2\n3\n4\n5\n6\n7\n8\n");
    project.write("notes.txt", "notes\n1\n2\n3\n");
    project.write(".gitignore", "node_modules\n");
    project.write("node_modules/package/index.js", "0\n");
    symlink("shared.txt", project.root.join("link")).unwrap();
    let outside = project.world.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for (name, at) in [
        ("outside", outside.as_path()),
        ("nested", &project.root.join("nested")),
    ] {
        fs::create_dir_all(at).unwrap();
        let git = format!(
            "git init -q -b main . && echo {name} > inside.txt && git add -A && \
             git -c user.name=a -c user.email=a@example.com commit -qm first"
        );
        let mut shell = Command::new("sh");
        shell.args(["-ec", &git]).current_dir(at);
        finish(shell).expect(0);
    }
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    let outside = outside.to_str().unwrap();
    project.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        outside,
        "sub",
    ]);
    project.git(&[
        "add",
        "shared.txt",
        "notes.txt",
        "many",
        "link",
        ".gitignore",
        "sub",
    ]);
    project.git(&["commit", "--quiet", "--message=first"]);
}

/// The state of one run.
struct Rough {
    project: Project,
    numbers: Numbers,
    /// What the user has saved, a line each.
    saved: Vec<String>,
    about: String,
}

impl Rough {
    fn chance(&mut self, one_in: u64) -> bool {
        self.numbers.below(one_in) == 0
    }

    /// Starts a daemon, which may have few open files.
    fn up(&mut self) {
        if self.project.world.owner().is_some() {
            return;
        }
        let few = self.chance(2);
        let mut up = self.project.command(&[]);
        if few {
            let program = up.get_program().to_owned();
            let mut limited = Command::new("prlimit");
            limited
                .arg(format!("--nofile={FEW_OPEN_FILES}"))
                .arg(program)
                .arg("up");
            limited.current_dir(&self.project.root).envs(
                up.get_envs()
                    .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))),
            );
            up = limited;
        } else {
            up.arg("up");
        }
        let said = finish(up);
        assert_eq!(said.code, Some(0), "{}: up: {said:?}", self.about);
    }

    /// The user appends a line to a file, as an editor would.
    fn save(&mut self, file: &str, round: u64) {
        let mark = format!("mark {round} {}", self.saved.len());
        let at = self.project.root.join(file);
        let text = fs::read_to_string(&at).unwrap_or_default();
        let part = self.project.world.path().join("part");
        // Where there is no room nothing is saved, and an editor would say so.
        if fs::write(&part, format!("{text}{mark}\n")).is_ok() && fs::rename(&part, &at).is_ok() {
            self.saved.push(mark);
        }
    }

    /// What the user does between a kill and the next start, so that what is recovered meets something else.
    fn interfere(&mut self, round: u64) {
        let link = self.project.root.join("link");
        if self.chance(2) && fs::remove_file(&link).is_ok() | !link.exists() {
            self.save("link", round);
        }
        if self.chance(2) {
            let shared = self.project.root.join("shared.txt");
            let text = fs::read_to_string(&shared).unwrap_or_default();
            let mark = format!("mark {round} {}", self.saved.len());
            if fs::write(&shared, text.replacen("shared", &format!("{mark}\nshared"), 1)).is_ok() {
                self.saved.push(mark);
            }
        }
        self.save("notes.txt", round);
    }

    fn get(&self, path: &str) -> Value {
        let answer = send(&self.project.world.home(), "GET", path, "");
        let answer = answer.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.about));
        assert_eq!(answer.status, 200, "{}: {path}: {answer:?}", self.about);
        answer.body
    }

    /// The plans that are neither applied nor given up.
    fn unfinished(&self) -> Vec<Value> {
        let plans = self.get("/v1/plans?limit=100");
        let over = ["applied", "discarded", "undone"];
        let mut plans = plans["plans"].as_array().unwrap().clone();
        plans.retain(|plan| !over.contains(&plan["state"].as_str().unwrap()));
        plans
    }

    /// Waits until no command and no capture is on its way.
    fn settle(&self) {
        wait_for(&format!("{}: nothing to be running", self.about), || {
            let jobs = self.get("/v1/jobs?limit=100");
            let mut jobs = jobs["jobs"].as_array().unwrap().iter();
            let idle = jobs.all(|job| job["ended_at"].is_string());
            idle && self
                .unfinished()
                .iter()
                .all(|plan| plan["running"].as_array().is_none_or(Vec::is_empty))
        });
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.project.run(arguments)
    }

    /// Runs something beside the test, kills the daemon at a random moment of it, and starts another one. The user is not idle
    /// meanwhile.
    fn cut_short(&mut self, arguments: &[&str], within: Duration, round: u64) {
        let mut beside = Beside::start(&self.project.world, self.project.command(arguments));
        let most = u64::try_from(within.as_micros()).unwrap().max(1);
        let moment = Duration::from_micros(self.numbers.below(most));
        thread::sleep(moment); // tidy: the moment of the kill is the point
        if self.project.world.owner().is_some() {
            self.project.world.kill();
        }
        self.interfere(round);
        self.up();
        // It has waited for the next daemon, and hears from it what has become of its work.
        beside.wait();
    }

    /// One round: an agent works, its work is landed or given up, and then everything has to be as good as new.
    fn round(&mut self, round: u64) {
        let work = WORKS[usize::try_from(round).unwrap() % WORKS.len()];
        let kill = match self.numbers.below(3) {
            0 => Kill::Never,
            1 => Kill::Working,
            _ => Kill::Landing,
        };
        self.about = format!("round {round}, {work:?}, killed: {kill:?}");
        println!("{}", self.about);
        self.up();
        self.save("notes.txt", round);
        let mark = format!("agent{round}.txt");
        let line = format!("echo {round} > {mark}; {}", work.line(round));
        let exec = ["exec", "--", "sh", "-c", &line];
        if kill == Kill::Working {
            self.cut_short(&exec, Duration::from_millis(700), round);
        } else {
            let said = self.run(&exec);
            self.nothing_went_silently(&said, &mark);
        }
        self.settle();
        self.land(round, kill);
        self.leave_nothing_open();
        self.as_good_as_new(round);
    }

    /// A command that ended well has its mark in a plan, or says that something is missing.
    fn nothing_went_silently(&self, said: &Outcome, mark: &str) {
        if said.code != Some(0) {
            // Whatever went wrong is said.
            assert!(!said.stderr.trim().is_empty(), "{}: {said:?}", self.about);
            return;
        }
        let recorded = self.unfinished().iter().any(|plan| {
            let id = plan["id"].as_str().unwrap();
            self.run(&["plan", "cat", id, mark]).code == Some(0)
        });
        assert!(
            recorded,
            "{}: the work is gone, and it ended well: {said:?}",
            self.about
        );
    }

    /// Applies what there is, maybe killed, with a program that holds a file open meanwhile; and takes some of it back.
    fn land(&mut self, round: u64, kill: Kill) {
        let plans: Vec<String> = self
            .unfinished()
            .iter()
            .map(|plan| plan["id"].as_str().unwrap().to_owned())
            .collect();
        for plan in plans {
            if self.chance(4) {
                continue; // It is given up in the end.
            }
            let held = File::options()
                .append(true)
                .open(self.project.root.join("many/1"));
            let writer = held.ok().map(|mut held| {
                let mark = format!("mark {round} {}", self.saved.len());
                self.saved.push(mark.clone());
                thread::spawn(move || {
                    // A moment in which the landing has begun.
                    thread::sleep(Duration::from_millis(30)); // tidy: the moment of the save is the point
                    // What is written into a file that has no name any more cannot be seen by anybody.
                    let has_name = held.metadata().is_ok_and(|file| file.nlink() > 0);
                    writeln!(held, "{mark}").is_ok() && has_name
                })
            });
            if kill == Kill::Landing {
                self.cut_short(&["plan", "apply", &plan], Duration::from_millis(250), round);
            } else {
                self.run(&["plan", "apply", &plan]);
            }
            if writer.is_some_and(|writer| !writer.join().unwrap()) {
                self.saved.pop();
            }
            let shown = self.get(&format!("/v1/plans/{plan}"));
            if shown["state"] == "applied" && self.chance(2) {
                self.run(&["plan", "undo", &plan]);
            }
        }
    }

    /// Whatever is still there can be given up.
    fn leave_nothing_open(&self) {
        for plan in self.unfinished() {
            let id = plan["id"].as_str().unwrap();
            let said = self.run(&["plan", "discard", id, "--force"]);
            assert_eq!(said.code, Some(0), "{}: discard: {said:?} of {plan}", self.about);
        }
        assert_eq!(self.unfinished(), [Value::Null; 0], "{}", self.about);
    }

    /// The workspace takes work again, nothing runs or is mounted, and every save is somewhere.
    fn as_good_as_new(&mut self, round: u64) {
        // What was to fill the disk may have been applied, and then it fills the disk.
        self.project.shell("rm -f fill");
        let mut fresh = self.project.root.join("agent-fresh");
        fresh.set_extension(round.to_string());
        let line = format!("echo {round} > {}", fresh.file_name().unwrap().to_str().unwrap());
        let said = self.run(&["exec", "--apply", "--", "sh", "-c", &line]);
        assert_eq!(said.code, Some(0), "{}: it is stuck: {said:?}", self.about);
        assert!(fresh.is_file(), "{}: not applied: {said:?}", self.about);
        self.settle();
        wait_for(&format!("{}: nothing left behind", self.about), || {
            left_behind(&self.project.world) == NOBODY
        });
        self.no_save_is_lost();
        self.tidy_up();
    }

    fn no_save_is_lost(&self) {
        let mut found = String::new();
        for root in [self.project.root.clone(), self.project.scratch().join("kept")] {
            if !root.is_dir() {
                continue;
            }
            for thing in image_but(&root, &[".git", "sub/.git", "nested/.git"]).into_values() {
                if let Thing::File(_, content) = thing {
                    found.push_str(&String::from_utf8_lossy(&content));
                    found.push('\n');
                }
            }
        }
        let kept: std::collections::HashSet<&str> = found.lines().collect();
        let lost: Vec<_> = self
            .saved
            .iter()
            .filter(|mark| !kept.contains(mark.as_str()))
            .collect();
        assert!(lost.is_empty(), "{}: lost: {lost:?}", self.about);
    }

    /// The user puts the furniture back.
    fn tidy_up(&mut self) {
        let link = self.project.root.join("link");
        if fs::read_link(&link).is_err() {
            let text = fs::read_to_string(&link).unwrap_or_default();
            self.saved.retain(|mark| !text.contains(mark.as_str()));
            drop(fs::remove_file(&link));
            symlink("shared.txt", &link).unwrap();
        }
        for number in 0..MANY {
            self.project.write(&format!("many/{number}"), "line\n1\n2\n3\n");
        }
        self.project
            .write("shared.txt", "shared\n1\n2\n3\n4\n5\n6\n7\n8\n");
        self.project.write("notes.txt", "notes\n1\n2\n3\n");
        self.saved.clear();
        self.project.shell("chmod -R u+rwX . ; rm -rf made* new* locked* agent* sparse fill pipe dangling root empty nnn* grows");
    }
}

#[test]
fn treated_badly_a_workspace_is_never_stuck_and_loses_nothing_without_a_word() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let seed = number("TIDELOCK_CRASH_SEED", now.as_secs());
    let rounds = number("TIDELOCK_ROUGH_ROUNDS", USUAL_ROUNDS);
    println!("the seed is {seed}");
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::mount(&place.path().join("disk"));
    let world = match &disk {
        Some(disk) => World::below(&disk.0),
        None => World::new(),
    };
    let project = Project::in_world(world, &[]);
    furnish(&project);
    let mut rough = Rough {
        project,
        numbers: Numbers(seed),
        saved: Vec::new(),
        about: String::new(),
    };
    let begun = Instant::now();
    for round in 0..rounds {
        rough.round(round);
    }
    println!("{rounds} rounds in {:?}", begun.elapsed());
    let owner = rough.project.world.owner().unwrap();
    rough.run(&["down"]).expect(0);
    wait_for("the daemon to be gone", || owner.liveness() == Liveness::Gone);
    drop(rough);
    drop(disk);
}
