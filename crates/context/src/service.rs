//! The entry point: questions about trees, with one index per tree.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kernel::{Circuit, CircuitBreaker, Clock, Deadline, Scope};
use process::Tasks;
use tokenizer::Tokenizer;

use crate::answer::Answer;
use crate::executor::ParallelStrategyExecutor;
use crate::index::{Index, IndexInfo, IndexState, Snapshot, Way};
use crate::indexes::Indexes;
use crate::pipeline::Pipeline;
use crate::ports::{ForCommands, Ports};
use crate::request::{
    BUDGET_LIMIT_TOKENS, ContextError, DEADLINE_LIMIT, FOCUS_LIMIT, QUERY_LIMIT_BYTES, Request,
};
use crate::settings::ContextSettings;
use crate::strategies;
use crate::strategy::{SearchTree, StrategyName};
use crate::view::NotText;

/// The fraction of a question's time that may be spent waiting for the index to catch up: one in this many.
const CATCH_UP_PART: u32 = 4;

#[derive(Debug)]
pub struct ContextsOptions {
    pub settings: ContextSettings,
    pub directory: PathBuf,
    pub scratch: PathBuf,
    pub breakers: CircuitBreaker,
    pub ports: Ports,
    pub commands: ForCommands,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
}

/// Answers questions about trees, and owns one index for each. Clones refer to the same service.
#[derive(Clone, Debug)]
pub struct Contexts {
    shared: Arc<ContextsShared>,
}

#[derive(Debug)]
struct ContextsShared {
    settings: ContextSettings,
    pipeline: Pipeline,
    indexes: Indexes,
    clock: Arc<dyn Clock>,
    /// The circuits of all strategies, so that they are visible before anything has failed.
    _circuits: Vec<Circuit>,
}

impl Contexts {
    /// Creates the service. Indexes are opened on demand.
    #[must_use]
    pub fn new(options: ContextsOptions) -> Self {
        let ContextsOptions {
            settings,
            directory,
            scratch,
            breakers,
            ports,
            commands,
            tasks,
            clock,
        } = options;
        let strategies = strategies::all(&settings, &ports, &commands);
        let circuits = strategies.iter();
        let circuits = circuits.map(|strategy| breakers.circuit(&strategy.name().circuit()));
        let circuits = circuits.collect();
        let executor =
            ParallelStrategyExecutor::new(settings.workers, breakers, tasks.clone(), Arc::clone(&clock));
        let indexes = Indexes {
            directory,
            scratch,
            limit_bytes: settings.index_limit_bytes,
            tasks,
            way: Way::new(&clock),
            clock: Arc::clone(&clock),
            book: Arc::default(),
        };
        Self {
            shared: Arc::new(ContextsShared {
                pipeline: Pipeline::new(settings.clone(), strategies, executor),
                settings,
                indexes,
                clock,
                _circuits: circuits,
            }),
        }
    }

    #[must_use]
    pub fn settings(&self) -> &ContextSettings {
        &self.shared.settings
    }

    #[must_use]
    pub fn strategies(&self) -> Vec<StrategyName> {
        let strategies = self.shared.pipeline.strategies().iter();
        strategies.map(|strategy| strategy.name()).collect()
    }

    /// Answers a question. The first question about a tree is answered without an index, which is started afterwards,
    /// because the two would only slow each other down. *Cancel safety*: the future may be dropped at any time;
    /// everything that runs for it is cancelled.
    ///
    /// # Errors
    /// The request is invalid, or was cancelled. A failed strategy isn't an error: it is in the answer.
    pub async fn ask(&self, request: Request, scope: &Scope) -> Result<Answer, ContextError> {
        let ContextsShared {
            settings,
            pipeline,
            indexes,
            clock,
            ..
        } = &*self.shared;
        let began = clock.now();
        check(&request)?;
        let patience = request.patience.unwrap_or(settings.patience);
        let deadline = Deadline::after(clock, patience);
        let name = request.tokenizer.unwrap_or(settings.tokenizer);
        let index = indexes.at_hand(&request.root);
        let seen = async {
            let catch_up = Deadline::after(clock, patience / CATCH_UP_PART);
            let index = index.as_ref()?;
            if is_made_from_nothing(index) {
                return None;
            }
            index.up_to_date(catch_up, scope).await
        };
        let (tokenizer, snapshot) = tokio::join!(blocking(move || Tokenizer::load(name)), seen);
        let tokenizer = tokenizer??;
        let walking = snapshot.is_none().then(|| indexes.way.walk());
        let prepared = blocking(move || searched(&request, snapshot).map(|searched| (request, searched)));
        let (request, searched) = prepared.await??;
        let answer = pipeline
            .answer(&request, searched, tokenizer, &deadline, scope)
            .await?;
        drop(walking);
        drop(indexes.open(&request.root));
        Ok(Answer {
            took: clock.now().saturating_duration_since(began),
            ..answer
        })
    }

    #[must_use]
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.shared.indexes.list()
    }

    /// The index of a tree, opened if necessary; `None` while it is being deleted.
    #[must_use]
    pub fn index(&self, root: &Path) -> Option<Arc<Index>> {
        self.shared.indexes.open(root)
    }

    /// Deletes the index of a tree. The next question builds it again. Returns whether there was one. *Cancel
    /// safety*: if the future is dropped, the index may be closed but still exist.
    ///
    /// # Errors
    /// It doesn't end, or can't be deleted.
    pub async fn forget(&self, root: &Path, scope: &Scope) -> io::Result<bool> {
        self.shared.indexes.forget(root, scope).await
    }

    /// Deletes closed indexes, least recently used first, until all of them fit. Returns how many. *Cancel
    /// safety*: the future may be dropped; deletions so far stay.
    ///
    /// # Errors
    /// The directory of indexes can't be read, or something in it can't be deleted.
    pub async fn collect(&self) -> io::Result<usize> {
        self.shared.indexes.collect().await
    }

    pub fn close(&self) {
        self.shared.indexes.close();
    }
}

fn check(request: &Request) -> Result<(), ContextError> {
    let too_large = |what, found: String, most: String| Err(ContextError::TooLarge { what, found, most });
    if request.query.trim().is_empty() && request.focus.is_empty() {
        return Err(ContextError::Empty);
    }
    if request.query.len() > QUERY_LIMIT_BYTES {
        let found = format!("{} bytes long", request.query.len());
        return too_large("the query", found, format!("{QUERY_LIMIT_BYTES} bytes"));
    }
    if request.focus.len() > FOCUS_LIMIT {
        let found = format!("{} files", request.focus.len());
        return too_large("the focus", found, format!("{FOCUS_LIMIT} files"));
    }
    if request.budget_tokens > BUDGET_LIMIT_TOKENS {
        let found = format!("{} tokens", request.budget_tokens);
        return too_large("the budget", found, format!("{BUDGET_LIMIT_TOKENS} tokens"));
    }
    if request.patience.is_some_and(|patience| patience > DEADLINE_LIMIT) {
        let found = format!("{:?}", request.patience.unwrap_or_default());
        return too_large("the deadline", found, format!("{DEADLINE_LIMIT:?}"));
    }
    Ok(())
}

/// Whether an index is being built for the first time and has made some progress: that takes longer than any
/// question waits.
fn is_made_from_nothing(index: &Index) -> bool {
    let is_on_its_way = matches!(*index.state().read().state, IndexState::Building { files } if files > 0);
    is_on_its_way && index.snapshot().is_none()
}

/// The tree that a question searches. It blocks.
fn searched(request: &Request, index: Option<Arc<Snapshot>>) -> Result<SearchTree, ContextError> {
    if let Err(source) = std::fs::read_dir(&request.root) {
        let root = request.root.clone();
        return Err(ContextError::Unreadable { root, source });
    }
    for path in &request.focus {
        if matches!(request.view.read(path), Err(NotText::Missing)) {
            return Err(ContextError::NoSuchFile(path.clone()));
        }
    }
    let since = request.view.since();
    let mut beside = since.changed;
    if let Some(index) = &index {
        beside.extend(index.changed_since(since.taken));
    }
    beside.sort_unstable();
    beside.dedup();
    Ok(SearchTree {
        root: request.root.clone(),
        view: Arc::clone(&request.view),
        index,
        beside_index: beside.into(),
    })
}

/// Runs something that blocks briefly.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, ContextError> {
    let done = tokio::task::spawn_blocking(work).await;
    // It only fails when the runtime shuts down.
    done.map_err(|_| ContextError::Cancelled)
}
