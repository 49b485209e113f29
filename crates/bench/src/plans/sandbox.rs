//! How soon there is a sandbox, against `git worktree add`.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use plans::StrategyName;
use tokio::runtime::Runtime;

use super::git;
use super::ground::Ground;
use super::project::Project;
use super::service::Service;
use super::settle;
use crate::jobs::runtime;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns, scratch};

const FEW: usize = 5_000;
const MANY: usize = 50_000;
/// For what takes milliseconds.
const SHORT_ROUNDS: Rounds = Rounds {
    counted: 21,
    warm_up: 2,
};
/// For what takes as long as there are files.
const FEW_ROUNDS: Rounds = Rounds {
    counted: 5,
    warm_up: 1,
};
const MANY_ROUNDS: Rounds = Rounds {
    counted: 3,
    warm_up: 0,
};
const WARM_LIMIT_MS: f64 = 20.0;

/// Measures and puts the results into a table.
pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Plans: until there is a sandbox",
        "A repository of 5,000 files and one of 50,000, of about 2 KB each, all of them committed and in a pack. A sandbox \
         is there when it is made and open, so that a command could start in it. *Warm*: an image of the tree is there \
         already, as for the second agent that begins at the same state. *Cold*: it is not, and is made first. \
         *A whole plan* is `open_plan` on a tree that has not changed: all files are looked at, and the plan is on disk. \
         `copy` and `git-worktree` are what is used where there is no overlay. The peer is `git worktree add --detach`. \
         Everything is in the page cache, and what was written is brought to the disk between two turns.",
    );
    let runtime = runtime()?;
    let scratch = scratch()?;
    let few = Project::make(scratch.path().join("few"), FEW)?;
    let many = Project::make(scratch.path().join("many"), MANY)?;
    let prepare = |name: &str, project: &Project| {
        let directory = scratch.path().join(name);
        std::fs::create_dir(&directory)?;
        Ground::prepare(&runtime, tidelock, &directory, &project.root)
    };
    let grounds = [prepare("few-data", &few)?, prepare("many-data", &many)?];
    of_any_size(&mut table, &grounds)?;
    for (ground, project, rounds) in [(&grounds[0], &few, FEW_ROUNDS), (&grounds[1], &many, MANY_ROUNDS)] {
        against_git(&mut table, ground, project, rounds)?;
    }
    grounds.into_iter().for_each(Ground::close);
    for (project, rounds) in [(&few, FEW_ROUNDS), (&many, MANY_ROUNDS)] {
        whole_plan(&mut table, &runtime, tidelock, project, rounds)?;
    }
    Ok(table)
}

/// That an overlay takes as long on a large tree as on a small one.
fn of_any_size(table: &mut Table, grounds: &[Ground<'_>; 2]) -> Result<()> {
    let overlay = |ground| make(ground, StrategyName::Overlay);
    let [[few], [many]] = in_long_turns(
        SHORT_ROUNDS,
        [
            LongContender::new("overlay, 5,000 files", overlay(&grounds[0])),
            LongContender::new("overlay, 50,000 files", overlay(&grounds[1])),
        ],
    )?;
    table.under("overlay, warm, 5,000 files", &few, WARM_LIMIT_MS);
    table.under("overlay, warm, 50,000 files", &many, WARM_LIMIT_MS);
    table.compare("overlay, warm, 50,000 files", &many, &few, Bar::WithinTimes(1.5));
    Ok(())
}

fn against_git(table: &mut Table, ground: &Ground<'_>, project: &Project, rounds: Rounds) -> Result<()> {
    let worktree = |directory: &Path| {
        let tree = directory.join("tree");
        let tree = tree.as_os_str();
        settle();
        let add = ["worktree", "add", "--quiet", "--detach"].map(std::ffi::OsStr::new);
        let took = git::time(&project.root, &[&add[..], &[tree]].concat())?;
        let remove = ["worktree", "remove", "--force"].map(std::ffi::OsStr::new);
        git::run(&project.root, &[&remove[..], &[tree]].concat())?;
        Ok([took])
    };
    let cold = |_: &Path| {
        settle();
        let (made, store) = ground.make_from_cold()?;
        let took = made.nanoseconds;
        ground.remove(made)?;
        std::fs::remove_dir_all(store)?;
        Ok([took])
    };
    let [[warm], [cold], [copy], [own_worktree], [worktree]] = in_long_turns(
        rounds,
        [
            LongContender::new("overlay", make(ground, StrategyName::Overlay)),
            LongContender::new("overlay, cold", cold),
            LongContender::new("copy", make(ground, StrategyName::Copy)),
            LongContender::new("git-worktree", make(ground, StrategyName::GitWorktree)),
            LongContender::new("git worktree add", worktree),
        ],
    )?;
    let files = if project.files == FEW { "5,000" } else { "50,000" };
    let rows = [
        ("overlay, warm", &warm, Bar::TimesFaster(20.0)),
        ("overlay, cold", &cold, Bar::NoSlower),
        ("copy, warm", &copy, Bar::NoSlower),
        ("git-worktree, warm", &own_worktree, Bar::NoSlower),
    ];
    for (what, ours, bar) in rows {
        table.compare(&format!("{what}, {files} files"), ours, &worktree, bar);
    }
    Ok(())
}

/// A turn that makes a sandbox.
fn make<'a>(ground: &'a Ground<'_>, name: StrategyName) -> impl FnMut(&Path) -> Result<[f64; 1]> + 'a {
    move |_| {
        settle();
        let made = ground.make(name)?;
        let took = made.nanoseconds;
        ground.remove(made)?;
        Ok([took])
    }
}

fn whole_plan(
    table: &mut Table,
    runtime: &Runtime,
    tidelock: &Path,
    project: &Project,
    rounds: Rounds,
) -> Result<()> {
    let scratch = scratch()?;
    let service = runtime.block_on(Service::open(tidelock, scratch.path()))?;
    // The first one makes the image.
    let first = runtime.block_on(service.plan(&project.root))?;
    let open = |_: &Path| {
        settle();
        runtime.block_on(async {
            let began = Instant::now();
            let plan = service.plan(&project.root).await?;
            let took = nanoseconds(began.elapsed());
            service.discard(plan).await?;
            service.collect().await?;
            Ok([took])
        })
    };
    let status = |_: &Path| Ok([git::time(&project.root, &["status", "--porcelain"])?]);
    let [[ours], [status]] = in_long_turns(
        rounds,
        [
            LongContender::new("open_plan", open),
            LongContender::new("git status", status),
        ],
    )?;
    let files = if project.files == FEW { "5,000" } else { "50,000" };
    let what = format!("a whole plan, warm, {files} files");
    table.compare(&what, &ours, &status, Bar::None);
    runtime.block_on(async {
        service.discard(first).await?;
        service.close().await;
        anyhow::Ok(())
    })
}
