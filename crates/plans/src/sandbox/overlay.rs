//! The sandbox on top of the workspace: an overlay on the base, at the workspace's own path, in its own namespaces.
//!
//! Ignored files aren't in the base. Each ignored directory is an overlay on the workspace's own one: builds are warm,
//! and build output stays in the sandbox. The lower directories of these layers can change: the user's builds may show
//! through until the sandbox has its own version of a file. If the user replaces such a directory, the sandbox is
//! opened again before the next command, unless another one is still running in it. Files that plans carry come from
//! the base alone, which never changes.
//!
//! A directory with something mounted on it can't be removed or renamed from inside, only emptied.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use process::{Mount, Processes, View, ViewSpec};
use protocol::SandboxStrategy;

use super::commits::made_inside;
use super::compare::changes;
use super::contract::{Captured, Entrance, Known, Sandbox, SandboxError, SandboxSpec, Strategy, blocking};
use super::copy::{keep_objects, remove_sandbox};
use super::git_dir::{self, LAYERED, Seen};
use super::ignoring::Ignoring;
use super::layout::{Layer, Layout, check_places, copy_ignored_files, make_directory};
use super::memory::Memory;
use super::removal::remove_tree;
use super::repository::Repository;
use super::surroundings::Surroundings;
use super::upper::{Walk, walk};
use crate::{IgnoreRules, LeftOut, ReadBounds, RelPath, Tree, WhyLeftOut};

/// How many entries of a workspace directory are checked to detect whether it was replaced.
const LOWER_LIMIT: usize = 10_000;

const TERMINALS: &str = "/dev/pts";

#[derive(Clone, Debug)]
pub(super) struct Overlay {
    pub(super) processes: Processes,
    pub(super) scratch: PathBuf,
    /// What no command may change: the scratch space, and the daemon's other directories.
    pub(super) guarded: Arc<[PathBuf]>,
    pub(super) surroundings: Arc<Surroundings>,
}

/// An open overlay. Its view ends with it.
#[derive(Debug)]
struct OverlaySandbox {
    spec: SandboxSpec,
    view: View,
    tree: Tree,
    upper: Tree,
    layers: Vec<LayeredDirectory>,
    ignoring: Ignoring,
    /// Guards the cache of what was read. It is held to take the cache out and to put it back, never during a
    /// capture.
    memory: Mutex<Memory>,
    remarks: Vec<String>,
}

/// A directory of the workspace with its own layer.
#[derive(Debug)]
struct LayeredDirectory {
    path: RelPath,
    kind: LayeredKind,
    layer: Layer,
    /// The state of the workspace's directory when it was mounted.
    lower: LowerMark,
}

/// Detects whether a directory of the workspace, or a subdirectory, was replaced. A layer keeps using the directories
/// that it has seen: a removed one looks empty to it, whatever is at its path now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct LowerMark(Option<u64>);

impl LowerMark {
    /// Covers a directory and its direct subdirectories. A replacement further down changes the mtime of its parent.
    fn of(directory: &Path) -> Self {
        let mark = || -> io::Result<u64> {
            let mut hasher = DefaultHasher::new();
            identity(&fs::metadata(directory)?).hash(&mut hasher);
            let mut names = Vec::new();
            for item in fs::read_dir(directory)?.take(LOWER_LIMIT) {
                let item = item?;
                if item.file_type()?.is_dir() {
                    names.push(item.path());
                }
            }
            names.sort();
            for name in names {
                identity(&fs::symlink_metadata(&name)?).hash(&mut hasher);
            }
            Ok(hasher.finish())
        };
        // If it can't be read, or changes at this very moment, the next check finds a difference.
        Self(mark().ok())
    }
}

/// The directory's identity, and when an entry was last added or removed.
fn identity(found: &fs::Metadata) -> (u64, u64, i64, i64) {
    (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LayeredKind {
    Ignored,
    Repository,
}

#[async_trait]
impl Strategy for Overlay {
    fn name(&self) -> SandboxStrategy {
        SandboxStrategy::Overlay
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
        let (this, owned) = (self.clone(), spec.clone());
        let (view, layers) = blocking(move || this.view_of(&owned)).await?;
        let view = self.processes.make_view(view).await.map_err(SandboxError::View)?;
        let spec = spec.clone();
        blocking(move || {
            let opened = OverlaySandbox::of(spec, view, layers)?;
            Ok(Arc::new(opened) as Arc<dyn Sandbox>)
        })
        .await
    }

    async fn remove(&self, spec: &SandboxSpec) -> Result<u64, SandboxError> {
        let spec = spec.clone();
        blocking(move || remove_sandbox(&spec)).await
    }
}

impl Overlay {
    fn make(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let layout = Layout::of(spec);
        check_places(spec, &self.scratch).map_err(SandboxError::io("making", &spec.directory))?;
        let place = spec
            .directory
            .strip_prefix(&self.scratch)
            .unwrap_or(&spec.directory);
        for name in ["tmp", "objects"] {
            make_directory(&layout.lobby().join(place).join(name))?;
        }
        layout.layer().make(&spec.workspace)?;
        copy_ignored_files(spec, &layout.layer().upper)?;
        for path in layered(spec) {
            let covered = layout.covered(&spec.workspace.join(path.as_path()))?;
            layout.layer_of(path).make(&covered)?;
        }
        let repository =
            Repository::of(&spec.workspace).map_err(SandboxError::io("reading", &spec.workspace))?;
        match repository {
            Some(repository) => Self::make_git(spec, &layout, &repository),
            None => Ok(()),
        }
    }

    fn make_git(
        spec: &SandboxSpec,
        layout: &Layout<'_>,
        repository: &Repository,
    ) -> Result<(), SandboxError> {
        let git = layout.git();
        make_directory(&git)?;
        let seen = Seen {
            root: &spec.workspace,
            objects: &layout.objects(),
        };
        let made = git_dir::make(repository, &git, seen).map_err(SandboxError::io("making", &git))?;
        if let Err(why) = made {
            drop(remove_tree(&git));
            return fs::write(layout.no_git(), why).map_err(SandboxError::io("writing", &layout.no_git()));
        }
        keep_objects(repository, &git, spec);
        for name in LAYERED {
            if let Some(original) = repository.part(name) {
                layout.layer_of_git(name).make(&original)?;
            }
        }
        Ok(())
    }

    /// The mounts that protect the daemon's own directories where Landlock can't, because they are below a directory
    /// that commands may write to: they are mounted read-only over themselves. The directories above them are mounted
    /// over themselves too, because a mount point can't be renamed. So are those above the workspace.
    fn guards(&self, spec: &SandboxSpec) -> Vec<Mount> {
        let bind = |at: &Path| Mount::Bind {
            source: at.to_owned(),
            at: at.to_owned(),
        };
        let mut mounts: Vec<Mount> = Vec::new();
        for place in self.guarded.iter().chain([&spec.workspace]) {
            for above in self.surroundings.above(place).into_iter().map(bind) {
                if !mounts.contains(&above) {
                    mounts.push(above);
                }
            }
        }
        // After all of those, which would cover it.
        mounts.extend(self.guarded.iter().map(|place| Mount::ReadOnly {
            source: place.clone(),
            at: place.clone(),
        }));
        let terminals = Path::new(TERMINALS);
        mounts.extend(terminals.is_dir().then(|| Mount::Terminals {
            at: terminals.to_owned(),
        }));
        mounts
    }

    /// The mounts of the view. A later mount covers what was at its path before.
    fn view_of(&self, spec: &SandboxSpec) -> Result<(ViewSpec, Vec<LayeredDirectory>), SandboxError> {
        let layout = Layout::of(spec);
        let overlay = |lower: PathBuf, Layer { upper, work }: Layer, at: PathBuf| Mount::Overlay {
            lower: vec![lower],
            upper,
            work,
            at,
        };
        let mut mounts = self.guards(spec);
        mounts.push(overlay(
            spec.base.tree.clone(),
            layout.layer(),
            spec.workspace.clone(),
        ));
        let mut layers = Vec::new();
        for path in layered(spec) {
            let (original, layer) = (spec.workspace.join(path.as_path()), layout.layer_of(path));
            if !layer.upper.is_dir() {
                continue;
            }
            // Before it is mounted: a change in between is noticed the next time.
            let mark = LowerMark::of(&original);
            // A directory that the user has removed still exists in the sandbox.
            let lower = layout.covered(&original)?;
            let kind = match original.join(".git").symlink_metadata() {
                Ok(_) => LayeredKind::Repository,
                Err(_) => LayeredKind::Ignored,
            };
            mounts.push(overlay(lower, layer.clone(), original));
            layers.push(LayeredDirectory {
                path: path.clone(),
                kind,
                layer,
                lower: mark,
            });
        }
        let mut objects = None;
        if layout.git().is_dir() {
            mounts.push(Mount::Bind {
                source: layout.git(),
                at: spec.workspace.join(".git"),
            });
            let repository =
                Repository::of(&spec.workspace).map_err(SandboxError::io("reading", &spec.workspace))?;
            objects = repository
                .as_ref()
                .map(|repository| repository.common.join("objects"));
            for name in LAYERED {
                let layer = layout.layer_of_git(name);
                let original = repository.as_ref().and_then(|repository| repository.part(name));
                if let Some(original) = original.filter(|_| layer.upper.is_dir()) {
                    mounts.push(overlay(original, layer, spec.workspace.join(".git").join(name)));
                }
            }
        }
        // It contains only what belongs to this sandbox: bases and other sandboxes are hidden.
        mounts.push(Mount::Bind {
            source: layout.lobby(),
            at: self.scratch.clone(),
        });
        // The private git directory covers the user's, so its objects are mounted where they can't be
        // written.
        mounts.extend(objects.map(|source| Mount::ReadOnly {
            source,
            at: layout.objects(),
        }));
        let root = spec.workspace.clone();
        Ok((ViewSpec { mounts, root }, layers))
    }
}

/// The directories that get their own layer. Where the base has files in such a directory, the base wins.
fn layered(spec: &SandboxSpec) -> impl Iterator<Item = &RelPath> {
    let is_free = |path: &&RelPath| spec.base.manifest.below(path).next().is_none();
    spec.ignored.directories.iter().filter(is_free)
}

impl OverlaySandbox {
    fn of(spec: SandboxSpec, view: View, layers: Vec<LayeredDirectory>) -> Result<Self, SandboxError> {
        let layout = Layout::of(&spec);
        let root = view.root().as_fd().try_clone_to_owned();
        let root = root.map_err(SandboxError::io("opening", &spec.workspace))?;
        let upper = layout.layer().upper;
        let upper = Tree::open(&upper).map_err(|error| SandboxError::io("opening", &upper)(error.into()))?;
        let remarks = fs::read_to_string(layout.no_git()).into_iter().collect();
        Ok(Self {
            tree: Tree::of(root, spec.workspace.clone()),
            upper,
            ignoring: Ignoring::of(&spec.workspace),
            memory: Mutex::new(Memory::default()), // Guarded as described above.
            view,
            layers,
            remarks,
            spec,
        })
    }

    /// Nested repositories with work in them. What git itself writes there doesn't count, and neither do
    /// ignored files.
    fn changed_repositories(&self, rules: &mut IgnoreRules<'_>) -> io::Result<Vec<LeftOut>> {
        let mut changed = Vec::new();
        for one in &self.layers {
            if one.kind == LayeredKind::Repository && has_work(&one.layer.upper, &one.path, rules)? {
                changed.push(LeftOut::at(&one.path, WhyLeftOut::ChangedRepository));
            }
        }
        Ok(changed)
    }
}

/// Whether the upper layer of a nested repository has something that its git wouldn't ignore.
fn has_work(upper: &Path, path: &RelPath, rules: &mut IgnoreRules<'_>) -> io::Result<bool> {
    if rules.is_ignored(path, true)? {
        return Ok(false);
    }
    let mut pending = vec![(upper.to_owned(), path.clone())];
    while let Some((upper, path)) = pending.pop() {
        for item in fs::read_dir(&upper)? {
            let item = item?;
            let (name, kind) = (item.file_name(), item.file_type()?);
            if name == ".git" {
                continue;
            }
            match path.join(&name) {
                Ok(path) if rules.is_ignored(&path, kind.is_dir())? => {}
                Ok(path) if kind.is_dir() => pending.push((item.path(), path)),
                _ => return Ok(true),
            }
        }
    }
    Ok(false)
}

impl Sandbox for OverlaySandbox {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn entrance(&self) -> Entrance {
        let (root, temporary) = (self.spec.workspace.clone(), self.spec.directory.join("tmp"));
        Entrance {
            view: Some(self.view.clone()),
            write_below: vec![root.clone(), temporary.clone()],
            // It can't see the workspace and the scratch space, and can't write to the daemon's other
            // directories.
            kept_apart: Vec::new(),
            environment: Surroundings::of_command(self.spec.plan, &root, &temporary),
            root,
        }
    }

    fn capture(&self, known: &Known, bounds: &ReadBounds) -> io::Result<Captured> {
        let lock = || self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        // A concurrent capture finds nothing there, and reads everything itself.
        let memory = std::mem::take(&mut *lock());
        let covered: Vec<RelPath> = self.layers.iter().map(|one| one.path.clone()).collect();
        let (walked, changed) = self.ignoring.during(&self.tree, |rules| {
            let walked = walk(Walk {
                upper: &self.upper,
                base: &self.spec.base.manifest,
                known,
                covered: &covered,
                memory: &memory,
                bounds,
                is_ignored: &mut |path, is_directory| rules.is_ignored(path, is_directory),
            })?;
            Ok((walked, self.changed_repositories(rules)?))
        })?;
        *lock() = walked.memory;
        let mut left_out = walked.left_out;
        left_out.extend(changed);
        left_out.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Captured {
            changes: changes(walked.found, known),
            left_out,
            branches: made_inside(&self.tree),
        })
    }

    fn with_ignore_rules(
        &self,
        work: &mut dyn FnMut(&mut IgnoreRules<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.ignoring.during(&self.tree, work)
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn is_current(&self) -> bool {
        self.layers
            .iter()
            .all(|one| LowerMark::of(&self.spec.workspace.join(one.path.as_path())) == one.lower)
    }
}
