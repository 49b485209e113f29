//! Finding what changed in a sandbox, against `git status`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use plans::{Entrance, Known, ReadBounds};
use protocol::SandboxStrategy;

use super::git;
use super::project::{Project, append};
use super::sandboxes::{Made, Sandboxes};
use super::scratch;
use crate::jobs::runtime;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const ROUNDS: Rounds = Rounds {
    counted: 11,
    warm_up: 2,
};
/// How many files a command changes.
const CHANGED: usize = 10;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::of_ratios(
        "Plans: what a command has changed",
        "A command in a sandbox appends a line to 10 files, other ones in each round, so that more and more are changed; \
         then it is asked what was changed since the last time. Ours hashes what it finds. The peer is \
         `git status --porcelain` in the repository itself, in which the same command has run. The first two rounds do not \
         count: both remember what they have seen.",
    );
    let runtime = runtime()?;
    for (files, shown) in [(5_000, "5,000"), (50_000, "50,000")] {
        let scratch = scratch()?;
        let project = Project::make(scratch.join("project"), files)?;
        let data = scratch.join("data");
        std::fs::create_dir(&data)?;
        let sandboxes = Sandboxes::prepare(&runtime, tidelock, &data, &project.root)?;
        let [overlay, copy, worktree] = [
            SandboxStrategy::Overlay,
            SandboxStrategy::Copy,
            SandboxStrategy::GitWorktree,
        ]
        .map(|name| Captured::of(&sandboxes, name, files));
        let (mut overlay, mut copy, mut worktree) = (overlay?, copy?, worktree?);
        let mut round = 0;
        let status = |_: &Path| {
            let mut shell = Command::new("sh");
            let line = append(files_of(round, files));
            let done = shell.args(["-c", &line]).current_dir(&project.root).status()?;
            ensure!(done.success(), "the shell failed");
            round += 1;
            Ok([git::time(&project.root, &["status", "--porcelain"])?])
        };
        let [[ours], [copied], [own_worktree], [status]] = in_long_turns(
            ROUNDS,
            [
                LongContender::new("overlay", |_: &Path| overlay.turn(&sandboxes)),
                LongContender::new("copy", |_: &Path| copy.turn(&sandboxes)),
                LongContender::new("git-worktree", |_: &Path| worktree.turn(&sandboxes)),
                LongContender::new("git status", status),
            ],
        )?;
        for (what, measured, bar) in [
            ("overlay", &ours, Bar::TimesFaster(10.0)),
            ("copy", &copied, Bar::WithinTimes(1.2)),
            ("git-worktree", &own_worktree, Bar::WithinTimes(1.2)),
        ] {
            table.compare(&format!("{what}, {shown} files"), measured, &status, bar);
        }
        for one in [overlay, copy, worktree] {
            sandboxes.remove(one.made)?;
        }
        sandboxes.close();
    }
    Ok(table)
}

/// The files that the command of a round changes, spread over the tree.
fn files_of(round: usize, files: usize) -> impl Iterator<Item = usize> {
    (0..CHANGED).map(move |number| (round + number * (files / CHANGED)) % files)
}

struct Captured {
    made: Made,
    entrance: Entrance,
    known: Known,
    files: usize,
    round: usize,
}

impl Captured {
    fn of(sandboxes: &Sandboxes<'_>, name: SandboxStrategy, files: usize) -> Result<Self> {
        let made = sandboxes.make(name)?;
        let known = Known {
            base: Arc::clone(&sandboxes.warm().base.manifest),
            since: Arc::new(BTreeMap::new()),
        };
        Ok(Self {
            entrance: made.sandbox.entrance(),
            made,
            known,
            files,
            round: 0,
        })
    }

    fn turn(&mut self, sandboxes: &Sandboxes<'_>) -> Result<[f64; 1]> {
        let line = append(files_of(self.round, self.files));
        self.round += 1;
        let program = ["sh", "-c", line.as_str()];
        sandboxes
            .runtime
            .block_on(sandboxes.starter.run(&self.entrance, &program))?;
        let bounds = ReadBounds {
            scope: kernel::CancellationToken::new().scope(),
            max_file_bytes: u64::MAX,
        };
        let began = Instant::now();
        let captured = self.made.sandbox.capture(&self.known, &bounds)?;
        let took = nanoseconds(began.elapsed());
        ensure!(
            captured.changes.len() == CHANGED,
            "{} changes were found",
            captured.changes.len()
        );
        let since = Arc::make_mut(&mut self.known.since);
        since.extend(
            captured
                .changes
                .into_iter()
                .map(|change| (change.path, change.after)),
        );
        Ok([took])
    }
}
