//! Landings whose process is killed, at every step and at random.

use std::collections::BTreeSet;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::process::Stdio;

use plans::Effect;
use plans::landing::{LandingEnd, NoRemerge, StepKind};

use crate::landing_kit::{Image, Place, Renames, When, after, effect, every_kind, landing, path, save};

/// How the program of the tests ended: what it said, or nothing if it was killed.
fn run(place: &Place, action: &str, step: u64, save: &str, remerge: &str) -> Option<String> {
    let output = place.lander(action, step, save, remerge).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    assert!(
        killed || output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (!killed).then_some(said)
}

/// What the tree must be after recovery: the verdict and the files have to agree.
fn expected(outcome: &LandingEnd, old: &Image, new: &Image) -> Image {
    match outcome {
        LandingEnd::Landed { .. } => new.clone(),
        LandingEnd::TakenBack { .. } => old.clone(),
    }
}

#[test]
fn killed_at_every_step_it_is_all_old_or_all_new() {
    kill_at_every_step(Renames::Any);
}

#[test]
fn the_same_on_a_file_system_that_cannot_exchange() {
    kill_at_every_step(Renames::Plain);
}

fn kill_at_every_step(renames: Renames) {
    let mut verdicts = BTreeSet::new();
    for step in 1.. {
        let (place, landing) = every_kind();
        let place = place.with(renames);
        place.lay_out(&landing);
        let old = place.image();
        let new = after(&old, &landing.effects);
        if let Some(said) = run(&place, "land", step, "-", "conflict") {
            assert!(said.starts_with("landed"), "{said}");
            assert_eq!(place.image(), new);
            assert!(step > 60, "only {step} steps");
            break;
        }
        // A recovery that is killed as well, at another step each time.
        run(&place, "recover", 1 + step % 41, "-", "conflict");
        let outcome = place.recover(&landing, &NoRemerge);
        assert_eq!(place.image(), expected(&outcome, &old, &new), "step {step}");
        let again = place.recover(&landing, &NoRemerge);
        assert_eq!(
            std::mem::discriminant(&outcome),
            std::mem::discriminant(&again),
            "step {step}"
        );
        assert_eq!(place.image(), expected(&outcome, &old, &new), "step {step}");
        verdicts.insert(matches!(outcome, LandingEnd::Landed { .. }));
        place.clean(&landing);
    }
    assert_eq!(verdicts.len(), 2, "both ends are reached");
}

#[test]
fn killed_at_every_step_while_somebody_saves_it_is_merged_or_taken_back() {
    kill_while_somebody_saves(Renames::Any);
}

#[test]
fn the_same_with_saves_on_a_file_system_that_cannot_exchange() {
    kill_while_somebody_saves(Renames::Plain);
}

fn kill_while_somebody_saves(renames: Renames) {
    for remerge in ["merge", "conflict"] {
        for step in 1.. {
            let (place, landing) = every_kind();
            let mut place = place.with(renames);
            place.lay_out(&landing);
            let old = place.image();
            let ended = run(&place, "land", step, "save", remerge);
            run(&place, "recover", 1 + step % 43, "-", remerge);
            let said = run(&place, "recover", 0, "-", remerge).unwrap();
            let saved = |name: &str| place.directory.path().join("saved").join(name).exists();
            let (edit_saved, gone_saved) = (saved("edit.txt"), saved("gone.txt"));

            // What there would be if the save had come before.
            let (mut old, mut effects) = (old, landing.effects.clone());
            let mut meanwhile = |name: &str, merged: Option<&str>| {
                let saved = place.file("saved\n", 0o644);
                old.insert(path(name), saved.clone().unwrap());
                let effect = effects
                    .iter_mut()
                    .find(|effect| effect.path == path(name))
                    .unwrap();
                *effect = Effect {
                    path: path(name),
                    before: saved.clone(),
                    after: merged.map_or(saved, |merged| place.file(merged, 0o644)),
                };
            };
            if edit_saved {
                meanwhile("edit.txt", Some("saved\nplan\n"));
            }
            if gone_saved {
                meanwhile("gone.txt", None);
            }
            let new = after(&old, &effects);
            let landed = said.starts_with("landed");
            assert_eq!(
                place.image(),
                if landed { new } else { old },
                "{remerge}, step {step}: {said}"
            );
            if remerge == "conflict" {
                assert!(!(landed && (edit_saved || gone_saved)), "step {step}");
            }
            place.clean(&landing);
            if ended.is_some() {
                assert!(gone_saved && step > 30, "only {step} steps");
                assert_eq!(edit_saved, remerge == "merge", "a conflict stops it before");
                break;
            }
        }
    }
}

#[test]
fn what_was_being_taken_back_is_taken_back_though_nothing_is_in_the_way_any_more() {
    let (place, landing) = every_kind();
    let (old, in_the_way) = (place.image(), place.root().join("stays/link"));
    save(&in_the_way, "in the way\n");
    for kind in [StepKind::BackMarked, StepKind::AllTakenBack] {
        let end = When::new(kind, "", || panic!("as if it was killed here"));
        let staging = place.staging();
        let site = place.site(&staging, &NoRemerge, &end);
        let ended = std::panic::catch_unwind(AssertUnwindSafe(|| match kind {
            StepKind::BackMarked => place.land(&landing, &NoRemerge, &end),
            _ => site.recover(&landing).unwrap(),
        }));
        assert!(ended.is_err() && end.happened());
    }
    fs::remove_file(&in_the_way).unwrap();
    let outcome = place.recover(&landing, &NoRemerge);
    assert!(matches!(outcome, LandingEnd::TakenBack { .. }), "{outcome:?}");
    assert_eq!(place.image(), old);
    place.clean(&landing);
}

/// How many files the large landing has, and how often it is killed, in two halves that may run at the same time.
const FILES: u32 = 2000;
const ROUNDS: u64 = 60;

#[test]
fn killed_at_random_in_two_thousand_files_none_is_mixed() {
    kill_at_random(0..ROUNDS / 2);
}

#[test]
fn killed_at_random_in_two_thousand_files_once_more_none_is_mixed() {
    kill_at_random(ROUNDS / 2..ROUNDS);
}

fn kill_at_random(rounds: std::ops::Range<u64>) {
    let mut place = Place::in_memory();
    let mut forwards = Vec::new();
    for number in 0..FILES {
        let name = format!("d{}/f{number}", number % 40);
        let (old, new) = (format!("old {number}\n"), format!("new {number}\n"));
        let at = place.root().join(&name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, &old).unwrap();
        let mode = place.tree.stat(&path(&name)).unwrap().unwrap().mode;
        forwards.push(effect(&name, place.file(&old, mode), place.file(&new, mode)));
    }
    let backwards = forwards.iter().map(|forward| Effect {
        path: forward.path.clone(),
        before: forward.after.clone(),
        after: forward.before.clone(),
    });
    let backwards: Vec<_> = backwards.collect();
    let (mut now, mut landed) = (place.image(), 0);
    for round in rounds {
        let effects = if now.get(&forwards[0].path) == forwards[0].before.as_ref() {
            &forwards
        } else {
            &backwards
        };
        let landing = landing(effects.clone());
        place.lay_out(&landing);
        let new = after(&now, effects);
        // A step is one of about 6,100: two thousand are staged, and two are taken for each exchange.
        let step = 1 + round * 7919 % 6100;
        let mut child = place
            .lander("land", step, "-", "conflict")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.wait().unwrap();
        let outcome = place.recover(&landing, &NoRemerge);
        let next = expected(&outcome, &now, &new);
        assert!(place.image() == next, "round {round}, step {step}: {outcome:?}");
        landed += u32::from(matches!(outcome, LandingEnd::Landed { .. }));
        place.clean(&landing);
        now = next;
    }
    assert!(
        (5..25).contains(&landed),
        "{landed} landed; the kills do not reach every part"
    );
}
