//! What a strategy and a sandbox must do.

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
    /// What it takes over from the workspace beside that.
    pub ignored: Ignored,
    /// Where it is kept. Nobody else uses the directory.
    pub directory: PathBuf,
}

#[async_trait]
pub trait Strategy: Send + Sync + std::fmt::Debug {
    fn name(&self) -> SandboxStrategy;

    /// Makes one. When this fails, nothing is left of it. *Cancel safety*: dropped halfway, it may be there in part;
    /// [`remove`](Self::remove) takes it away.
    async fn create(&self, spec: &SandboxSpec) -> Result<(), SandboxError>;

    /// Opens one that was made, by this daemon or an earlier one. *Cancel safety*: may be dropped.
    async fn open(&self, spec: &SandboxSpec) -> Result<Arc<dyn Sandbox>, SandboxError>;

    /// What its user should know of one that was made, one sentence each: what does not work inside. It blocks.
    fn remarks(&self, spec: &SandboxSpec) -> Vec<String> {
        let layout = Layout::of(spec);
        std::fs::read_to_string(layout.no_git()).into_iter().collect()
    }

    /// Takes one away, whole or in part, and says how many bytes that freed. One that is not there is no error.
    /// *Cancel safety*: dropped halfway, it may be there in part.
    async fn remove(&self, spec: &SandboxSpec) -> Result<u64, SandboxError>;
}

pub trait Sandbox: Send + Sync + std::fmt::Debug {
    /// Its files, as its actor sees them.
    fn tree(&self) -> &Tree;

    fn entrance(&self) -> Entrance;

    /// What is different from what is known. It blocks. What is written meanwhile may or may not be in it, but what is
    /// said of a file is true of one moment.
    fn capture(&self, known: &Known, bounds: &ReadBounds) -> io::Result<Captured>;

    /// Does something with the rules that say what of its files is ignored, the same that a capture goes by. It blocks.
    fn with_ignore_rules(
        &self,
        work: &mut dyn FnMut(&mut IgnoreRules<'_>) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Whether what it shows of the workspace's own directories is what is there now. If it is not, it is to be opened again
    /// when nobody is in it. It blocks.
    fn is_current(&self) -> bool {
        true
    }

    /// What its user should know about it, one sentence each: what does not work inside, and what is not there.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Clone, Debug)]
pub struct Entrance {
    /// The namespaces that it runs in, if it needs some.
    pub view: Option<process::View>,
    /// The root of the workspace, as the command sees it.
    pub root: PathBuf,
    pub write_below: Vec<PathBuf>,
    /// What it sees and must not reach by way of a place that is shared with others.
    pub kept_apart: Vec<PathBuf>,
    pub environment: BTreeMap<OsString, OsString>,
}

impl Entrance {
    /// Everywhere that a command with this environment may write: what is its own, temporary files, and the caches and
    /// the state of programs as they are in its environment. *Cancel safety*: may be dropped at any time.
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

/// What a sandbox is known to hold: its base, and what was recorded since.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub base: Arc<Manifest>,
    /// What was recorded on top of it; `None` for what is gone.
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
    /// What changed, in the order of paths.
    pub changes: Vec<Change>,
    pub left_out: Vec<LeftOut>,
    /// Branches that were made or moved, which are not carried either.
    pub branches: Vec<PlanBranch>,
}

/// A sandbox could not be made, opened or taken away.
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
    /// Says what was being done, with the path, when a file of a sandbox failed.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        move |source| Self::Io { what, source }
    }
}

/// Does something that blocks. *Cancel safety*: dropped halfway, it goes on to its end, and nobody hears of it.
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
