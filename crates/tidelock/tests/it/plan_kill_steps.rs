//! A daemon that is killed at each step of an apply and of an undo: afterwards the workspace is all old or all new, and what
//! the daemon says agrees with it.

use std::path::Path;
use std::thread;

use crate::harness::wait_for;
use crate::plan_fire::{Died, Image, Thing, assert_same, image};
use crate::plan_stage::Project;

/// The workspace before.
const BEFORE: &str = r"
printf 'one\ntwo\nthree\nfour\nfive\nsix\n' > edit.txt; printf 'gone\n' > gone.txt; printf '#!/bin/sh\n' > script
printf 'a text that moves, and is known by its words\n' > from.txt; printf '\000\377' > binary; printf 'file\n' > to-dir
mkdir -p dir/sub dies/sub to-file empty; printf a > dir/sub/a; printf b > dies/sub/b; printf c > to-file/c
ln -s edit.txt link; ln -s dir link-dies";

/// Every kind of effect.
const WORK: &str = r"
umask 022
sed -i s/two/2/ edit.txt; rm gone.txt; chmod +x script; mv from.txt to.txt; printf '\001\376' > binary
rm to-dir; mkdir to-dir; echo inside > to-dir/inside; rm -r dies to-file; echo a file now > to-file; rmdir empty
mkdir -p new/deep hollow; echo new > new/deep/file; ln -sfn dir link; rm link-dies; ln -s edit.txt link-new
echo more >> dir/sub/a";

/// What a workspace must be after the restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Old,
    New,
}
use Expected::{New, Old};

/// The steps that an apply and an undo reach, in their order. Steps of one path are reached once for each path; a number is
/// the one that is meant.
const STEPS: [(&str, Expected); 31] = [
    ("AreaMade", Old),
    ("ContentStaged", Old),
    ("ContentStaged:4", Old),
    ("ContentsSynced", Old),
    ("Complete", Old),
    ("Begun", New),
    ("TakingOut", New),
    ("TakingOut:3", New),
    ("TakenOut", New),
    ("TakenOut:3", New),
    ("TakenOut:5", New),
    ("StandInMade", New),
    ("StandInMade:2", New),
    ("Exchanging", New),
    ("Exchanging:3", New),
    ("Exchanged", New),
    ("Exchanged:2", New),
    ("Exchanged:4", New),
    ("PuttingIn", New),
    ("PuttingIn:3", New),
    ("PutIn", New),
    ("PutIn:4", New),
    ("AllCarriedOut", New),
    ("DirectoriesSynced", New),
    ("Ending", New),
    ("Ended", New),
    ("Removing", New),
    ("Removing:3", New),
    ("Removed", New),
    ("Removed:4", New),
    ("Cleaning", New),
];

/// Steps that are reached only when somebody else writes as well, or where the file system cannot exchange.
const NOT_ALONE: [&str; 11] = [
    "MovedAside",
    "MovedIn",
    "PuttingBack",
    "PutBack",
    "AgainStaged",
    "AgainNoted",
    "BackMarked",
    "TakingBack",
    "TakenBack",
    "AllTakenBack",
    "Recovering",
];

/// A plan in a workspace, and both images.
struct Scene {
    project: Project,
    plan: String,
    old: Image,
    new: Image,
}

impl Scene {
    /// A plan with work in it, and the workspace as it will be.
    fn new() -> Scene {
        let project = Project::new(&[]);
        project.shell(BEFORE);
        let old = image(&project.root);
        let plan = project.open(&[]);
        project.work(&plan, WORK);
        project.run(&["plan", "seal", &plan]).expect(0);
        // What a user gets who does the same by hand.
        let by_hand = project.world.path().join("by-hand");
        let line = format!("cp -a . {0}; cd {0}; {WORK}", by_hand.display());
        project.shell(&line);
        let new = image(&by_hand);
        Scene {
            project,
            plan,
            old,
            new,
        }
    }

    fn image(&self, expected: Expected) -> &Image {
        match expected {
            Old => &self.old,
            New => &self.new,
        }
    }

    #[track_caller]
    fn check(&self, expected: &Image, state: &str, about: &str) {
        assert_same(&image(&self.project.root), expected, about);
        assert_eq!(self.project.state_of(&self.plan), state, "{about}");
        self.project.nothing_is_left(about);
    }

    /// Dies at a step of a command, starts again, and looks; then the command is given again, and the workspace is new.
    fn killed_at(&self, verb: &str, step: &str, expected: Expected) {
        let (about, arguments) = (format!("{verb} at {step}"), ["plan", verb, &self.plan]);
        // An undo goes from what is applied to what is not.
        let (before, after, from, to) = match verb {
            "apply" => (Old, New, "sealed", "applied"),
            _ => (New, Old, "applied", "undone"),
        };
        let from = match self.project.state_of(&self.plan).as_str() {
            // It was applied and taken back in an earlier round.
            "undone" => "undone",
            _ => from,
        };
        let died = self.project.die_at(step, &arguments);
        let Died::Yes(said) = died else {
            panic!("{about}: it is not reached: {died:?}");
        };
        assert_ne!(said.code, Some(0), "{about}: {said:?}");
        self.project.run(&["up"]).expect(0);
        let (expected, state) = match expected {
            Old => (before, from),
            New => (after, to),
        };
        self.check(self.image(expected), state, &about);
        let again = self.project.run(&arguments);
        if state == to {
            let words = format!("is {to}; that cannot be done now");
            assert!(
                again.code == Some(4) && again.stderr.contains(&words),
                "{about}: {again:?}"
            );
        } else {
            again.expect(0);
        }
        self.check(self.image(after), to, &about);
    }
}

/// How many daemons are killed at the same time.
const AT_ONCE: usize = 3;

#[test]
fn killed_at_every_step_of_apply_and_undo_it_is_all_old_or_all_new() {
    thread::scope(|scope| {
        for first in 0..AT_ONCE {
            scope.spawn(move || {
                let scene = Scene::new();
                for (step, expected) in STEPS.iter().skip(first).step_by(AT_ONCE) {
                    scene.killed_at("apply", step, *expected);
                    scene.killed_at("undo", step, *expected);
                }
            });
        }
    });
}

#[test]
fn the_last_step_leaves_nothing_to_do_and_others_are_not_reached() {
    let scene = Scene::new();
    scene.killed_at("apply", "Cleaned", New);
    scene.killed_at("undo", "Cleaned", New);
    for (number, step) in NOT_ALONE.iter().enumerate() {
        let verb = ["apply", "undo"][number % 2];
        let died = scene.project.die_at(step, &["plan", verb, &scene.plan]);
        let Died::No(said) = died else {
            panic!("{verb} reaches {step}: {died:?}");
        };
        said.expect(0);
    }
}

/// What the user does to `edit.txt` while no daemon runs, where it is then killed again, and what comes of it.
const MEANWHILE: [(&str, &[&str], Expected); 2] = [
    // Another line: both changes are in it.
    (
        "s/five/5/",
        &[
            "Recovering",
            "Recovering:6",
            "AgainStaged",
            "AgainNoted",
            "DirectoriesSynced",
            "Ending",
            "Ended",
            "Cleaning",
        ],
        New,
    ),
    // The same line: it is taken back.
    (
        "s/two/zwei/",
        &[
            "BackMarked",
            "TakingBack",
            "TakingBack:3",
            "TakenBack",
            "TakenBack:5",
            "AllTakenBack",
            "Ending",
            "Ended",
            "Cleaning",
        ],
        Old,
    ),
];

#[test]
fn killed_and_killed_again_in_recovery_what_the_user_saved_between_is_there() {
    thread::scope(|scope| {
        for (edit, steps, expected) in MEANWHILE {
            scope.spawn(move || {
                for step in steps {
                    killed_twice(edit, step, expected);
                }
            });
        }
    });
}

fn killed_twice(edit: &str, step: &str, expected: Expected) {
    let about = format!("{edit}, then {step}");
    let mut scene = Scene::new();
    let died = scene.project.die_at("Begun", &["plan", "apply", &scene.plan]);
    assert!(matches!(died, Died::Yes(_)), "{about}: {died:?}");
    // By rename, and in all three: in the workspace, and in what it is compared with.
    let line = format!("sed -i {edit} edit.txt");
    scene.project.shell(&line);
    for image in [&mut scene.old, &mut scene.new] {
        let path = Path::new("edit.txt");
        let Some(Thing::File(_, text)) = image.get_mut(path) else {
            panic!("{about}: it is a file");
        };
        let (from, to) = edit[2..edit.len() - 1].split_once('/').unwrap();
        *text = String::from_utf8(text.clone())
            .unwrap()
            .replace(from, to)
            .into_bytes();
    }
    let said = scene.project.up_to_die_at(step);
    assert_ne!(said.code, Some(0), "{about}: it is not reached");
    wait_for("the daemon to be gone", || scene.project.world.owner().is_none());
    scene.project.run(&["up"]).expect(0);
    let state = if expected == New { "applied" } else { "sealed" };
    let shown = scene.project.shown(&scene.plan);
    scene.check(
        scene.image(expected),
        state,
        &format!("{about}: {}", shown["refused"]),
    );
    if expected == Old {
        assert_eq!(shown["refused"]["what"], "apply", "{about}: {shown}");
        let again = scene.project.run(&["plan", "apply", &scene.plan]).expect(1);
        assert!(again.stdout.contains("edit.txt"), "{about}: {again:?}");
        scene.check(&scene.old, "sealed", &about);
    }
}
