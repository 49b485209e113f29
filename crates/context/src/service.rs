//! The way in: questions about trees, and one index for each tree.

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
use crate::strategy::{Ground, StrategyName};
use crate::view::NotText;

/// How much of the time of a question may go into waiting until the index has seen the last changes, in parts of it.
const CATCH_UP_PART: u32 = 4;

/// What the service is made with.
#[derive(Debug)]
pub struct ContextsOptions {
    /// What can be set.
    pub settings: ContextSettings,
    /// Where indexes are kept.
    pub directory: PathBuf,
    /// Where the marks of watches go.
    pub scratch: PathBuf,
    /// The breaker that the whole daemon shares.
    pub breakers: CircuitBreaker,
    /// What others know.
    pub ports: Ports,
    /// How commands are run.
    pub commands: ForCommands,
    /// What goes on in the background.
    pub tasks: Tasks,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// Answers questions about trees, and owns one index for each of them. Clones are the same service.
#[derive(Clone, Debug)]
pub struct Contexts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: ContextSettings,
    pipeline: Pipeline,
    indexes: Indexes,
    clock: Arc<dyn Clock>,
    /// The circuits of all strategies, so that they can be seen before anything has failed.
    _circuits: Vec<Circuit>,
}

impl Contexts {
    /// The service. Indexes are opened when somebody asks about their tree.
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
            shared: Arc::new(Shared {
                pipeline: Pipeline::new(settings.clone(), strategies, executor),
                settings,
                indexes,
                clock,
                _circuits: circuits,
            }),
        }
    }

    /// What is set.
    #[must_use]
    pub fn settings(&self) -> &ContextSettings {
        &self.shared.settings
    }

    /// The strategies that there are, in order.
    #[must_use]
    pub fn strategies(&self) -> Vec<StrategyName> {
        let strategies = self.shared.pipeline.strategies().iter();
        strategies.map(|strategy| strategy.name()).collect()
    }

    /// Answers a question. The first one about a tree is answered without an index, which is begun afterwards: both would only
    /// hold each other up. *Cancel safety*: may be dropped at any time; what runs for it is cancelled.
    ///
    /// # Errors
    /// The request cannot be understood, or was cancelled. That a strategy failed is no error: it is in the answer.
    pub async fn ask(&self, request: Request, scope: &Scope) -> Result<Answer, ContextError> {
        let Shared {
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
        let prepared = blocking(move || ground(&request, snapshot).map(|ground| (request, ground)));
        let (request, ground) = prepared.await??;
        let answer = pipeline
            .answer(&request, ground, tokenizer, &deadline, scope)
            .await?;
        drop(walking);
        drop(indexes.open(&request.root));
        Ok(Answer {
            took: clock.now().saturating_duration_since(began),
            ..answer
        })
    }

    /// The indexes that are open, in the order of their roots.
    #[must_use]
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.shared.indexes.list()
    }

    /// The index of a tree, opened if it is not; nothing while it is being removed.
    #[must_use]
    pub fn index(&self, root: &Path) -> Option<Arc<Index>> {
        self.shared.indexes.open(root)
    }

    /// Throws the index of a tree away. The next question makes it anew. Whether there was one. *Cancel safety*: dropped
    /// half-way, the index may be closed and still be there.
    ///
    /// # Errors
    /// It does not end, or cannot be removed.
    pub async fn forget(&self, root: &Path, scope: &Scope) -> io::Result<bool> {
        self.shared.indexes.forget(root, scope).await
    }

    /// Throws away closed indexes, those that were not used longest, until all of them fit. How many. *Cancel safety*: may be
    /// dropped; what is done is done.
    ///
    /// # Errors
    /// The directory of indexes cannot be read, or something in it cannot be removed.
    pub async fn collect(&self) -> io::Result<usize> {
        self.shared.indexes.collect().await
    }

    /// Ends what goes on in the background.
    pub fn close(&self) {
        self.shared.indexes.close();
    }
}

/// Whether a request is within all limits.
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

/// Whether an index is made for the first time, and has come some way: that takes longer than any question waits.
fn is_made_from_nothing(index: &Index) -> bool {
    let is_on_its_way = matches!(*index.state().read().state, IndexState::Building { files } if files > 0);
    is_on_its_way && index.snapshot().is_none()
}

/// Where a question looks. It blocks.
fn ground(request: &Request, index: Option<Arc<Snapshot>>) -> Result<Ground, ContextError> {
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
    Ok(Ground {
        root: request.root.clone(),
        view: Arc::clone(&request.view),
        index,
        beside_index: beside.into(),
    })
}

/// Does something that blocks, for a moment.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, ContextError> {
    let done = tokio::task::spawn_blocking(work).await;
    // It ends early only when the runtime does.
    done.map_err(|_| ContextError::Cancelled)
}
