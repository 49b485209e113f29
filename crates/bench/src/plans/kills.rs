//! An apply of 2,000 files that is killed at a random moment.

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use protocol::{PlanId, PlanState};

use super::project::{APPENDED, Project, append, content};
use super::service::{Service, must_be_done};
use super::{git, settle};
use crate::jobs::runtime;

const FILES: usize = 2_000;
/// The first argument of this program when it is the one to be killed.
const VICTIM: &str = "land-and-be-killed";
/// What it prints when it begins.
const BEGUN: &str = "begun";

/// The findings after the kills.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct KillOutcome {
    /// Rounds in which the kill came before the end.
    pub(super) killed: usize,
    /// Trees that are as before, whole.
    pub(super) old: usize,
    pub(super) new: usize,
    pub(super) mixed: usize,
    /// A leftover lock, or a state that does not match the tree.
    pub(super) stale: usize,
}

/// A tree, after a kill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tree {
    Old,
    New,
    Mixed,
}

impl KillOutcome {
    fn count(&mut self, tree: Tree) {
        match tree {
            Tree::Old => self.old += 1,
            Tree::New => self.new += 1,
            Tree::Mixed => self.mixed += 1,
        }
    }
}

impl Tree {
    fn of(project: &Project) -> Result<Self> {
        let (mut old, mut new) = (0, 0);
        for file in 0..project.files {
            // A missing file is neither.
            let text = project.read(file).unwrap_or_default();
            let before = content(file);
            match text.strip_prefix(before.as_str()) {
                Some("") => old += 1,
                Some(APPENDED) => new += 1,
                _ => {}
            }
        }
        Ok(match (old, new) {
            (old, _) if old == project.files => Self::Old,
            (_, new) if new == project.files => Self::New,
            _ => Self::Mixed,
        })
    }
}

/// Applies if this program was started for that; it doesn't return if it is killed in time.
pub(crate) fn land_if_asked() -> Option<Result<()>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != VICTIM {
        return None;
    }
    let arguments: Vec<OsString> = arguments.collect();
    Some(match arguments.as_slice() {
        [tidelock, data, plan] => land(Path::new(tidelock), Path::new(data), plan),
        _ => Err(anyhow::anyhow!("`{VICTIM}` wants three arguments")),
    })
}

fn land(tidelock: &Path, data: &Path, plan: &OsString) -> Result<()> {
    let plan: PlanId = plan.to_str().context("a plan that is not UTF-8")?.parse()?;
    runtime()?.block_on(async {
        let service = Service::open(tidelock, data).await?;
        println!("{BEGUN}");
        std::io::stdout().flush()?;
        must_be_done(&service.apply(plan).await?, FILES)?;
        service.close().await;
        Ok(())
    })
}

struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        // After a wait, both do nothing.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(super) fn applies(directory: &Path, tidelock: &Path, rounds: usize) -> Result<KillOutcome> {
    let project = Project::make(directory.join("project"), FILES)?;
    let data = directory.join("data");
    std::fs::create_dir(&data)?;
    let plan = runtime()?.block_on(async {
        let service = Service::open(tidelock, &data).await?;
        let plan = service.plan(&project.root).await?;
        service.shell(plan, &append(0..FILES)).await?;
        service.close().await;
        anyhow::Ok(plan)
    })?;
    let mut found = KillOutcome::default();
    // Let the first one finish, to learn how long it takes.
    let mut within = None;
    for _ in 0..=rounds {
        settle();
        let begun = Apply::start(tidelock, &data, plan)?;
        let limit = match within {
            None => {
                within = Some(begun.wait_for_end()?);
                None
            }
            Some(within) => Some(begun.kill(random_below(within))?),
        };
        let looked = recover(tidelock, &data, &project, plan)?;
        if let Some(was_killed) = limit {
            found.killed += usize::from(was_killed);
            found.count(looked.0);
            found.stale += usize::from(!looked.1);
        }
        ensure!(
            looked.0 != Tree::Mixed,
            "a tree is mixed after a recovery; the rounds end here: {found:?}"
        );
    }
    Ok(found)
}

struct Apply {
    victim: Victim,
    began: Instant,
}

impl Apply {
    fn start(tidelock: &Path, data: &Path, plan: PlanId) -> Result<Self> {
        let program: PathBuf = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(program)
            .arg(VICTIM)
            .args([tidelock, data])
            .arg(plan.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut victim = Victim(child);
        let stdout = victim.0.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line.trim() == BEGUN, "the apply did not begin: `{line}`");
        Ok(Self {
            victim,
            began: Instant::now(),
        })
    }

    fn wait_for_end(mut self) -> Result<Duration> {
        ensure!(self.victim.0.wait()?.success(), "the apply failed");
        Ok(self.began.elapsed())
    }

    /// Kills it after the given time. Returns whether that was in time.
    fn kill(mut self, after: Duration) -> Result<bool> {
        thread::sleep(after); // tidy: a kill at a moment that nobody has chosen
        let had_ended = self.victim.0.try_wait()?.is_some();
        self.victim.0.kill()?;
        self.victim.0.wait()?;
        Ok(!had_ended)
    }
}

/// Opens the service again, checks the tree, and restores its original state. Also returns whether the plan's state
/// matches the tree.
fn recover(tidelock: &Path, data: &Path, project: &Project, plan: PlanId) -> Result<(Tree, bool)> {
    runtime()?.block_on(async {
        let service = Service::open(tidelock, data).await?;
        let record = service.plans.get(plan).await?.record;
        let tree = Tree::of(project)?;
        let expected = match record.state {
            PlanState::Applied => Tree::New,
            _ => Tree::Old,
        };
        let is_true = tree == expected && record.landing.is_none();
        if record.state == PlanState::Applied && tree == Tree::New {
            must_be_done(&service.undo(plan).await?, FILES)?;
        }
        service.close().await;
        Ok((tree, is_true))
    })
}

/// `git merge --ff-only` of the same changes, killed in the same way.
pub(super) fn merges(directory: &Path, rounds: usize) -> Result<KillOutcome> {
    let project = Project::make(directory.join("git"), FILES)?;
    project.branch("changed", (0..FILES).map(|file| (file, content(file) + APPENDED)))?;
    let merge = || -> Result<Victim> {
        Ok(Victim(
            git::command(&project.root, &["merge", "--ff-only", "changed"]).spawn()?,
        ))
    };
    let lock = project.root.join(".git/index.lock");
    let start = git::run(&project.root, &["rev-parse", "main"])?;
    let back = || -> Result<()> {
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => bail!(error),
            _ => {}
        }
        git::run(&project.root, &["reset", "--quiet", "--hard", start.trim()])?;
        git::run(&project.root, &["status"])?;
        Ok(())
    };
    settle();
    let began = Instant::now();
    ensure!(merge()?.0.wait()?.success(), "the merge failed");
    let within = began.elapsed();
    back()?;
    let mut found = KillOutcome::default();
    for _ in 0..rounds {
        settle();
        let begun = Apply {
            victim: merge()?,
            began: Instant::now(),
        };
        found.killed += usize::from(begun.kill(random_below(within))?);
        found.count(Tree::of(&project)?);
        found.stale += usize::from(lock.exists());
        back()?;
    }
    Ok(found)
}

fn random_below(limit: Duration) -> Duration {
    // Every `RandomState` has its own keys, from the operating system.
    let random = RandomState::new().build_hasher().finish();
    limit.mul_f64(random as f64 / u64::MAX as f64)
}
