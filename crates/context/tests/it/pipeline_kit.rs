//! What the tests of executor and pipeline share: trees in memory, strategies that do as they are told, a clock by hand.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use context::{
    Answer, Ask, ContextError, ContextSettings, Depth, FILE_LIMIT_BYTES, FileText, Hit, Lines, NotText,
    ParallelStrategyExecutor, Pipeline, Query, Request, SearchTree, Since, Strategy, StrategyError,
    StrategyName, Tokenizer, TokenizerName, TreePath, View,
};
use kernel::{BreakerSettings, CancellationToken, CircuitBreaker, Clock, Deadline, ManualClock, Scope};
use process::Tasks;

/// A tree in memory. A file with a NUL in it is binary.
#[derive(Debug, Default)]
pub(crate) struct Tree(pub(crate) BTreeMap<TreePath, String>);

impl Tree {
    pub(crate) fn of(files: &[(&str, &str)]) -> Arc<Self> {
        let files = files.iter().map(|(at, text)| (path(at), (*text).to_owned()));
        Arc::new(Self(files.collect()))
    }
}

impl View for Tree {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        let text = self.0.get(path).ok_or(NotText::Missing)?;
        if text.len() as u64 > FILE_LIMIT_BYTES {
            Err(NotText::TooLarge)
        } else if text.contains('\0') {
            Err(NotText::Binary)
        } else {
            Ok(text.as_str().into())
        }
    }

    fn walk(&self, _scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        for path in self.0.keys() {
            if !visit(path.clone()) {
                break;
            }
        }
        Ok(())
    }

    fn since(&self) -> Since {
        Since::default()
    }
}

pub(crate) type Found = Result<Vec<Hit>, StrategyError>;
type Finding = Pin<Box<dyn Future<Output = Found> + Send>>;
type Does = dyn Fn(Arc<Ask>, Scope, Deadline) -> Finding + Send + Sync;

/// A strategy that does as it is told.
pub(crate) struct Scripted {
    name: StrategyName,
    does: Box<Does>,
}

/// A strategy of this name that does this.
pub(crate) fn scripted<F: Future<Output = Found> + Send + 'static>(
    name: &str,
    does: impl Fn(Arc<Ask>, Scope, Deadline) -> F + Send + Sync + 'static,
) -> Arc<dyn Strategy> {
    Arc::new(Scripted {
        name: StrategyName::new(name),
        does: Box::new(move |ask, scope, deadline| Box::pin(does(ask, scope, deadline))),
    })
}

/// A strategy that finds these places at once.
pub(crate) fn finds(name: &str, hits: Vec<Hit>) -> Arc<dyn Strategy> {
    scripted(name, move |_, _, _| std::future::ready(Ok(hits.clone())))
}

impl fmt::Debug for Scripted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Scripted({})", self.name)
    }
}

#[async_trait]
impl Strategy for Scripted {
    fn name(&self) -> StrategyName {
        self.name.clone()
    }

    async fn find(&self, ask: Arc<Ask>, scope: Scope, deadline: Deadline) -> Found {
        (self.does)(ask, scope, deadline).await
    }
}

pub(crate) fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

pub(crate) fn lines(first: u32, last: u32) -> Lines {
    Lines::new(first, last).unwrap()
}

/// A place in a file. Line 0 is the file as a whole.
pub(crate) fn hit(at: &str, line: u32, score: f64) -> Hit {
    Hit {
        path: path(at),
        lines: Lines::one(line),
        score,
        why: format!("line {line}"),
        depth: Depth::Body,
    }
}

/// An executor with what it works with.
pub(crate) struct Bench {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) breakers: CircuitBreaker,
    pub(crate) tasks: Tasks,
    pub(crate) executor: ParallelStrategyExecutor,
}

impl Bench {
    pub(crate) fn new(workers: usize) -> Self {
        let clock = ManualClock::new();
        let settings = BreakerSettings {
            jitter: 0.0,
            ..BreakerSettings::default()
        };
        let breakers = CircuitBreaker::new(settings, Arc::clone(&clock) as _).unwrap();
        let tasks = Tasks::default();
        let executor =
            ParallelStrategyExecutor::new(workers, breakers.clone(), tasks.clone(), Arc::clone(&clock) as _);
        Self {
            clock,
            breakers,
            tasks,
            executor,
        }
    }

    pub(crate) fn after(&self, time: Duration) -> Deadline {
        Deadline::after(&(Arc::clone(&self.clock) as Arc<dyn Clock>), time)
    }

    /// What the circuit of a strategy has counted: all failures, failures in a row, late reports, refused calls.
    pub(crate) fn counted(&self, strategy: &str) -> (u64, u32, u64, u64) {
        let circuit = self.breakers.get(&StrategyName::new(strategy).circuit());
        circuit.map_or((0, 0, 0, 0), |circuit| {
            (
                circuit.failures,
                circuit.consecutive_failures,
                circuit.late_reports,
                circuit.refused,
            )
        })
    }
}

/// A scope that nobody cancels.
pub(crate) fn free() -> Scope {
    CancellationToken::new().scope()
}

pub(crate) fn searched(tree: &Arc<Tree>) -> SearchTree {
    SearchTree {
        root: PathBuf::from("/tree"),
        view: Arc::clone(tree) as _,
        index: None,
        beside_index: Arc::from([]),
    }
}

pub(crate) fn ask(most_hits: usize) -> Arc<Ask> {
    Arc::new(Ask {
        query: Query::default(),
        focus: Vec::new(),
        searched: searched(&Arc::default()),
        most_hits,
    })
}

/// Asks a pipeline with these strategies about a tree.
pub(crate) async fn answer(
    bench: &Bench,
    strategies: &[Arc<dyn Strategy>],
    settings: ContextSettings,
    tree: &Arc<Tree>,
    change: impl FnOnce(&mut Request),
) -> Result<Answer, ContextError> {
    let pipeline = Pipeline::new(settings, strategies.to_vec(), bench.executor.clone());
    let mut request = Request {
        root: PathBuf::from("/tree"),
        view: Arc::clone(tree) as _,
        query: "anything".to_owned(),
        focus: Vec::new(),
        budget_tokens: 1000,
        patience: None,
        only: Vec::new(),
        without: Vec::new(),
        tokenizer: None,
    };
    change(&mut request);
    let tokenizer = Tokenizer::load(TokenizerName::O200k)?;
    let deadline = bench.after(Duration::from_secs(3));
    pipeline
        .answer(&request, searched(tree), tokenizer, &deadline, &free())
        .await
}

/// Waits until something is so, and fails if it never is.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    // Half a minute is far more than any of this takes on a busy machine.
    let end = std::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "never: {what}");
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
}
