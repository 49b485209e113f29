//! Applies and undos whose process is killed, at every step.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use protocol::PlanId;
use protocol::{OutcomeKind, PlanState};

use crate::apply_faulty::Work;
use crate::plans_kit::{Files, Running, Site};

/// What is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Deed {
    Apply,
    Undo,
}

/// What was found after a kill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum After {
    Old,
    New,
    /// Neither, or the log says something else.
    Mixed,
}

/// How many steps there are at least: fewer would mean that nobody tells of them.
const LEAST_STEPS: usize = 15;

/// Kills it at one step after the other, until there is none that is not reached.
pub(crate) async fn at_every_step(site: &Site, running: Running, plans: &[PlanId], deed: Deed) -> Vec<After> {
    let (old, new) = both_ends(site, &running, plans, deed).await;
    running.stop().await;
    let mut found = Vec::new();
    for step in 1.. {
        site.wait_for_log().await;
        let done = child(site, plans, deed, step);
        let running = site.open().await;
        let after = look(site, &running, plans, deed, (&old, &new)).await;
        if after == After::New {
            take_back(&running, plans, deed).await;
            assert_eq!(site.files(), old, "step {step}");
        }
        running.stop().await;
        if done {
            assert_eq!(after, After::New);
            assert!(found.len() >= LEAST_STEPS, "only {} steps", found.len());
            break;
        }
        found.push(after);
    }
    found
}

/// What the workspace is before and after.
async fn both_ends(site: &Site, running: &Running, plans: &[PlanId], deed: Deed) -> (Files, Files) {
    let old = site.files();
    do_it(running, plans, deed).await;
    let new = site.files();
    take_back(running, plans, deed).await;
    assert_eq!(site.files(), old);
    assert_ne!(new, old);
    (old, new)
}

async fn do_it(running: &Running, plans: &[PlanId], deed: Deed) {
    match deed {
        Deed::Apply => {
            let outcome = running.plans.apply(Running::apply_order(plans)).await.unwrap();
            assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
        }
        Deed::Undo => {
            for plan in plans.iter().rev() {
                let outcome = running.plans.undo(Running::undo_order(*plan)).await.unwrap();
                assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
            }
        }
    }
}

async fn take_back(running: &Running, plans: &[PlanId], deed: Deed) {
    let opposite = match deed {
        Deed::Apply => Deed::Undo,
        Deed::Undo => Deed::Apply,
    };
    do_it(running, plans, opposite).await;
}

/// Runs the program of the scenarios. Whether it came to its end; otherwise it was killed.
fn child(site: &Site, plans: &[PlanId], deed: Deed, step: u64) -> bool {
    let action = match deed {
        Deed::Apply => "apply",
        Deed::Undo => "undo",
    };
    let output = Command::new(env!("CARGO_BIN_EXE_test-applier"))
        .arg(action)
        .arg(&site.root)
        .args([site.home_id.to_string(), step.to_string()])
        .args(plans.iter().map(PlanId::to_string))
        .output()
        .unwrap();
    let is_killed = output.status.signal() == Some(9);
    assert!(
        is_killed || output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    !is_killed
}

async fn look(
    site: &Site,
    running: &Running,
    plans: &[PlanId],
    deed: Deed,
    (old, new): (&Files, &Files),
) -> After {
    let files = site.files();
    let mut said = Vec::new();
    for plan in plans {
        let record = running.plans.get(*plan).await.unwrap().record;
        let is_applied = record.state == PlanState::Applied;
        let is_done = record.landing.is_none();
        said.push(is_done && is_applied == (deed == Deed::Apply));
        if !is_done {
            return After::Mixed;
        }
    }
    let is_staging_empty = std::fs::read_dir(site.root.join("data/staging"))
        .unwrap()
        .next()
        .is_none();
    if files == *new && said.iter().all(|said| *said) && is_staging_empty {
        After::New
    } else if files == *old && said.iter().all(|said| !*said) && is_staging_empty {
        After::Old
    } else {
        eprintln!("{said:?}, staging empty: {is_staging_empty}, {files:#?}");
        After::Mixed
    }
}

/// Those that write one file after the other, stopped after each.
pub(crate) async fn one_by_one(site: &Site, running: &Running, plans: &[PlanId], deed: Deed) -> Vec<After> {
    let mut work = Vec::new();
    for plan in plans {
        work.push(Work::of(running, *plan).await);
    }
    let old = site.files();
    let all: usize = work.iter().map(Work::len).sum();
    let write = |count: usize| {
        let mut left = count;
        for work in &work {
            let some = left.min(work.len());
            match deed {
                Deed::Apply => drop(work.write(&site.workspace, some)),
                Deed::Undo => work.write_back(&site.workspace, some),
            }
            left -= some;
        }
    };
    let back = || {
        for work in &work {
            match deed {
                Deed::Apply => work.write_back(&site.workspace, work.len()),
                Deed::Undo => drop(work.write(&site.workspace, work.len())),
            }
        }
    };
    write(all);
    let new = site.files();
    back();
    let mut found = Vec::new();
    for stopped_after in 0..=all {
        write(stopped_after);
        let files = site.files();
        found.push(if files == old {
            After::Old
        } else if files == new {
            After::New
        } else {
            After::Mixed
        });
        back();
    }
    found
}
