//! A daemon that is killed at a random moment of an apply of two thousand files: no tree is ever mixed.
//!
//! `TIDELOCK_CRASH_SEED` plays a run again as far as chance is ours.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::crash_rounds::Numbers;
use crate::harness::World;
use crate::plan_fire::{Image, assert_same, image};
use crate::plan_stage::Project;
use crate::requests::send;

const FILES: u32 = 2000;
const ROUNDS: u64 = 10;

fn name(number: u32) -> String {
    format!("d{}/f{number}", number % 40)
}

/// Applies a plan, or takes it back, and says how long it took. Nothing if the daemon went before it could answer.
fn land(project: &Project, verb: &str, plan: &str) -> Option<Duration> {
    let begun = Instant::now();
    let (path, body) = match verb {
        "apply" => ("/v1/plans/apply".to_owned(), json!({ "plans": [plan] })),
        _ => (format!("/v1/plans/{plan}/undo"), json!({})),
    };
    let answer = send(&project.world.home(), "POST", &path, &body.to_string()).ok()?;
    assert_eq!(
        (answer.status, answer.body["outcome"].as_str()),
        (200, Some("done")),
        "{answer:?}"
    );
    Some(begun.elapsed())
}

#[test]
fn killed_at_random_in_an_apply_of_two_thousand_files_no_tree_is_mixed() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = std::env::var("TIDELOCK_CRASH_SEED").map_or(now.as_secs(), |text| text.parse().unwrap());
    println!("the seed is {seed}");
    let mut numbers = Numbers(seed);
    // In memory, so that the disk of a busy machine does not decide how long it takes.
    let memory = Path::new("/dev/shm");
    let world = if memory.is_dir() {
        World::below(memory)
    } else {
        World::new()
    };
    let project = Project::in_world(world, &[]);
    for number in 0..FILES {
        project.write(&name(number), &format!("old {number}\n"));
    }
    let old = image(&project.root);
    let plan = project.open(&[]);
    project.work(&plan, "find . -type f | xargs sed -i s/old/new/");
    // The first time nobody is killed: it tells what new is, and how long it takes.
    let usual = land(&project, "apply", &plan).expect("nobody kills it");
    let new = image(&project.root);
    for number in 0..FILES {
        let text = fs::read_to_string(project.root.join(name(number))).unwrap();
        assert_eq!(text, format!("new {number}\n"));
    }
    let (mut finished, mut taken_back) = (0, 0);
    let (mut state, mut cut) = ("applied", 0);
    for round in 0..ROUNDS {
        let (verb, from, to) = match state {
            "applied" => ("undo", "applied", "undone"),
            _ => ("apply", "undone", "applied"),
        };
        let moment = Duration::from_micros(numbers.below(u64::try_from(usual.as_micros()).unwrap().max(1)));
        let answered = thread::scope(|scope| {
            let landing = scope.spawn(|| land(&project, verb, &plan));
            thread::sleep(moment); // tidy: the moment of the kill is the point
            project.world.kill();
            landing.join().unwrap()
        });
        project.run(&["up"]).expect(0);
        let about = format!("round {round}, {verb} killed after {moment:?} of {usual:?}");
        let found = project.state_of(&plan);
        let images = |state: &str| -> &Image { if state == "applied" { &new } else { &old } };
        assert_same(&image(&project.root), images(&found), &about);
        assert!(found == from || found == to, "{about}: {found}");
        // What was acknowledged has happened.
        assert!(answered.is_none() || found == to, "{about}");
        project.nothing_is_left(&about);
        cut += u32::from(answered.is_none());
        if found == to {
            finished += 1;
        } else {
            taken_back += 1;
        }
        state = if found == "applied" { "applied" } else { "undone" };
    }
    let (verb, left) = if state == "applied" {
        ("undo", &old)
    } else {
        ("apply", &new)
    };
    land(&project, verb, &plan).expect("nobody kills it");
    assert_same(&image(&project.root), left, "it still works");
    println!("{cut} of {ROUNDS} were cut off; {finished} were finished, {taken_back} never began");
    assert!(cut > 0, "no kill came in time");
}
