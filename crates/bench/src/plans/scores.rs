//! What speed does not measure: nothing is lost, and nothing is left half done.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::at_once::{Became, LANDERS, Places, Share};
use super::kills::{self, KillOutcome};
use super::scratch;
use crate::jobs::runtime;
use crate::report::{BarVerdict, Table};

/// How often eight plans are applied at once.
const ROUNDS: usize = 5;
/// How often an apply is killed, unless the variable sets another number.
const KILLS: usize = 20;
const KILLS_VARIABLE: &str = "TIDELOCK_BENCH_KILLS";

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Plans: nothing lost, nothing half-way",
        "*Eight at once*: eight plans with 20 files each are applied to one workspace at the same moment, five times over; the peer is \
         eight `git merge` in one checkout. Landed means that all files of it are in the tree and that it was told so; files \
         are dirty that are as nobody left them who has landed. With files of their own all should land; where all change the \
         same lines, one should and the others should be told of the conflict. *Killed*: an apply of 2,000 files through the \
         service is killed by SIGKILL at a random moment of the time that it takes, and the service is opened again; the peer is `git merge --ff-only` of the same \
         changes. 20 times, or as often as `TIDELOCK_BENCH_KILLS` says. Stale is a lock that is left, and here a plan whose state does \
         not say what is in the tree.",
        &["what", "tidelock", "git", "bar", "met"],
    );
    let scratch = scratch()?;
    let runtime = runtime()?;
    for (share, what, bar) in [
        (Share::Nothing, "eight at once, files of their own", "all land"),
        (
            Share::EveryLine,
            "eight at once, the same lines",
            "one lands, seven are told",
        ),
    ] {
        let places = Places::new(scratch.join(format!("{share:?}")), share)?;
        let ours = places.applies(&runtime, tidelock, ROUNDS)?;
        let git = places.merges(ROUNDS)?;
        let cells = vec![what.to_owned(), became(ours), became(git), bar.to_owned()];
        table.judged_row(cells, BarVerdict::from(ours == wanted(share)));
    }
    let rounds = match std::env::var(KILLS_VARIABLE) {
        Ok(number) => number
            .parse()
            .with_context(|| format!("`{KILLS_VARIABLE}` is no number"))?,
        Err(_) => KILLS,
    };
    let ours = kills::applies(&scratch, tidelock, rounds)?;
    let git = kills::merges(&scratch, rounds)?;
    let cells = vec![
        format!("killed while 2,000 files land, {rounds} times"),
        found(ours),
        found(git),
        "no tree mixed, nothing stale".to_owned(),
    ];
    table.judged_row(cells, BarVerdict::from(ours.mixed == 0 && ours.stale == 0));
    Ok(table)
}

fn wanted(share: Share) -> Became {
    let landed = match share {
        Share::Nothing => LANDERS,
        Share::EveryLine => 1,
    };
    Became {
        landed: landed * ROUNDS,
        reported: (LANDERS - landed) * ROUNDS,
        ..Became::default()
    }
}

fn became(became: Became) -> String {
    let Became {
        landed,
        reported,
        failed,
        lost,
        dirty,
        stuck,
    } = became;
    let all = LANDERS * ROUNDS;
    format!(
        "of {all}: {landed} landed, {reported} told of a conflict, {failed} failed, {lost} lost; {dirty} files dirty; \
         stuck in {stuck} of {ROUNDS} rounds"
    )
}

fn found(found: KillOutcome) -> String {
    let KillOutcome {
        killed,
        old,
        new,
        mixed,
        stale,
    } = found;
    format!("{killed} killed in time: {old} trees old, {new} new, {mixed} mixed; {stale} stale")
}
