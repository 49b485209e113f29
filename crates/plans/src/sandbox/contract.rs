//! The contract of strategies and sandboxes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use protocol::{PlanBranch, PlanId, SandboxStrategy};

use super::layout::Layout;
use super::surroundings::shared_places;
use crate::{Base, Change, Entry, IgnoreRules, Ignored, LeftOut, Manifest, ReadBounds, RelPath, Tree};

#[derive(Clone, Debug)]
pub struct SandboxSpec {
    pub plan: PlanId,
    pub workspace: PathBuf,
    pub base: Base,
    /// What else it takes over from the workspace.
    pub ignored: Ignored,
    /// Where it is kept. Nothing else uses the directory.
    pub directory: PathBuf,
}

#[async_trait]
pub trait Strategy: Send + Sync + std::fmt::Debug {
    fn name(&self) -> SandboxStrategy;

    /// Makes a sandbox. If this fails, nothing is left behind. *Cancel safety*: dropped halfway, it may exist in
    /// part; [`remove`](Self::remove) removes it.
    async fn create(&self, spec: &SandboxSpec) -> Result<(), SandboxError>;

    /// Opens a sandbox that this daemon or an earlier one made. *Cancel safety*: may be dropped.
    async fn open(&self, spec: &SandboxSpec) -> Result<Arc<dyn Sandbox>, SandboxError>;

    /// What the user should know about a sandbox, one sentence each: what doesn't work inside. It blocks.
    fn remarks(&self, spec: &SandboxSpec) -> Vec<String> {
        let layout = Layout::of(spec);
        std::fs::read_to_string(layout.no_git()).into_iter().collect()
    }

    /// Removes a sandbox, complete or not, and returns how many bytes that freed. It is not an error if it
    /// doesn't exist.
    /// *Cancel safety*: dropped halfway, it may still exist in part.
    async fn remove(&self, spec: &SandboxSpec) -> Result<u64, SandboxError>;
}

pub trait Sandbox: Send + Sync + std::fmt::Debug {
    /// Its files, as its actor sees them.
    fn tree(&self) -> &Tree;

    fn entrance(&self) -> Entrance;

    /// What differs from what is known. It blocks. Writes in the meantime may or may not be included, but each file is
    /// reported as it was at one moment.
    fn capture(&self, known: &Known, bounds: &ReadBounds) -> io::Result<Captured>;

    /// Calls a function with the ignore rules for its files, the same ones that a capture uses. It blocks.
    fn with_ignore_rules(
        &self,
        work: &mut dyn FnMut(&mut IgnoreRules<'_>) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Whether it still shows the current directories of the workspace. If not, it has to be opened again when no one
    /// uses it. It blocks.
    fn is_current(&self) -> bool {
        true
    }

    /// What the user should know about it, one sentence each: what doesn't work inside, and what is missing.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Clone, Debug)]
pub struct Entrance {
    /// The namespaces that it runs in, if it needs any.
    pub view: Option<process::View>,
    /// The root of the workspace, as the command sees it.
    pub root: PathBuf,
    pub write_below: Vec<PathBuf>,
    /// What it can see but must not access through a directory that it shares with others.
    pub kept_apart: Vec<PathBuf>,
    pub environment: BTreeMap<OsString, OsString>,
}

impl Entrance {
    /// Everything that a command with this environment may write to: its own directories, temporary files, and
    /// programs' caches and state as set in its environment. *Cancel safety*: may be dropped at any time.
    pub async fn writable(
        &self,
        environment: &BTreeMap<OsString, OsString>,
    ) -> Result<Vec<PathBuf>, SandboxError> {
        let (environment, kept_apart) = (environment.clone(), self.kept_apart.clone());
        let inner = blocking(move || Ok(shared_places(&environment, &kept_apart))).await?;
        let mut places = self.write_below.clone();
        places.extend(
            inner
                .into_iter()
                .filter(|place| !self.write_below.contains(place)),
        );
        Ok(places)
    }
}

/// The known contents of a sandbox: its base, and what was recorded since.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub base: Arc<Manifest>,
    /// What was recorded on top of it; `None` for deleted entries.
    pub since: Arc<BTreeMap<RelPath, Option<Entry>>>,
}

impl Known {
    #[must_use]
    pub fn get(&self, path: &RelPath) -> Option<&Entry> {
        match self.since.get(path) {
            Some(entry) => entry.as_ref(),
            None => self.base.get(path),
        }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Captured {
    /// The changes, in path order.
    pub changes: Vec<Change>,
    pub left_out: Vec<LeftOut>,
    /// Branches that were created or moved, which aren't carried either.
    pub branches: Vec<PlanBranch>,
}

/// A sandbox couldn't be made, opened or removed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the strategy {strategy} does not work here: {why}")]
    NotPossible { strategy: SandboxStrategy, why: String },
    #[error("{what} failed")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error("its namespaces cannot be made")]
    View(#[source] process::ViewError),
    #[error("`git {command}` failed: {said}")]
    Git { command: String, said: String },
}

impl SandboxError {
    /// An I/O error on a file of a sandbox, with what was being done.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        move |source| Self::Io { what, source }
    }
}

/// Runs blocking work. *Cancel safety*: dropped halfway, the work continues to its end, and its result is lost.
pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> Result<R, SandboxError> + Send + 'static,
) -> Result<R, SandboxError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(SandboxError::Io {
            what: "a step of the sandbox".to_owned(),
            source: io::Error::other(error),
        })
    })
}
