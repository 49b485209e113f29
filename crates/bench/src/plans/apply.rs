//! Applying 1,000 changed files and undoing that, against `git apply` and a sync of the same files.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::project::{APPENDED, Project, append, content, path};
use super::service::{Service, must_be_done};
use super::{git, scratch, settle};
use crate::jobs::runtime;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const FILES: usize = 5_000;
/// How many of them are changed; every fifth.
const CHANGED: usize = 1_000;
const ROUNDS: Rounds = Rounds {
    counted: 7,
    warm_up: 1,
};

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Plans: landing 1,000 files",
        "A command in a sandbox has appended a line to every fifth file of a repository of 5,000. *Apply* is from the \
         order to its answer: the sandbox is looked at once more, every file is merged with the workspace, the new contents \
         are staged and on disk, and so is what was done, in the log; killed anywhere on the way, it is finished or taken \
         back. *Undo* takes the plan back in the same way. The peer is `git apply` (and `git apply --reverse`) of the same changes, after \
         which each of the files and each of their directories is synced, one after the other; killed on the way, it is left \
         half-way.",
    );
    let runtime = runtime()?;
    let scratch = scratch()?;
    let project = Project::make(scratch.join("project"), FILES)?;
    let peer = Project::make(scratch.join("peer"), FILES)?;
    peer.branch("changed", changed().map(|file| (file, content(file) + APPENDED)))?;
    let patch = scratch.join("patch");
    std::fs::write(&patch, git::run(&peer.root, &["diff", "main", "changed"])?)?;
    let data = scratch.join("data");
    std::fs::create_dir(&data)?;
    let service = runtime.block_on(Service::open(tidelock, &data))?;
    let line = append(changed());
    let ours = |_: &Path| {
        runtime.block_on(async {
            let plan = service.plan(&project.root).await?;
            service.shell(plan, &line).await?;
            settle();
            let began = Instant::now();
            must_be_done(&service.apply(plan).await?, CHANGED)?;
            let applied = nanoseconds(began.elapsed());
            settle();
            let began = Instant::now();
            must_be_done(&service.undo(plan).await?, CHANGED)?;
            let undone = nanoseconds(began.elapsed());
            service.collect().await?;
            Ok([applied, undone])
        })
    };
    let patch = patch.to_str().context("a path that is not UTF-8")?;
    let (forth, back): (&[&str], &[&str]) = (&["apply", patch], &["apply", "--reverse", patch]);
    let theirs = |_: &Path| {
        let mut figures = [0.0; 2];
        for (figure, arguments) in figures.iter_mut().zip([forth, back]) {
            settle();
            let began = Instant::now();
            git::run(&peer.root, arguments)?;
            sync(&peer.root)?;
            *figure = nanoseconds(began.elapsed());
        }
        Ok(figures)
    };
    let [ours, theirs] = in_long_turns(
        ROUNDS,
        [
            LongContender::new("tidelock", ours),
            LongContender::new("git apply and fsync", theirs),
        ],
    )?;
    for (what, (ours, theirs)) in ["apply", "undo"].into_iter().zip(ours.iter().zip(&theirs)) {
        table.compare(what, ours, theirs, Bar::WithinTimes(2.0));
    }
    runtime.block_on(service.close());
    Ok(table)
}

fn changed() -> impl Iterator<Item = usize> {
    (0..CHANGED).map(|number| number * (FILES / CHANGED))
}

fn sync(root: &Path) -> Result<()> {
    let mut directories = BTreeSet::new();
    for file in changed() {
        let path: PathBuf = root.join(path(file));
        File::open(&path)?.sync_all()?;
        directories.extend(path.parent().map(Path::to_owned));
    }
    for directory in directories {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}
