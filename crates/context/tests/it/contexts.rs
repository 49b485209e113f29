//! The whole service on real directories: first without an index, then with one.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use context::{
    Answer, BUILT_IN_STRATEGIES, ContextError, ContextSettings, Contexts, ContextsOptions, DiskView,
    ForCommands, IndexState, NoChanges, NoLanguageServers, Ports, Request, StrategyName, StrategyOutcome,
    TreePath,
};
use eventlog::{Log, SqliteOptions};
use kernel::{
    BreakerSettings, CancellationToken, CircuitBreaker, Clock, Deadline, ManualClock, Scope, SystemClock,
};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{BootId, HomeId};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// When an index that nobody asks for is closed.
const IDLE: Duration = Duration::from_secs(600);

struct Kit {
    contexts: Contexts,
    root: PathBuf,
    tasks: Tasks,
    token: CancellationToken,
    directory: TempDir,
}

impl Kit {
    async fn new() -> Self {
        Self::with(SystemClock::shared()).await
    }

    async fn with(clock: Arc<dyn Clock>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let root = top.join("tree");
        for name in ["tree/src", "scratch"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        let tasks = Tasks::default();
        let path = top.join("log.sqlite3");
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&SqliteOptions { path }, Arc::clone(&clock)).unwrap(),
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_context-test-keeper").into()),
            tasks: Tasks::default(),
            clock: Arc::clone(&clock),
        })
        .await
        .unwrap();
        let contexts = Contexts::new(ContextsOptions {
            settings: ContextSettings {
                patience: PATIENCE,
                ..ContextSettings::default()
            },
            directory: top.join("indexes"),
            scratch: top.join("scratch"),
            breakers: CircuitBreaker::new(BreakerSettings::default(), Arc::clone(&clock)).unwrap(),
            ports: Ports {
                languages: Arc::new(NoLanguageServers),
                plans: Arc::new(NoChanges),
            },
            commands: ForCommands {
                processes,
                environment: BTreeMap::new(),
            },
            tasks: tasks.clone(),
            clock,
        });
        let kit = Self {
            contexts,
            root,
            tasks,
            token: CancellationToken::new(),
            directory,
        };
        kit.write(
            "src/lighthouse.rs",
            "/// Turns the lamp.\npub fn turn_the_lamp() {}\n",
        );
        kit.write("src/harbour.rs", "pub fn dock() { turn_the_lamp(); }\n");
        kit.write("README.md", "# A coast\n\nThere is a lamp.\n");
        kit
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).unwrap();
    }

    fn scope(&self) -> Scope {
        self.token.scope()
    }

    fn request(&self, query: &str) -> Request {
        Request {
            root: self.root.clone(),
            view: Arc::new(DiskView::new(self.root.clone())),
            query: query.to_owned(),
            focus: Vec::new(),
            budget_tokens: 2000,
            patience: None,
            only: Vec::new(),
            without: Vec::new(),
            tokenizer: None,
        }
    }

    async fn ask(&self, query: &str) -> Answer {
        self.contexts
            .ask(self.request(query), &self.scope())
            .await
            .unwrap()
    }

    async fn indexed(&self) {
        let index = self.contexts.index(&self.root).unwrap();
        let patience = Deadline::after(&SystemClock::shared(), PATIENCE);
        let ready = |state: &IndexState| *state == IndexState::Ready;
        let waited = index.state().wait_until(ready, patience, &self.scope()).await;
        waited.unwrap();
    }

    fn indexes_on_disk(&self) -> usize {
        let listed = fs::read_dir(self.directory.path().join("indexes"));
        listed.map_or(0, Iterator::count)
    }

    /// Ends everything, and sees that nothing goes on.
    async fn end(self) {
        self.contexts.close();
        self.tasks.finished().await;
        assert_eq!(self.tasks.running(), 0);
    }
}

fn paths(answer: &Answer) -> Vec<&str> {
    answer
        .fragments
        .iter()
        .map(|fragment| fragment.path.as_str())
        .collect()
}

fn outcome<'a>(answer: &'a Answer, strategy: &str) -> &'a StrategyOutcome {
    let report = answer
        .strategies
        .iter()
        .find(|report| report.strategy.as_str() == strategy);
    &report.unwrap().outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn the_definition_is_found_first_with_and_without_an_index_and_changes_are_seen() {
    let kit = Kit::new().await;
    assert!(kit.contexts.indexes().is_empty());
    let names = kit.contexts.strategies();
    let names: Vec<&str> = names.iter().map(StrategyName::as_str).collect();
    assert_eq!(names, BUILT_IN_STRATEGIES);
    let without = kit.ask("turn_the_lamp").await;
    assert_eq!(paths(&without)[0], "src/lighthouse.rs", "{without:#?}");
    assert!(paths(&without).contains(&"src/harbour.rs"));
    assert!(matches!(
        outcome(&without, "repo-map"),
        StrategyOutcome::NotApplicable { .. }
    ));

    kit.indexed().await;
    let with = kit.ask("turn_the_lamp").await;
    assert_eq!(paths(&with)[0], "src/lighthouse.rs", "{with:#?}");
    assert!(paths(&with).contains(&"src/harbour.rs"));
    assert!(
        matches!(outcome(&with, "repo-map"), StrategyOutcome::Ran { .. }),
        "{with:#?}"
    );
    assert_eq!(kit.contexts.indexes()[0].files, 3);

    for round in 0..20 {
        let name = format!("ring_the_bell_{round}");
        kit.write("src/bell.rs", &format!("pub fn {name}() {{}}\n"));
        assert_eq!(paths(&kit.ask(&name).await), ["src/bell.rs"], "round {round}");
    }
    fs::remove_file(kit.root.join("src/bell.rs")).unwrap();
    assert_eq!(paths(&kit.ask("ring_the_bell_19").await), Vec::<&str>::new());
    kit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_forgotten_while_others_ask_costs_nobody_an_answer() {
    let kit = Kit::new().await;
    kit.ask("lamp").await;
    let (forgetting, asking) = (kit.contexts.clone(), kit.contexts.clone());
    let (root, scope, request) = (kit.root.clone(), kit.scope(), kit.request("turn_the_lamp"));
    let ask = async {
        for _ in 0..60 {
            let answer = asking.ask(request.clone(), &scope).await.unwrap();
            assert_eq!(paths(&answer)[0], "src/lighthouse.rs");
        }
    };
    let forget = async {
        let mut forgotten = 0;
        for _ in 0..20 {
            forgotten += usize::from(forgetting.forget(&root, &scope).await.unwrap());
            tokio::task::yield_now().await;
        }
        forgotten
    };
    let ((), forgotten) = tokio::join!(ask, forget);
    assert!(forgotten > 0);
    kit.indexed().await;
    assert_eq!(kit.indexes_on_disk(), 1);
    assert!(kit.contexts.forget(&kit.root, &kit.scope()).await.unwrap());
    assert!(!kit.contexts.forget(&kit.root, &kit.scope()).await.unwrap());
    assert_eq!(kit.indexes_on_disk(), 0);
    kit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_nobody_asks_for_is_closed_and_read_again() {
    let clock = ManualClock::new();
    let kit = Kit::with(clock.clone()).await;
    kit.ask("lamp").await;
    kit.indexed().await;
    // Whoever asks in between keeps it.
    clock.advance(IDLE / 2);
    kit.ask("lamp").await;
    clock.advance(IDLE * 3 / 4);
    for _ in 0..100 {
        tokio::task::yield_now().await;
        assert_eq!(kit.contexts.indexes().len(), 1);
    }
    clock.advance(IDLE / 2);
    let began = Instant::now();
    while !kit.contexts.indexes().is_empty() {
        assert!(began.elapsed() < PATIENCE, "it is not closed");
        tokio::task::yield_now().await;
    }
    assert_eq!(kit.indexes_on_disk(), 1);
    assert_eq!(kit.contexts.collect().await.unwrap(), 0);
    // What changed meanwhile is seen when it is read again.
    kit.write("src/buoy.rs", "pub fn float_away() {}\n");
    assert_eq!(paths(&kit.ask("float_away").await), ["src/buoy.rs"]);
    kit.end().await;
}

/// The real index and the real files: whatever the strategy finds without an index, it finds with one, in the same order.
#[tokio::test(flavor = "multi_thread")]
async fn keyword_finds_the_same_with_the_real_index() {
    let kit = Kit::new().await;
    for number in 0..80 {
        let text = format!(
            "/// Lights lamp number {number}.\npub fn light_lamp_{number:02}(Harbour: u8) {{ beacon_{}(); }}\n",
            number % 7
        );
        kit.write(&format!("src/lamp_{number:02}.rs"), &text);
    }
    kit.write("src/größe.txt", "Die Größe der Lampe\nio\n");
    let ask = async |query: &str| {
        let only = vec![StrategyName::new("keyword")];
        let request = Request {
            only,
            ..kit.request(query)
        };
        let answer = kit.contexts.ask(request, &kit.scope()).await.unwrap();
        let shown = answer.fragments.iter();
        let shown = shown.map(|found| format!("{}:{:?} {:.6}", found.path, found.lines, found.score));
        shown.collect::<Vec<_>>()
    };
    let queries = [
        "light_lamp_42",
        "LightLamp07",
        "beacon_3",
        "turn the lamp",
        "größe",
        "io",
        "harbour",
        "src/lamp_11.rs:2",
        "\"number 5.\"",
        "nothing_like_this",
    ];
    let mut without = Vec::new();
    for query in queries {
        kit.contexts.forget(&kit.root, &kit.scope()).await.unwrap();
        without.push(ask(query).await);
    }
    kit.indexed().await;
    for (query, without) in queries.into_iter().zip(without) {
        assert_eq!(ask(query).await, without, "{query}");
        assert_eq!(without.is_empty(), query == "nothing_like_this", "{query}");
    }
    kit.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_refused_in_words() {
    let kit = Kit::new().await;
    let focus = |path: &str| vec![TreePath::new(path).unwrap()];
    let long = "x".repeat(20_000);
    let cases: Vec<(Request, &str)> = vec![
        (kit.request("  "), "there is nothing to look for"),
        (
            kit.request(&long),
            "the query is 20000 bytes long; the limit is 16384 bytes",
        ),
        (
            Request {
                focus: focus("src/none.rs"),
                ..kit.request("lamp")
            },
            "there is no file `src/none.rs` to focus on",
        ),
        (
            Request {
                budget_tokens: 2_000_000,
                ..kit.request("lamp")
            },
            "the budget is 2000000 tokens; the limit is 1000000 tokens",
        ),
        (
            Request {
                patience: Some(Duration::from_secs(3600)),
                ..kit.request("lamp")
            },
            "the deadline is 3600s; the limit is 120s",
        ),
        (
            Request {
                only: vec![StrategyName::new("magic")],
                ..kit.request("lamp")
            },
            "there is no strategy `magic`; there are: keyword",
        ),
    ];
    for (request, expected) in cases {
        let refused = kit.contexts.ask(request, &kit.scope()).await.unwrap_err();
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }
    let nothing = Request {
        budget_tokens: 0,
        ..kit.request("lamp")
    };
    let answer = kit.contexts.ask(nothing, &kit.scope()).await.unwrap();
    assert_eq!((answer.fragments.len(), answer.tokens), (0, 0));
    let gone = kit.root.join("gone");
    let request = Request {
        view: Arc::new(DiskView::new(gone.clone())),
        root: gone,
        ..kit.request("lamp")
    };
    match kit.contexts.ask(request, &kit.scope()).await {
        Err(ContextError::Unreadable { .. }) => {}
        other => panic!("{other:?}"),
    }
    kit.end().await;
}
