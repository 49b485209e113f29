//! The sandbox that works everywhere: a copy of the base, with a private git directory.
//!
//! It doesn't contain ignored directories: they may be larger than everything else, and a copied build refers to its
//! original path. A copy is at another path than the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::SandboxStrategy;

use async_trait::async_trait;

use super::contract::{Entrance, Sandbox, SandboxError, SandboxSpec, Strategy, blocking};
use super::fill::fill;
use super::git_dir::{self, Seen};
use super::layout::{Layout, check_places, copy_ignored_files, make_directory};
use super::pinned;
use super::removal::remove_tree;
use super::repository::Repository;
use super::surroundings::Surroundings;
use super::whole::Whole;
use crate::RelPath;

/// How many ignored directories are listed for the user.
const NAMED_DIRECTORIES: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) scratch: PathBuf,
    /// What no command may change: the scratch space, and the daemon's other directories.
    pub(super) guarded: Arc<[PathBuf]>,
}

#[async_trait]
impl Strategy for Copy {
    fn name(&self) -> SandboxStrategy {
        SandboxStrategy::Copy
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let (this, spec) = (self.clone(), spec.clone());
        blocking(move || {
            let made = this.make(&spec);
            if made.is_err() {
                // Report the first error.
                drop(remove_tree(&spec.directory));
            }
            made
        })
        .await
    }

    async fn open(&self, spec: &SandboxSpec) -> Result<Arc<dyn Sandbox>, SandboxError> {
        let (this, spec) = (self.clone(), spec.clone());
        blocking(move || {
            let layout = Layout::of(&spec);
            let (root, temporary) = (layout.tree(), layout.temporary());
            let entrance = Entrance {
                view: None,
                write_below: vec![root.clone(), temporary.clone()],
                kept_apart: kept_apart(&spec, &this.guarded),
                environment: Surroundings::of_command(spec.plan, &root, &temporary),
                root,
            };
            let remarks = remarks(&spec, &layout);
            let opened = Whole::open(&spec.base, &spec.directory, &spec.workspace, entrance, remarks)?;
            Ok(Arc::new(opened) as Arc<dyn Sandbox>)
        })
        .await
    }

    async fn remove(&self, spec: &SandboxSpec) -> Result<u64, SandboxError> {
        let spec = spec.clone();
        blocking(move || remove_sandbox(&spec)).await
    }
}

impl Copy {
    fn make(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let layout = Layout::of(spec);
        check_places(spec, &self.scratch).map_err(SandboxError::io("making", &spec.directory))?;
        fill_tree(spec, &layout)?;
        let repository =
            Repository::of(&spec.workspace).map_err(SandboxError::io("reading", &spec.workspace))?;
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
                keep_objects(&repository, &git, spec);
                Ok(())
            }
            Err(why) => {
                drop(remove_tree(&git));
                fs::write(layout.no_git(), why).map_err(SandboxError::io("writing", &layout.no_git()))
            }
        }
    }
}

/// Keeps the objects that a private git directory borrows. If the user's repository can't be written, git inside still
/// works, as long as no one deletes the objects it needs.
pub(super) fn keep_objects(repository: &Repository, git: &Path, spec: &SandboxSpec) {
    if let Err(error) = pinned::pin(repository, git, spec) {
        tracing::warn!(%error, plan = %spec.plan, "the repository may drop objects that the sandbox needs");
    }
}

/// Removes a sandbox, and what kept its objects. Returns how many bytes that freed.
pub(super) fn remove_sandbox(spec: &SandboxSpec) -> Result<u64, SandboxError> {
    if let Err(error) = pinned::unpin(spec) {
        tracing::warn!(%error, plan = %spec.plan, "refs below refs/tidelock stay in the repository");
    }
    remove_tree(&spec.directory).map_err(SandboxError::io("removing", &spec.directory))
}

/// Makes the files of a copy or a worktree, and remembers them. Its tree may already exist, with a `.git` in it.
pub(super) fn fill_tree(spec: &SandboxSpec, layout: &Layout<'_>) -> Result<(), SandboxError> {
    let tree = layout.tree();
    make_directory(&tree)?;
    make_directory(&layout.temporary())?;
    let memory = fill(&spec.base, &tree).map_err(SandboxError::io("filling", &tree))?;
    copy_ignored_files(spec, &tree)?;
    let kept = layout.memory();
    memory.save(&kept).map_err(SandboxError::io("writing", &kept))
}

/// What a command in a copy or a worktree can see but must not access.
pub(super) fn kept_apart(spec: &SandboxSpec, guarded: &[PathBuf]) -> Vec<PathBuf> {
    guarded.iter().chain([&spec.workspace]).cloned().collect()
}

/// The remarks about a copy or a worktree.
pub(super) fn remarks(spec: &SandboxSpec, layout: &Layout<'_>) -> Vec<String> {
    let directories = &spec.ignored.directories;
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
