//! Which strategies work here, and which one a workspace gets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use process::{Enforcement, Processes, landlock_support, view_support};
use protocol::SandboxStrategy;
use rustix::fs::ioctl_ficlone;

use super::contract::{SandboxError, Strategy};
use super::copy::Copy;
use super::git_program::GitProgram;
use super::git_worktree::GitWorktree;
use super::layout::make_directory;
use super::overlay::Overlay;
use super::repository::Repository;
use super::surroundings::Surroundings;

/// The strategies, and the results of probing them. Clones share them.
#[derive(Clone, Debug)]
pub struct Strategies {
    /// In order of preference.
    all: Arc<[Probed]>,
}

#[derive(Debug)]
struct Probed {
    strategy: Arc<dyn Strategy>,
    /// A description, or why it doesn't work.
    verdict: Result<String, String>,
}

impl Strategies {
    /// Probes what works, with sandboxes in this directory. It is the scratch space of all plans: it contains the
    /// sandboxes, and is hidden from commands as far as the strategy can. `guarded` lists other directories that no
    /// command may change. The environment is the user's; only the home, the cache and the path matter.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn probe(
        processes: &Processes,
        directory: &Path,
        guarded: &[PathBuf],
        environment: &BTreeMap<OsString, OsString>,
    ) -> Result<Self, SandboxError> {
        make_directory(directory)?;
        let scratch = directory
            .canonicalize()
            .map_err(SandboxError::io("finding", directory))?;
        let guarded = outermost(&scratch, guarded)?;
        let surroundings = Arc::new(Surroundings::of(environment));
        let git = GitProgram {
            processes: processes.clone(),
            surroundings: Arc::clone(&surroundings),
        };
        let overlay = Probed {
            verdict: view_support(processes, &scratch)
                .await
                .map(|()| "an overlay, at the workspace's own path".to_owned()),
            strategy: Arc::new(Overlay {
                processes: processes.clone(),
                scratch: scratch.clone(),
                guarded: Arc::clone(&guarded),
                surroundings,
            }),
        };
        let git_worktree = Probed {
            verdict: probe_git(&git, &scratch).await,
            strategy: Arc::new(GitWorktree {
                git,
                scratch: scratch.clone(),
                guarded: Arc::clone(&guarded),
            }),
        };
        let copy = Probed {
            verdict: Ok(probe_copy(&scratch)),
            strategy: Arc::new(Copy { scratch, guarded }),
        };
        Ok(Self {
            all: Arc::new([overlay, git_worktree, copy]),
        })
    }

    /// All strategies in order of preference: a description of each, or why it doesn't work here.
    #[must_use]
    pub fn list(&self) -> Vec<(SandboxStrategy, Result<String, String>)> {
        let shown = |one: &Probed| (one.strategy.name(), one.verdict.clone());
        self.all.iter().map(shown).collect()
    }

    /// The strategy for a new sandbox: the requested one, or the best that works. It checks the workspace, so it blocks
    /// briefly.
    pub fn pick(
        &self,
        wanted: Option<SandboxStrategy>,
        workspace: &Path,
    ) -> Result<Arc<dyn Strategy>, SandboxError> {
        let mut refused = None;
        for one in self.all.iter() {
            let name = one.strategy.name();
            if wanted.is_some_and(|wanted| wanted != name) {
                continue;
            }
            let fits = one.verdict.as_ref().map_err(Clone::clone);
            match fits.and_then(|_| suits(name, workspace)) {
                Ok(()) => return Ok(Arc::clone(&one.strategy)),
                Err(why) => refused = Some(SandboxError::NotPossible { strategy: name, why }),
            }
        }
        Err(refused.unwrap_or_else(|| SandboxError::NotPossible {
            strategy: wanted.unwrap_or(SandboxStrategy::Copy),
            why: "there is no such strategy".to_owned(),
        }))
    }

    /// The strategy of an existing sandbox. If it no longer works, opening the sandbox reports that; removing it still
    /// works.
    #[must_use]
    pub fn get(&self, name: SandboxStrategy) -> Arc<dyn Strategy> {
        let found = self.all.iter().find(|one| one.strategy.name() == name);
        // Every name has a strategy; the fallback only satisfies the compiler.
        Arc::clone(&found.unwrap_or(&self.all[0]).strategy)
    }
}

/// The real paths of the scratch space and everything else that no command may change. A directory inside another one
/// is already guarded with it.
fn outermost(scratch: &Path, guarded: &[PathBuf]) -> Result<Arc<[PathBuf]>, SandboxError> {
    let mut places = vec![scratch.to_owned()];
    for place in guarded {
        places.push(place.canonicalize().map_err(SandboxError::io("finding", place))?);
    }
    let is_outermost = |place: &PathBuf| {
        let mut others = places.iter().filter(|other| *other != place);
        !others.any(|other| place.starts_with(other))
    };
    let mut outer: Vec<PathBuf> = places
        .iter()
        .filter(|place| is_outermost(place))
        .cloned()
        .collect();
    outer.sort();
    outer.dedup();
    Ok(outer.into())
}

fn suits(name: SandboxStrategy, workspace: &Path) -> Result<(), String> {
    match name {
        SandboxStrategy::Overlay | SandboxStrategy::Copy => Ok(()),
        SandboxStrategy::GitWorktree => {
            let failed = |error: std::io::Error| format!("the repository cannot be read: {error}");
            let repository = Repository::of(workspace).map_err(failed)?;
            let repository = repository.ok_or("the workspace is no repository of git")?;
            if repository.has_reftable() {
                return Err("the repository keeps its branches in a reftable".to_owned());
            }
            let head = repository.head().map_err(failed)?;
            head.map(drop)
                .ok_or_else(|| "the repository has no commit yet".to_owned())
        }
    }
}

async fn probe_git(git: &GitProgram, scratch: &Path) -> Result<String, String> {
    match landlock_support() {
        Enforcement::Full => {}
        Enforcement::Partial => {
            return Err("the Landlock of this kernel cannot keep the user's branches safe".to_owned());
        }
        Enforcement::None => {
            return Err("this kernel has no Landlock to keep the user's branches safe".to_owned());
        }
    }
    let version = git.run(scratch, &["--version".as_ref()]).await;
    version
        .map(|version| format!("a worktree on a branch of its own, {version}"))
        .map_err(|error| error.to_string())
}

/// Whether copies share blocks until they are written.
fn probe_copy(scratch: &Path) -> String {
    let (from, to) = (scratch.join(".probe-from"), scratch.join(".probe-to"));
    let shares = || -> std::io::Result<()> {
        std::fs::write(&from, b"x")?;
        ioctl_ficlone(File::create(&to)?, File::open(&from)?)?;
        Ok(())
    };
    let shares = shares();
    for file in [from, to] {
        // It is empty, and the next probe overwrites it.
        drop(std::fs::remove_file(file));
    }
    match shares {
        Ok(()) => "a copy that shares what was not written".to_owned(),
        Err(_) => "a copy, file by file".to_owned(),
    }
}
