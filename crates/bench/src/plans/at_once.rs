//! Eight plans applied at once, in one workspace.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Result;
use protocol::OutcomeKind;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::git;
use super::project::{APPENDED, Project, append, content, edited, path};
use super::service::Service;

pub(super) const LANDERS: usize = 8;
/// How many files each of them changes.
const CHANGED: usize = 20;
const FILES: usize = LANDERS * CHANGED;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Share {
    Nothing,
    /// All change the same line of the same files, each in a different way.
    EveryLine,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Became {
    /// Reported as applied, with all their files in the tree.
    pub(super) landed: usize,
    pub(super) reported: usize,
    /// Failed on a lock, or on what another one had left half done.
    pub(super) failed: usize,
    /// Reported as applied, but not all of it is in the tree.
    pub(super) lost: usize,
    /// Files in the tree that differ from what the applied changes left.
    pub(super) dirty: usize,
    /// Rounds after which the repository was in the middle of a merge, or locked.
    pub(super) stuck: usize,
}

impl Share {
    fn files(self, lander: usize) -> std::ops::Range<usize> {
        match self {
            Self::Nothing => lander * CHANGED..(lander + 1) * CHANGED,
            Self::EveryLine => 0..CHANGED,
        }
    }

    fn text(self, lander: usize, file: usize) -> String {
        match self {
            Self::Nothing => content(file) + APPENDED,
            Self::EveryLine => edited(file, 1, &said_by(lander)),
        }
    }

    fn command(self, lander: usize) -> String {
        let files = self.files(lander);
        match self {
            Self::Nothing => append(files),
            Self::EveryLine => {
                let paths: Vec<String> = files.map(path).collect();
                format!("sed -i '1s/.*/{}/' {}", said_by(lander), paths.join(" "))
            }
        }
    }

    fn is_in(self, project: &Project, lander: usize) -> Result<bool> {
        for file in self.files(lander) {
            if project.read(file)? != self.text(lander, file) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many files match neither the original nor the version of one that was applied.
    fn dirty(self, project: &Project, landed: &[usize]) -> Result<usize> {
        let mut dirty = 0;
        for file in 0..FILES {
            let mut wanted = landed
                .iter()
                .filter(|lander| self.files(**lander).contains(&file));
            let expected = match wanted.next() {
                Some(lander) => self.text(*lander, file),
                None => content(file),
            };
            dirty += usize::from(project.read(file)? != expected);
        }
        Ok(dirty)
    }
}

fn said_by(lander: usize) -> String {
    format!("this is what number {lander} says")
}

/// A workspace for eight plans, and one for eight branches.
pub(super) struct Places {
    directory: PathBuf,
    share: Share,
}

impl Places {
    pub(super) fn new(directory: PathBuf, share: Share) -> Result<Self> {
        std::fs::create_dir(&directory)?;
        Ok(Self { directory, share })
    }

    pub(super) fn applies(&self, runtime: &Runtime, tidelock: &Path, rounds: usize) -> Result<Became> {
        let mut became = Became::default();
        for round in 0..rounds {
            let directory = self.directory.join(format!("plans-{round}"));
            std::fs::create_dir(&directory)?;
            let project = Project::make(directory.join("project"), FILES)?;
            let data = directory.join("data");
            std::fs::create_dir(&data)?;
            let landed = runtime.block_on(async {
                let service = Arc::new(Service::open(tidelock, &data).await?);
                let landed = self.apply_all(&service, &project, &mut became).await?;
                if let Some(service) = Arc::into_inner(service) {
                    service.close().await;
                }
                anyhow::Ok(landed)
            })?;
            self.look(&project, &landed, &mut became)?;
            std::fs::remove_dir_all(directory)?;
        }
        Ok(became)
    }

    async fn apply_all(
        &self,
        service: &Arc<Service>,
        project: &Project,
        became: &mut Became,
    ) -> Result<Vec<usize>> {
        let mut plans = Vec::new();
        for lander in 0..LANDERS {
            let plan = service.plan(&project.root).await?;
            service.shell(plan, &self.share.command(lander)).await?;
            plans.push(plan);
        }
        let mut applies = JoinSet::new();
        for (lander, plan) in plans.into_iter().enumerate() {
            let service = Arc::clone(service);
            applies.spawn(async move { (lander, service.apply(plan).await) });
        }
        let mut landed = Vec::new();
        for (lander, outcome) in applies.join_all().await {
            match outcome {
                Ok(outcome) if outcome.kind == OutcomeKind::Done => landed.push(lander),
                Ok(outcome) if !outcome.conflicts.is_empty() => became.reported += 1,
                _ => became.failed += 1,
            }
        }
        Ok(landed)
    }

    /// Eight `git merge` at once, in one checkout.
    pub(super) fn merges(&self, rounds: usize) -> Result<Became> {
        let mut became = Became::default();
        for round in 0..rounds {
            let project = Project::make(self.directory.join(format!("git-{round}")), FILES)?;
            for lander in 0..LANDERS {
                let files = self.share.files(lander);
                let files = files.map(|file| (file, self.share.text(lander, file)));
                project.branch(&format!("lander-{lander}"), files)?;
            }
            let merges: Vec<_> = (0..LANDERS)
                .map(|lander| {
                    let branch = format!("lander-{lander}");
                    let mut merge = git::command(&project.root, &["merge", "--no-edit", &branch]);
                    merge.stdout(Stdio::piped()).spawn()
                })
                .collect::<Result<_, _>>()?;
            let mut landed = Vec::new();
            for (lander, merge) in merges.into_iter().enumerate() {
                let output = merge.wait_with_output()?;
                let said = String::from_utf8_lossy(&output.stdout);
                match output.status.success() {
                    true => landed.push(lander),
                    false if said.contains("CONFLICT") => became.reported += 1,
                    false => became.failed += 1,
                }
            }
            self.look(&project, &landed, &mut became)?;
            let left = [".git/MERGE_HEAD", ".git/index.lock"].map(|name| project.root.join(name).exists());
            became.stuck += usize::from(left.contains(&true));
            std::fs::remove_dir_all(&project.root)?;
        }
        Ok(became)
    }

    fn look(&self, project: &Project, landed: &[usize], became: &mut Became) -> Result<()> {
        for lander in landed {
            match self.share.is_in(project, *lander)? {
                true => became.landed += 1,
                false => became.lost += 1,
            }
        }
        became.dirty += self.share.dirty(project, landed)?;
        Ok(())
    }
}
