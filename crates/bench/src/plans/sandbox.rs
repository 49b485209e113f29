//! How soon there is a sandbox, against `git worktree add`.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use protocol::{PlanId, SandboxStrategy};
use tokio::runtime::Runtime;

use super::git;
use super::project::Project;
use super::sandboxes::Sandboxes;
use super::service::Service;
use super::{scratch, settle};
use crate::jobs::runtime;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const FEW: usize = 5_000;
const MANY: usize = 50_000;
const SHORT_ROUNDS: Rounds = Rounds {
    counted: 21,
    warm_up: 2,
};
/// For operations that take time proportional to the number of files.
const FEW_ROUNDS: Rounds = Rounds {
    counted: 5,
    warm_up: 1,
};
const MANY_ROUNDS: Rounds = Rounds {
    counted: 3,
    warm_up: 0,
};
const WARM_LIMIT_MS: f64 = 20.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Plans: until there is a sandbox",
        "A repository of 5,000 files and one of 50,000, of about 2 KB each, all of them committed and in a pack. A sandbox \
         is there when it is made and open, so that a command could start in it. *Warm*: an image of the tree is there \
         already, as for the second agent that begins at the same state. *Cold*: it is not, and is made first. \
         *A whole plan* is `open_plan` on a tree that has not changed: all files are looked at, and the plan is on disk. \
         `copy` and `git-worktree` are what is used where there is no overlay. The peer is `git worktree add --detach`. \
         Everything is in the page cache, and what was written is brought to the disk between two turns, and \
         removed only in the end: ext4 is slow to make files where many have just been deleted, which would hit whoever comes next.",
    );
    let runtime = runtime()?;
    let scratch = scratch()?;
    let few = Project::make(scratch.join("few"), FEW)?;
    let many = Project::make(scratch.join("many"), MANY)?;
    let prepare = |name: &str, project: &Project| {
        let directory = scratch.join(name);
        std::fs::create_dir(&directory)?;
        Sandboxes::prepare(&runtime, tidelock, &directory, &project.root)
    };
    let grounds = [prepare("few-data", &few)?, prepare("many-data", &many)?];
    of_any_size(&mut table, &grounds)?;
    against_git(&mut table, &grounds[0], &few, FEW_ROUNDS)?;
    fallbacks(&mut table, &grounds[0], &few)?;
    against_git(&mut table, &grounds[1], &many, MANY_ROUNDS)?;
    grounds.into_iter().for_each(Sandboxes::close);
    for (project, rounds) in [(&few, FEW_ROUNDS), (&many, MANY_ROUNDS)] {
        whole_plan(&mut table, &runtime, tidelock, project, rounds)?;
    }
    Ok(table)
}

/// Checks that an overlay takes as long on a large tree as on a small one.
fn of_any_size(table: &mut Table, grounds: &[Sandboxes<'_>; 2]) -> Result<()> {
    let overlay = |sandboxes| make(sandboxes, SandboxStrategy::Overlay);
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

fn against_git(
    table: &mut Table,
    sandboxes: &Sandboxes<'_>,
    project: &Project,
    rounds: Rounds,
) -> Result<()> {
    let cold = |_: &Path| {
        settle();
        let made = sandboxes.make_from_cold()?;
        let took = made.nanoseconds;
        sandboxes.remove(made)?;
        Ok([took])
    };
    let [[warm], [cold], [worktree]] = in_long_turns(
        rounds,
        [
            LongContender::new("overlay", make(sandboxes, SandboxStrategy::Overlay)),
            LongContender::new("overlay, cold", cold),
            LongContender::new("git worktree add", add_worktree(project)),
        ],
    )?;
    let files = shown(project);
    let what = format!("overlay, warm, {files} files");
    table.compare(&what, &warm, &worktree, Bar::TimesFaster(20.0));
    let what = format!("overlay, cold, {files} files");
    table.compare(&what, &cold, &worktree, Bar::NoSlower);
    Ok(())
}

/// The strategies that are used without overlays.
fn fallbacks(table: &mut Table, sandboxes: &Sandboxes<'_>, project: &Project) -> Result<()> {
    let [[copy], [own_worktree], [worktree]] = in_long_turns(
        FEW_ROUNDS,
        [
            LongContender::new("copy", make(sandboxes, SandboxStrategy::Copy)),
            LongContender::new("git-worktree", make(sandboxes, SandboxStrategy::GitWorktree)),
            LongContender::new("git worktree add", add_worktree(project)),
        ],
    )?;
    for (what, ours) in [("copy", &copy), ("git-worktree", &own_worktree)] {
        let what = format!("{what}, warm, {} files", shown(project));
        table.compare(&what, ours, &worktree, Bar::NoSlower);
    }
    Ok(())
}

fn shown(project: &Project) -> &'static str {
    if project.files == FEW { "5,000" } else { "50,000" }
}

fn add_worktree(project: &Project) -> impl FnMut(&Path) -> Result<[f64; 1]> {
    move |_| {
        let tree = project
            .root
            .with_file_name(format!("worktree-{}", PlanId::generate()));
        settle();
        let add = ["worktree", "add", "--quiet", "--detach"].map(OsStr::new);
        let took = git::time(&project.root, &[&add[..], &[tree.as_os_str()]].concat())?;
        Ok([took])
    }
}

fn make<'a>(
    sandboxes: &'a Sandboxes<'_>,
    name: SandboxStrategy,
) -> impl FnMut(&Path) -> Result<[f64; 1]> + 'a {
    move |_| {
        settle();
        let made = sandboxes.make(name)?;
        let took = made.nanoseconds;
        sandboxes.remove(made)?;
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
    let service = runtime.block_on(Service::open(tidelock, &scratch))?;
    // The first one creates the image.
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
    let what = format!("a whole plan, warm, {} files", shown(project));
    table.compare(&what, &ours, &status, Bar::None);
    runtime.block_on(async {
        service.discard(first).await?;
        service.close().await;
        anyhow::Ok(())
    })
}
