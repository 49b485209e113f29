//! The strategies of the scenarios, which do what the question tells them, and the tree that they look at.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use context::{
    Answer, Ask, ContextSettings, Depth, Execute, FileText, Hit, Lines, NotText, Pipeline, Request,
    SearchTree, Since, Strategy, StrategyError, StrategyName, StrategySettings, Tokenizer, TokenizerName,
    TreePath, View, on_thread,
};
use kernel::{CancellationToken, Deadline, Scope, SystemClock};
use tokio::{runtime::Runtime, sync::Semaphore};

/// The strategy that does what the question tells it.
pub(crate) const MOODY: &str = "moody";
/// The strategy that always finds something.
pub(crate) const STEADY: &str = "steady";
/// How long `moody` may look. It is as long as a scenario with something that hangs takes, and nothing else waits for it.
const MOODY_TIME: Duration = Duration::from_millis(100);
/// How long everything else may take: far more than it does.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A runtime for all scenarios. A scenario runs in a runtime of its own and must not wait in it, so questions are asked on
/// threads.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap()
});

/// What is known of `moody`, and where it is held.
#[derive(Debug)]
pub(crate) struct Gate {
    /// One permit for each time that it was asked and not taken note of yet.
    pub(crate) asked: Semaphore,
    /// One permit for each time that it is let go.
    pub(crate) go: Semaphore,
    /// How often it hangs now, and the most at once.
    hangs: AtomicUsize,
    pub(crate) most_hangs: AtomicUsize,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            asked: Semaphore::new(0),
            go: Semaphore::new(0),
            hangs: AtomicUsize::new(0),
            most_hangs: AtomicUsize::new(0),
        })
    }
}

/// Does what the question tells it.
#[derive(Debug)]
struct Moody(Arc<Gate>);

#[async_trait]
impl Strategy for Moody {
    fn name(&self) -> StrategyName {
        StrategyName::new(MOODY)
    }

    async fn find(&self, ask: Arc<Ask>, scope: Scope, _: Deadline) -> Result<Vec<Hit>, StrategyError> {
        let gate = Arc::clone(&self.0);
        gate.asked.add_permits(1);
        match ask.query.text.as_str() {
            "fails" => Err(StrategyError::Failed("it is in a bad mood".to_owned())),
            "hangs" => std::future::pending().await,
            "hangs on a thread" => {
                on_thread(scope, move |scope| {
                    let now = gate.hangs.fetch_add(1, Ordering::SeqCst) + 1;
                    gate.most_hangs.fetch_max(now, Ordering::SeqCst);
                    drop(scope.wait_blocking(Deadline::never()));
                    gate.hangs.fetch_sub(1, Ordering::SeqCst);
                    Err(StrategyError::Cancelled)
                })
                .await
            }
            "panics" => panic!("it is in a very bad mood"),
            "finds rubbish" => Ok(vec![Hit {
                score: f64::NAN,
                ..hit(MOODY, 1)
            }]),
            "finds too much" => Ok((1..100_000).map(|line| hit(MOODY, line)).collect()),
            "has nothing to say" => Err(StrategyError::NotApplicable("not here".to_owned())),
            "is held" => {
                gate.go.acquire().await.unwrap().forget();
                Ok(vec![hit(MOODY, 1)])
            }
            _ => Ok(vec![hit(MOODY, 1)]),
        }
    }
}

/// Always finds something.
#[derive(Debug)]
struct Steady;

#[async_trait]
impl Strategy for Steady {
    fn name(&self) -> StrategyName {
        StrategyName::new(STEADY)
    }

    async fn find(&self, _: Arc<Ask>, _: Scope, _: Deadline) -> Result<Vec<Hit>, StrategyError> {
        Ok((1..=20).map(|place| hit(STEADY, place * 100)).collect())
    }
}

/// Finds something once all of its kind look.
#[derive(Debug)]
struct Meets(String, Arc<tokio::sync::Barrier>);

#[async_trait]
impl Strategy for Meets {
    fn name(&self) -> StrategyName {
        StrategyName::new(&self.0)
    }

    async fn find(&self, _: Arc<Ask>, _: Scope, _: Deadline) -> Result<Vec<Hit>, StrategyError> {
        self.1.wait().await;
        Ok(vec![hit(STEADY, 1)])
    }
}

fn hit(file: &str, line: u32) -> Hit {
    Hit {
        path: TreePath::new(&format!("{file}.txt")).unwrap(),
        lines: Lines::one(line),
        score: 1.0,
        why: "it is there".to_owned(),
        depth: Depth::Body,
    }
}

/// A tree with a long file for each strategy.
#[derive(Debug)]
struct Tree;

impl View for Tree {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        let line = |line: u32| format!("line {line} of {path}\n");
        Ok((1..=2100).map(line).collect::<String>().into())
    }

    fn walk(&self, _: &Scope, _: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        Ok(())
    }

    fn since(&self) -> Since {
        Since::default()
    }
}

fn settings(moody_time: Duration) -> ContextSettings {
    let timed = |timeout| StrategySettings {
        timeout,
        ..StrategySettings::default()
    };
    let mut settings = ContextSettings::default();
    settings.strategies.insert(MOODY.to_owned(), timed(moody_time));
    settings.strategies.insert(STEADY.to_owned(), timed(LONG));
    for place in 0..4 {
        settings.strategies.insert(format!("meets-{place}"), timed(LONG));
    }
    settings
}

/// A pipeline with `moody` and `steady`.
pub(crate) fn pipeline(executor: impl Execute + 'static, gate: &Arc<Gate>, hangs: bool) -> Arc<Pipeline> {
    let strategies: Vec<Arc<dyn Strategy>> = vec![Arc::new(Moody(Arc::clone(gate))), Arc::new(Steady)];
    // Only where something hangs may its time be short: elsewhere a busy machine could make it too short.
    let moody_time = if hangs { MOODY_TIME } else { LONG };
    Arc::new(Pipeline::new(settings(moody_time), strategies, executor))
}

/// A pipeline with four strategies that wait for each other.
pub(crate) fn pipeline_that_meets(executor: impl Execute + 'static) -> Arc<Pipeline> {
    let here = Arc::new(tokio::sync::Barrier::new(4));
    let strategies = (0..4)
        .map(|place| Arc::new(Meets(format!("meets-{place}"), Arc::clone(&here))) as Arc<dyn Strategy>)
        .collect();
    Arc::new(Pipeline::new(settings(LONG), strategies, executor))
}

/// Asks a question, on this thread. It tells `moody` what to do.
pub(crate) fn ask(pipeline: &Pipeline, query: &str, budget_tokens: usize) -> Answer {
    let root = PathBuf::from("/tree");
    let request = Request {
        root: root.clone(),
        view: Arc::new(Tree),
        query: query.to_owned(),
        focus: Vec::new(),
        budget_tokens,
        patience: None,
        only: Vec::new(),
        without: Vec::new(),
        tokenizer: None,
    };
    let tree = SearchTree {
        root,
        view: Arc::new(Tree),
        index: None,
        beside_index: Arc::from([]),
    };
    let tokenizer = Tokenizer::load(TokenizerName::O200k).unwrap();
    let deadline = Deadline::after(&SystemClock::shared(), 10 * LONG);
    let scope = CancellationToken::new().scope();
    RUNTIME
        .block_on(pipeline.answer(&request, tree, tokenizer, &deadline, &scope))
        .unwrap()
}
