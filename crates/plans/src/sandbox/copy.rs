//! The sandbox that works everywhere: a copy of the base, with a private git directory.
//!
//! Ignored directories are not in it: they may be larger than everything else, and a copy of a build refers to where it
//! was made. A copy is at another path than the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::SandboxStrategy;

use async_trait::async_trait;

use super::contract::{Entrance, Sandbox, SandboxError, SandboxSpec, Strategy};
use super::fill::fill;
use super::git_dir::{self, Seen};
use super::layout::{Layout, check_places, copy_ignored_files, make_directory};
use super::pinned;
use super::removal::remove_tree;
use super::repository::Repository;
use super::surroundings::Surroundings;
use super::whole::Whole;
use super::work::blocking;
use crate::RelPath;

/// How many ignored directories are named to the user.
const NAMED_DIRECTORIES: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// The scratch space of all plans.
    pub(super) scratch: PathBuf,
    /// What no command may change: the scratch space, and what else is the daemon's.
    pub(super) guarded: Arc<[PathBuf]>,
}

#[async_trait]
impl Strategy for Copy {
    fn name(&self) -> SandboxStrategy {
        SandboxStrategy::Copy
    }

    async fn create(&self, order: &SandboxSpec) -> Result<(), SandboxError> {
        let (this, order) = (self.clone(), order.clone());
        blocking(move || {
            let made = this.make(&order);
            if made.is_err() {
                // The first error is the one to be told.
                drop(remove_tree(&order.directory));
            }
            made
        })
        .await
    }

    async fn open(&self, order: &SandboxSpec) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let (this, order) = (self.clone(), order.clone());
        blocking(move || {
            let layout = Layout {
                directory: &order.directory,
            };
            let (root, temporary) = (layout.tree(), layout.temporary());
            let entrance = Entrance {
                view: None,
                write_below: vec![root.clone(), temporary.clone()],
                kept_apart: kept_apart(&order, &this.guarded),
                environment: Surroundings::of_command(order.plan, &root, &temporary),
                root,
            };
            let remarks = remarks(&order, &layout);
            let opened = Whole::open(&order.base, &order.directory, &order.workspace, entrance, remarks)?;
            Ok(Arc::new(opened) as Arc<dyn Sandbox>)
        })
        .await
    }

    async fn remove(&self, order: &SandboxSpec) -> Result<u64, SandboxError> {
        let order = order.clone();
        blocking(move || remove_sandbox(&order)).await
    }
}

impl Copy {
    fn make(&self, order: &SandboxSpec) -> Result<(), SandboxError> {
        let layout = Layout {
            directory: &order.directory,
        };
        check_places(order, &self.scratch).map_err(SandboxError::io("making", &order.directory))?;
        fill_tree(order, &layout)?;
        let repository =
            Repository::of(&order.workspace).map_err(SandboxError::io("reading", &order.workspace))?;
        let Some(repository) = repository else {
            return Ok(());
        };
        let git = layout.tree().join(".git");
        make_directory(&git)?;
        let seen = Seen {
            root: &layout.tree(),
            objects: &repository.common.join("objects"),
        };
        let made = git_dir::make(&repository, &git, seen).map_err(SandboxError::io("making", &git))?;
        match made {
            Ok(()) => {
                keep_objects(&repository, &git, order);
                Ok(())
            }
            Err(why) => {
                drop(remove_tree(&git));
                fs::write(layout.no_git(), why).map_err(SandboxError::io("writing", &layout.no_git()))
            }
        }
    }
}

/// Keeps the objects that a private git directory borrows. If the user's repository cannot be written, git inside works all
/// the same, as long as nobody deletes what it needs.
pub(super) fn keep_objects(repository: &Repository, git: &Path, order: &SandboxSpec) {
    if let Err(error) = pinned::pin(repository, git, order) {
        tracing::warn!(%error, plan = %order.plan, "the repository may drop objects that the sandbox needs");
    }
}

/// Takes a sandbox away, and what kept its objects. How many bytes that freed.
pub(super) fn remove_sandbox(order: &SandboxSpec) -> Result<u64, SandboxError> {
    if let Err(error) = pinned::unpin(order) {
        tracing::warn!(%error, plan = %order.plan, "refs below refs/tidelock run_id in the repository");
    }
    remove_tree(&order.directory).map_err(SandboxError::io("removing", &order.directory))
}

/// Makes the files of a copy or a worktree, and remembers them. Its tree may be there already, with a `.git` in it.
pub(super) fn fill_tree(order: &SandboxSpec, layout: &Layout<'_>) -> Result<(), SandboxError> {
    let tree = layout.tree();
    make_directory(&tree)?;
    make_directory(&layout.temporary())?;
    let memory = fill(&order.base, &tree).map_err(SandboxError::io("filling", &tree))?;
    copy_ignored_files(order, &tree)?;
    let kept = layout.memory();
    memory.save(&kept).map_err(SandboxError::io("writing", &kept))
}

/// What a command in a copy or a worktree sees, and must not reach.
pub(super) fn kept_apart(order: &SandboxSpec, guarded: &[PathBuf]) -> Vec<PathBuf> {
    guarded.iter().chain([&order.workspace]).cloned().collect()
}

/// What is to be said of a copy or a worktree.
pub(super) fn remarks(order: &SandboxSpec, layout: &Layout<'_>) -> Vec<String> {
    let directories = &order.ignored.directories;
    let names: Vec<String> = directories
        .iter()
        .take(NAMED_DIRECTORIES)
        .map(RelPath::to_string)
        .collect();
    let more = match directories.len().saturating_sub(NAMED_DIRECTORIES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let missing = format!(
        "ignored directories and nested repositories are not in this sandbox: {}{more}",
        names.join(", ")
    );
    let missing = (!directories.is_empty()).then_some(missing);
    missing
        .into_iter()
        .chain(fs::read_to_string(layout.no_git()))
        .collect()
}
