//! Somebody saves the same files all the time while plans are applied and taken back: every save is in a file in the end, or
//! in what was kept of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::plan_fire::{Thing, image};
use crate::plan_stage::Project;
use crate::requests::send;

/// How many plans are applied, and taken back if that is possible.
const ROUNDS: usize = 30;
/// Saves come in bursts, with a pause after each. Where they never pause, no apply finds a moment to begin in.
const BURST: usize = 12;
const BETWEEN_SAVES: Duration = Duration::from_millis(3);
const BETWEEN_BURSTS: Duration = Duration::from_millis(150);
/// What a file is at first: a line for plans, and some that nobody touches, so that changes do not meet.
const FIRST: &str = "plan -\n1\n2\n3\n4\n5\n6\n7\n8\n";

/// How a writer saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// At the end of the file that is there.
    Append,
    /// Over the file that is there, all of it.
    InPlace,
    /// By a new file that is renamed over the old one.
    Rename,
}

const WRITERS: [(&str, Way); 4] = [
    ("append.txt", Way::Append),
    ("in-place.txt", Way::InPlace),
    ("rename.txt", Way::Rename),
    ("sub/rename.txt", Way::Rename),
];

/// Saves a mark. `false` if the file had no name any more when it was written: nobody can know of that, so it is saved again.
fn save(at: &Path, part: &Path, way: Way, mark: &str) -> bool {
    match way {
        Way::Append => {
            let mut file = fs::File::options().append(true).open(at).unwrap();
            file.write_all(format!("{mark}\n").as_bytes()).unwrap();
            file.metadata().unwrap().nlink() > 0
        }
        Way::InPlace => {
            let text = fs::read_to_string(at).unwrap();
            let mut file = fs::File::options().write(true).truncate(true).open(at).unwrap();
            file.write_all(format!("{text}{mark}\n").as_bytes()).unwrap();
            file.metadata().unwrap().nlink() > 0
        }
        Way::Rename => {
            let text = fs::read_to_string(at).unwrap();
            fs::write(part, format!("{text}{mark}\n")).unwrap();
            fs::rename(part, at).unwrap();
            true
        }
    }
}

/// Saves marks until it is told to stop, and says which.
fn write_until_stopped(project: &Project, writer: usize, stop: &AtomicBool) -> Vec<String> {
    let (name, way) = WRITERS[writer];
    let (at, mut marks) = (project.root.join(name), Vec::new());
    // Beside the workspace, so that no plan finds it half-written.
    let part = project.world.path().join(format!("part{writer}"));
    while !stop.load(Ordering::Relaxed) {
        let mark = format!("mark {writer} {}", marks.len());
        if save(&at, &part, way, &mark) {
            marks.push(mark);
        }
        let is_last = marks.len() % BURST == 0;
        thread::sleep(if is_last { BETWEEN_BURSTS } else { BETWEEN_SAVES }); // tidy: people pause between saves
    }
    marks
}

/// Every mark in some files.
fn marks_in(root: &Path) -> BTreeSet<String> {
    let mut marks = BTreeSet::new();
    for thing in image(root).into_values() {
        if let Thing::File(_, content) = thing {
            let text = String::from_utf8_lossy(&content).into_owned();
            marks.extend(
                text.lines()
                    .filter(|line| line.starts_with("mark "))
                    .map(str::to_owned),
            );
        }
    }
    marks
}

/// What became of all attempts.
#[derive(Debug, Default)]
struct Tally {
    done: usize,
    conflicted: usize,
    /// Nothing was begun, because a file was saved each time before it could be.
    refused: usize,
    /// What the daemon could not do.
    broken: Vec<String>,
    kept: usize,
    merged: usize,
}

impl Tally {
    /// Asks for an apply or an undo, and counts what came of it. Says whether it was done.
    fn ask(&mut self, project: &Project, path: &str, body: &Value) -> bool {
        let answer = send(&project.world.home(), "POST", path, &body.to_string()).unwrap();
        if answer.status == 409 && answer.body["code"] == "plan_busy" {
            self.refused += 1;
            return false;
        }
        if answer.status != 200 {
            self.broken.push(format!("{path}: {}", answer.body));
            return false;
        }
        self.add(&answer.body)
    }

    /// Counts an outcome, and checks that what it says is kept is there.
    fn add(&mut self, outcome: &Value) -> bool {
        let list = |name: &str| outcome[name].as_array().cloned().unwrap_or_default();
        self.merged += list("paths").iter().filter(|path| path["merged"] == true).count();
        for note in list("notes") {
            let note = note.as_str().unwrap().to_owned();
            if let Some((_, at)) = note.split_once("is kept in ") {
                assert!(PathBuf::from(at).is_file(), "{note}");
                self.kept += 1;
            }
        }
        match outcome["outcome"].as_str() {
            Some("done") => self.done += 1,
            Some("conflicted") => {
                assert!(!list("conflicts").is_empty(), "{outcome}");
                self.conflicted += 1;
            }
            _ => panic!("{outcome}"),
        }
        outcome["outcome"] == "done"
    }
}

/// Opens a plan that changes the first line of every file, as far as it finds one.
fn plan_of(project: &Project, round: usize) -> String {
    let opened = project.ask("POST", "/v1/plans", &json!({ "directory": project.root }), 201);
    let plan = opened["id"].as_str().unwrap().to_owned();
    let line = format!("for file in *.txt sub/*.txt; do sed -i 's/^plan .*/plan {round}/' $file; done");
    project.work(&plan, &line);
    plan
}

#[test]
fn every_save_is_in_the_file_or_kept_while_plans_come_and_go() {
    let files = WRITERS.map(|(name, _)| (name, FIRST));
    let project = Project::new(&files);
    project.run(&["up"]).expect(0);
    let stop = AtomicBool::new(false); // tidy: a test tells its writers to stop
    let (marks, tally) = thread::scope(|scope| {
        let (project, stop) = (&project, &stop);
        let writers: Vec<_> = (0..WRITERS.len())
            .map(|writer| scope.spawn(move || write_until_stopped(project, writer, stop)))
            .collect();
        // A round that fails must not leave the writers running.
        let rounds = scope.spawn(move || {
            let mut tally = Tally::default();
            for round in 0..ROUNDS {
                let plan = plan_of(project, round);
                if tally.ask(project, "/v1/plans/apply", &json!({ "plans": [plan] })) {
                    tally.ask(project, &format!("/v1/plans/{plan}/undo"), &json!({}));
                }
            }
            tally
        });
        let tally = rounds.join();
        stop.store(true, Ordering::Relaxed);
        let marks: Vec<String> = writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect();
        (marks, tally.unwrap())
    });
    let (in_files, kept) = (marks_in(&project.root), marks_in(&project.scratch().join("kept")));
    let lost: Vec<&String> = marks
        .iter()
        .filter(|mark| !in_files.contains(*mark) && !kept.contains(*mark))
        .collect();
    let only_kept = marks.iter().filter(|mark| !in_files.contains(*mark)).count();
    println!(
        "{} saves, {only_kept} of them only in what was kept; {tally:?}",
        marks.len()
    );
    assert!(
        lost.is_empty(),
        "{} of {} saves are lost: {lost:?}",
        lost.len(),
        marks.len()
    );
    let log = || fs::read_to_string(project.world.home().state.join("daemon.log")).unwrap_or_default();
    assert!(tally.broken.is_empty(), "{tally:?}\n{}", log());
    assert!(tally.done > 0 && tally.merged > 0, "{tally:?}");
    project.nothing_is_left("after all rounds");
}
