//! The sandbox that git knows about: a worktree on its own branch, `tidelock/PLAN`.
//!
//! A worktree shares the repository with the user. Of that, commands in it may only write to this worktree's
//! administrative directory. That requires full Landlock support. The objects are the user's too: a process that can
//! write them can delete them. So git can read everything in a worktree, but can't add or commit; use the other
//! strategies for that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use protocol::{PlanId, SandboxStrategy};

use super::contract::{Entrance, Sandbox, SandboxError, SandboxSpec, Strategy, blocking};
use super::copy::{fill_tree, kept_apart, remarks};
use super::fill::copy_file;
use super::git_dir::SETTINGS;
use super::git_program::GitProgram;
use super::layout::{Layout, check_places, make_directory};
use super::removal::remove_tree;
use super::repository::{Repository, is_absence};
use super::surroundings::Surroundings;
use super::whole::Whole;

const BRANCHES: &str = "tidelock";

const LOOKS_ONLY: &str =
    "git can look at everything here and commits nothing: the objects are those of your repository";

#[derive(Clone, Debug)]
pub(super) struct GitWorktree {
    pub(super) git: GitProgram,
    pub(super) scratch: PathBuf,
    /// What no command may change: the scratch space, and the daemon's other directories.
    pub(super) guarded: Arc<[PathBuf]>,
}

#[async_trait]
impl Strategy for GitWorktree {
    fn name(&self) -> SandboxStrategy {
        SandboxStrategy::GitWorktree
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let made = self.make(spec).await;
        if made.is_err() {
            // Report the first error.
            drop(self.remove(spec).await);
        }
        made
    }

    async fn open(&self, spec: &SandboxSpec) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let (this, spec) = (self.clone(), spec.clone());
        blocking(move || {
            let layout = Layout::of(&spec);
            let (root, temporary) = (layout.tree(), layout.temporary());
            let administration = administration_of(&spec)?;
            let mut environment = Surroundings::of_command(spec.plan, &root, &temporary);
            environment.extend(settings());
            let entrance = Entrance {
                view: None,
                write_below: vec![root.clone(), temporary, administration],
                kept_apart: kept_apart(&spec, &this.guarded),
                environment,
                root,
            };
            let mut remarks = remarks(&spec, &layout);
            remarks.push(LOOKS_ONLY.to_owned());
            let opened = Whole::open(&spec.base, &spec.directory, &spec.workspace, entrance, remarks)?;
            Ok(Arc::new(opened) as Arc<dyn Sandbox>)
        })
        .await
    }

    async fn remove(&self, spec: &SandboxSpec) -> Result<u64, SandboxError> {
        let directory = spec.directory.clone();
        let start = fs::read_to_string(start_file(&directory)).ok();
        let removed = directory.clone();
        let freed =
            blocking(move || remove_tree(&removed).map_err(SandboxError::io("removing", &removed))).await?;
        let workspace = &spec.workspace;
        if matches!(Repository::of(workspace), Ok(Some(_))) {
            // Only ours: `git worktree prune` would also remove others that happen not to be mounted.
            let tree = Layout {
                directory: &directory,
            }
            .tree();
            let arguments = [
                "worktree".as_ref(),
                "remove".as_ref(),
                "--force".as_ref(),
                tree.as_os_str(),
            ];
            if let Err(error) = self.git.run(workspace, &arguments).await {
                tracing::debug!(%error, "git knew nothing of the worktree");
            }
            self.remove_branch(workspace, spec.plan, start.as_deref()).await?;
        }
        Ok(freed)
    }
}

impl GitWorktree {
    async fn make(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let layout = Layout::of(spec);
        check_places(spec, &self.scratch).map_err(SandboxError::io("making", &spec.directory))?;
        let repository = repository_of(&spec.workspace)?;
        let head = repository
            .head()
            .map_err(SandboxError::io("reading", &repository.own))?;
        let head = head.ok_or_else(|| SandboxError::NotPossible {
            strategy: SandboxStrategy::GitWorktree,
            why: "the repository has no commit yet".to_owned(),
        })?;
        make_directory(&spec.directory)?;
        let start = start_file(&spec.directory);
        fs::write(&start, &head).map_err(SandboxError::io("writing", &start))?;
        let (branch, tree) = (format!("{BRANCHES}/{}", spec.plan), layout.tree());
        let mut arguments: Vec<&OsStr> = Vec::new();
        arguments.extend(["worktree", "add", "--quiet", "--no-checkout", "--no-track", "-b"].map(OsStr::new));
        arguments.extend([OsStr::new(&branch), tree.as_os_str(), OsStr::new(&head)]);
        self.git.run(&spec.workspace, &arguments).await?;
        let spec = spec.clone();
        blocking(move || {
            let layout = Layout::of(&spec);
            // Git has just made it, and no command has run inside.
            let own = repository_of(&layout.tree())?;
            let recorded = administration_file(&spec.directory);
            fs::write(&recorded, own.own.as_os_str().as_bytes())
                .map_err(SandboxError::io("writing", &recorded))?;
            fill_tree(&spec, &layout)?;
            copy_index(&repository, &own)
        })
        .await
    }

    /// Deletes the branch of a sandbox if all its commits are reachable elsewhere, and if it hasn't moved since it
    /// was checked.
    async fn remove_branch(
        &self,
        workspace: &Path,
        plan: PlanId,
        start: Option<&str>,
    ) -> Result<(), SandboxError> {
        let name = format!("refs/heads/{BRANCHES}/{plan}");
        let ask = ["rev-parse", "--verify", "--quiet", &name].map(OsStr::new);
        let Ok(tip) = self.git.run(workspace, &ask).await else {
            return Ok(());
        };
        // As a branch, not as a ref: `--branches` uses short names.
        let exclude = format!("--exclude={BRANCHES}/{plan}");
        let elsewhere = ["--not", &exclude, "--branches", "--remotes", "--tags", "HEAD"];
        let mut ask: Vec<&OsStr> = ["rev-list", "--max-count=1", &tip].map(OsStr::new).into();
        ask.extend(elsewhere.map(OsStr::new));
        ask.extend(start.map(OsStr::new));
        if !self.git.run(workspace, &ask).await?.is_empty() {
            tracing::warn!(branch = %name, "the branch of a sandbox has commits of its own and is kept");
            return Ok(());
        }
        let delete = ["update-ref", "-d", &name, &tip].map(OsStr::new);
        self.git.run(workspace, &delete).await.map(drop)
    }
}

/// The file that records the initial HEAD.
fn start_file(directory: &Path) -> PathBuf {
    directory.join("start")
}

/// The file that records which directory of the repository belongs to the worktree. It is beside the tree, where no
/// command can write.
fn administration_file(directory: &Path) -> PathBuf {
    directory.join("administration")
}

/// The directory of the repository that belongs to this worktree, which commands in it may write to. The tree's own
/// `.git` isn't trusted: it is a file like any other, and a command can make it point to the user's own directory.
fn administration_of(spec: &SandboxSpec) -> Result<PathBuf, SandboxError> {
    let recorded = administration_file(&spec.directory);
    let repository = repository_of(&spec.workspace)?;
    let worktrees = repository.common.join("worktrees");
    let found = match fs::read(&recorded) {
        Ok(path) => Some(PathBuf::from(OsString::from_vec(path))),
        // Worktrees of earlier versions have no record, but the repository lists them too.
        Err(error) if is_absence(&error) => named_by_repository(&worktrees, &spec.directory)?,
        Err(error) => return Err(SandboxError::io("reading", &recorded)(error)),
    };
    let is_own = |path: &PathBuf| {
        let is_plain = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        path.parent() == Some(&worktrees) && is_plain
    };
    found.filter(is_own).ok_or_else(|| SandboxError::NotPossible {
        strategy: SandboxStrategy::GitWorktree,
        why: format!(
            "the repository no longer knows the worktree {}",
            spec.directory.display()
        ),
    })
}

/// The repository's directory for a worktree, if only one claims it.
fn named_by_repository(worktrees: &Path, directory: &Path) -> Result<Option<PathBuf>, SandboxError> {
    let pointer = Layout { directory }.tree().join(".git");
    let items = match fs::read_dir(worktrees) {
        Ok(items) => items,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(SandboxError::io("reading", worktrees)(error)),
    };
    let mut claims = Vec::new();
    for item in items {
        let path = item.map_err(SandboxError::io("reading", worktrees))?.path();
        let claimed = match fs::read(path.join("gitdir")) {
            Ok(claimed) => claimed,
            Err(error) if is_absence(&error) => continue,
            Err(error) => return Err(SandboxError::io("reading", &path)(error)),
        };
        if claimed.trim_ascii_end() == pointer.as_os_str().as_bytes() {
            claims.push(path);
        }
    }
    Ok(match claims.len() {
        1 => claims.pop(),
        _ => None,
    })
}

fn repository_of(tree: &Path) -> Result<Repository, SandboxError> {
    let found = Repository::of(tree).map_err(SandboxError::io("reading", tree))?;
    found.ok_or_else(|| SandboxError::NotPossible {
        strategy: SandboxStrategy::GitWorktree,
        why: format!("{} is no repository of git", tree.display()),
    })
}

/// The settings for commands in a worktree. Its configuration is the user's, so they are passed in the environment.
fn settings() -> impl Iterator<Item = (OsString, OsString)> {
    let ours = SETTINGS.iter().filter(|(name, _)| *name != "core.bare");
    let pairs = ours.clone().enumerate().flat_map(|(at, (name, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}").into(), (*name).into()),
            (format!("GIT_CONFIG_VALUE_{at}").into(), (*value).into()),
        ]
    });
    let count = ("GIT_CONFIG_COUNT".into(), ours.count().to_string().into());
    pairs.chain([count])
}

/// Copies the user's index to the worktree, so that both have the same staged changes.
fn copy_index(from: &Repository, to: &Repository) -> Result<(), SandboxError> {
    let items = fs::read_dir(&from.own).map_err(SandboxError::io("reading", &from.own))?;
    for item in items {
        let item = item.map_err(SandboxError::io("reading", &from.own))?;
        let name = item.file_name();
        // A split index has a second file.
        if name == "index" || name.as_encoded_bytes().starts_with(b"sharedindex.") {
            match copy_file(&item.path(), &to.own.join(&name)) {
                Err(error) if is_absence(&error) => {}
                copied => drop(copied.map_err(SandboxError::io("copying", &item.path()))?),
            }
        }
    }
    Ok(())
}
