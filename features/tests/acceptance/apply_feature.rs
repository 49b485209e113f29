//! How `apply.feature` is run: on the real service, and on the applies of the reports.

use cucumber::{given, then, when};

use crate::{
    apply_faulty::Verdict,
    apply_kill::{self, After, Deed},
    apply_world::{ApplyWorld, Subject},
    plans_kit::Site,
    runner::{Tally, Which, run},
};

#[test]
fn apply() {
    let tally = run::<ApplyWorld>("apply.feature", Which::AllBut("killed"), |_| {});
    assert_eq!(
        tally,
        Tally {
            passed: 10,
            failed: 0
        }
    );
}

#[test]
fn apply_that_is_killed() {
    let tally = run::<ApplyWorld>("apply.feature", Which::Those("killed"), |_| {});
    assert_eq!(tally, Tally { passed: 3, failed: 0 });
}

#[test]
fn files_that_are_written_one_by_one_are_caught() {
    caught("one-by-one", 8, |world| world.subject = Subject::OneByOne);
}

#[test]
fn a_status_without_files_is_caught() {
    caught("status-only", 3, |world| world.subject = Subject::StatusOnly);
}

#[test]
fn a_merge_in_the_checkout_is_caught() {
    caught("git-merge", 5, |world| world.subject = Subject::GitMerge);
}

fn caught(fault: &'static str, scenarios: usize, set_up: fn(&mut ApplyWorld)) {
    let tally = run::<ApplyWorld>("apply.feature", Which::WhatCatchesThe(fault), set_up);
    assert_eq!(
        tally,
        Tally {
            passed: 0,
            failed: scenarios
        }
    );
}

const WORKSPACE: &str = "printf 'one\\ntwo\\nthree\\nfour\\nfive\\n' > a.txt; echo b > b.txt; echo c > c.txt
    echo run > run.sh; mkdir d; echo e > d/e.txt";
const EVERY_KIND: &str =
    "sed -i s/two/TWO/ a.txt; echo new > new.txt; mkdir -p deep/er; echo f > deep/er/f.txt
    rm c.txt; ln -s a.txt link; chmod 755 run.sh; mv b.txt moved.txt; rm -r d";

#[given("a workspace")]
async fn a_workspace(world: &mut ApplyWorld) {
    let site = Site::of(WORKSPACE);
    world.running = Some(site.open().await);
    world.first = site.files();
    world.before = site.files();
    world.site = Some(site);
}

#[given("a plan that changes files of every kind")]
async fn every_kind(world: &mut ApplyWorld) {
    world.new_plan(EVERY_KIND).await;
    assert_eq!(world.site().files(), world.first, "nothing of it is seen outside");
}

#[given("a plan that changes files of every kind, and is applied")]
async fn every_kind_applied(world: &mut ApplyWorld) {
    every_kind(world).await;
    assert_eq!(world.apply(&world.plans).await, Verdict::Done);
}

#[given(expr = "a plan that does {string}")]
async fn a_plan_that_does(world: &mut ApplyWorld, script: String) {
    world.new_plan(&script).await;
}

#[given(expr = "{int} plans, of which {int} change the same line of {string}")]
async fn many_plans(world: &mut ApplyWorld, count: usize, clashing: usize, path: String) {
    for number in 0..count {
        let clash = if number < clashing {
            format!("; sed -i s/three/three-{number}/ {path}")
        } else {
            String::new()
        };
        world.new_plan(&format!("echo {number} > n{number}{clash}")).await;
    }
}

#[given(expr = "somebody else has done {string} meanwhile")]
#[when(expr = "somebody else has done {string} meanwhile")]
async fn somebody_else(world: &mut ApplyWorld, script: String) {
    world.site().shell(&script);
    world.site().commit_all();
    world.before = world.site().files();
}

#[when("it is applied")]
async fn it_is_applied(world: &mut ApplyWorld) {
    let verdict = world.apply(&world.plans).await;
    world.verdicts = vec![verdict];
}

#[when("it is applied twice at once")]
async fn applied_twice(world: &mut ApplyWorld) {
    let plan = world.plans[0];
    world.verdicts = world.apply_at_once(&[plan, plan]).await;
}

#[when("all are applied at once")]
async fn all_at_once(world: &mut ApplyWorld) {
    world.verdicts = world.apply_at_once(&world.plans).await;
}

#[when("all are applied together")]
async fn all_together(world: &mut ApplyWorld) {
    world.verdicts = vec![world.apply(&world.plans).await];
}

#[when(expr = "the first {int} are applied together")]
async fn some_together(world: &mut ApplyWorld, count: usize) {
    world.verdicts = vec![world.apply(&world.plans[..count]).await];
}

#[when("each is applied in turn")]
async fn in_turn(world: &mut ApplyWorld) {
    for plan in &world.plans {
        assert_eq!(world.apply(&[*plan]).await, Verdict::Done);
    }
}

#[when("the first is taken back")]
async fn the_first_is_taken_back(world: &mut ApplyWorld) {
    world.verdicts = vec![world.undo(world.plans[0]).await];
}

#[when(regex = "^(an apply|an undo|an apply of several) is killed at every step$")]
async fn killed_at_every_step(world: &mut ApplyWorld, what: String) {
    let deed = match what.as_str() {
        "an undo" => Deed::Undo,
        _ => Deed::Apply,
    };
    let running = world.running.take().unwrap();
    let plans = world.plans.clone();
    world.killed = match world.subject {
        Subject::Ours => apply_kill::at_every_step(world.site(), running, &plans, deed).await,
        _ => apply_kill::one_by_one(world.site(), &running, &plans, deed).await,
    };
}

#[then(expr = "it is said to be {string}")]
async fn is_said_to_be(world: &mut ApplyWorld, state: String) {
    assert_eq!(world.verdicts, [Verdict::Done]);
    assert_eq!(world.state_of(world.plans[0]).await, state);
}

#[then("the workspace is what its sandbox was")]
async fn is_the_sandbox(world: &mut ApplyWorld) {
    assert_eq!(world.site().files(), world.sandbox);
}

#[then("the workspace is what it was at first")]
async fn is_as_at_first(world: &mut ApplyWorld) {
    assert_eq!(world.site().files(), world.first);
}

#[then("the workspace is byte-identical to what it was")]
async fn is_identical(world: &mut ApplyWorld) {
    assert_eq!(world.site().files(), world.before);
}

#[then(expr = "it was applied {int} times")]
async fn was_applied(world: &mut ApplyWorld, count: usize) {
    assert_eq!(world.count_applied(world.plans[0]).await, count);
}

#[then(expr = "{int} of the two have applied it")]
async fn of_the_two(world: &mut ApplyWorld, count: usize) {
    let done = world.verdicts.iter().filter(|verdict| **verdict == Verdict::Done);
    assert_eq!(done.count(), count, "{:?}", world.verdicts);
    let refused = world.verdicts.iter().filter_map(|verdict| match verdict {
        Verdict::Refused(why) => Some(why.contains("is applied")),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [true], "{:?}", world.verdicts);
}

#[then(expr = "{string} has {string}")]
async fn file_has(world: &mut ApplyWorld, path: String, lines: String) {
    let expected = format!("644 {}\n", lines.replace(", ", "\n"));
    assert_eq!(world.site().files().get(&path), Some(&expected));
}

#[then(expr = "there is no {string}")]
async fn there_is_no(world: &mut ApplyWorld, path: String) {
    assert_eq!(world.site().files().get(&path), None);
}

#[then(regex = r#"^(?:it clashes|they clash) in "(.*)"$"#)]
async fn clashes_in(world: &mut ApplyWorld, paths: String) {
    let paths = paths.split(", ").map(str::to_owned).collect();
    assert_eq!(world.verdicts, [Verdict::Clashes(paths)]);
}

#[then("no merge is left half-way")]
async fn no_merge_is_left(world: &mut ApplyWorld) {
    assert!(!world.site().workspace.join(".git/MERGE_HEAD").exists());
    let status = world.site().git_shell("git status --porcelain").output().unwrap();
    assert_eq!(String::from_utf8(status.stdout).unwrap(), "");
}

#[then("none of them is applied")]
async fn none_is_applied(world: &mut ApplyWorld) {
    for plan in &world.plans {
        assert_ne!(world.state_of(*plan).await, "applied");
        assert_eq!(world.count_applied(*plan).await, 0);
    }
}

#[then(expr = "the first {int} of them are applied")]
async fn the_first_are_applied(world: &mut ApplyWorld, count: usize) {
    for (number, plan) in world.plans.iter().enumerate() {
        assert_eq!(world.state_of(*plan).await == "applied", number < count);
    }
}

#[then(expr = "{int} of them have landed and {int} are reported to clash in {string}")]
async fn landed_or_reported(world: &mut ApplyWorld, landed: usize, reported: usize, path: String) {
    let count = |wanted: &Verdict| world.verdicts.iter().filter(|verdict| *verdict == wanted).count();
    let counts = (count(&Verdict::Done), count(&Verdict::Clashes(vec![path])));
    assert_eq!(counts, (landed, reported), "{:?}", world.verdicts);
}

#[then("the workspace has the work of those that have landed and nothing else")]
async fn work_of_those(world: &mut ApplyWorld) {
    let mut expected = world.before.clone();
    let mut files = world.site().files();
    let line = files.remove("a.txt");
    expected.remove("a.txt");
    let mut lines = Vec::new();
    for (number, verdict) in world.verdicts.iter().enumerate() {
        if *verdict == Verdict::Done {
            expected.insert(format!("n{number}"), format!("644 {number}\n"));
            lines.push(format!("three-{number}\n"));
        }
    }
    assert_eq!(files, expected);
    // Of those that clash the one that has landed wrote the line.
    let line = line.unwrap();
    let has_clashes = world.verdicts.iter().any(|verdict| *verdict != Verdict::Done);
    let is_of_one = lines
        .iter()
        .filter(|wanted| line.contains(wanted.as_str()))
        .count();
    assert_eq!(is_of_one, usize::from(has_clashes), "{line}");
}

#[then("the workspace was all old or all new each time, and the log said so")]
async fn old_or_new(world: &mut ApplyWorld) {
    let mixed = world.killed.iter().filter(|after| **after == After::Mixed);
    assert_eq!(mixed.count(), 0, "{:?}", world.killed);
}

#[then("both have been found")]
async fn both_found(world: &mut ApplyWorld) {
    assert!(
        world.killed.contains(&After::Old) && world.killed.contains(&After::New),
        "{:?}",
        world.killed
    );
}
