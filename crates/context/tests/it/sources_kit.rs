//! A tree on disk, and the strategies that ask others about it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use context::{
    Ask, CommandSettings, ContextSettings, DiskView, FileText, ForCommands, Hit, NoLanguageServers, NotText,
    OpenPlan, OpenPlans, PortError, Ports, Query, SearchTree, Since, Strategy, StrategyError, TreePath, View,
    all_strategies,
};
use eventlog::{Log, SqliteOptions};
use kernel::{CancellationToken, Deadline, Scope, SystemClock};
use process::{KeeperProgram, Processes, ProcessesOptions, Tasks};
use protocol::{BootId, HomeId};

/// Nothing in these tests takes as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A tree, and who is asked about it.
pub(crate) struct Kit {
    pub(crate) root: PathBuf,
    pub(crate) processes: Processes,
    pub(crate) token: CancellationToken,
    plans: Arc<Plans>,
    strategies: Vec<Arc<dyn Strategy>>,
    _directory: tempfile::TempDir,
}

/// The plans that a test says are open.
#[derive(Debug, Default)]
struct Plans(Mutex<Vec<OpenPlan>>);

#[async_trait]
impl OpenPlans for Plans {
    async fn open(&self, _: &std::path::Path) -> Result<Vec<OpenPlan>, PortError> {
        Ok(self.0.lock().unwrap().clone())
    }
}

/// The disk, as a plan sees it that has changed some files.
#[derive(Debug)]
struct InPlan(DiskView, Vec<TreePath>);

impl View for InPlan {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        self.0.read(path)
    }

    fn walk(&self, scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> std::io::Result<()> {
        self.0.walk(scope, visit)
    }

    fn since(&self) -> Since {
        Since {
            taken: None,
            changed: self.1.clone(),
        }
    }
}

impl Kit {
    /// A tree that a script makes, and these commands as strategies, each a line for a shell.
    pub(crate) async fn new(script: &str, commands: &[(&str, &str)]) -> Self {
        let commands = commands
            .iter()
            .map(|(name, line)| (*name, vec!["sh", "-c", *line]));
        Self::with(script, commands.collect()).await
    }

    /// The same, with one command that is no line for a shell.
    pub(crate) async fn with_command(script: &str, name: &str, command: &[&str]) -> Self {
        Self::with(script, vec![(name, command.to_vec())]).await
    }

    async fn with(script: &str, commands: Vec<(&str, Vec<&str>)>) -> Self {
        // Not below the target directory: that lies in a repository, whose history would be found.
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().canonicalize().unwrap();
        let root = outside.join("tree");
        fs::create_dir(&root).unwrap();
        let options = SqliteOptions {
            path: outside.join("processes.sqlite"),
        };
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&options, SystemClock::shared()).unwrap(),
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_context-test-keeper").into()),
            tasks: Tasks::default(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let environment = ["PATH", "HOME"].into_iter();
        let environment = environment.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let settings = ContextSettings {
            commands: commands
                .iter()
                .map(|(name, command)| CommandSettings {
                    name: (*name).to_owned(),
                    command: command.iter().map(|word| (*word).to_owned()).collect(),
                    timeout: PATIENCE,
                    weight_percent: 100,
                })
                .collect(),
            ..ContextSettings::default()
        };
        let plans = Arc::new(Plans::default());
        let ports = Ports {
            languages: Arc::new(NoLanguageServers),
            plans: Arc::clone(&plans) as Arc<dyn OpenPlans>,
        };
        let for_commands = ForCommands {
            processes: processes.clone(),
            environment: environment.collect::<BTreeMap<_, _>>(),
        };
        let kit = Self {
            strategies: all_strategies(&settings, &ports, &for_commands),
            root,
            processes,
            token: CancellationToken::new(),
            plans,
            _directory: directory,
        };
        kit.sh(script);
        kit
    }

    /// Runs a script in the tree. `commit SUBJECT` commits everything.
    pub(crate) fn sh(&self, script: &str) {
        let commit =
            "commit() { git add -A && git -c user.name=a -c user.email=a@b commit -qm \"$1\"; }; set -e;";
        let done = Command::new("sh")
            .arg("-c")
            .arg(format!("{commit} {script}"))
            .current_dir(&self.root)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{script}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// Says which plans are open: a title, and what is changed.
    pub(crate) fn open(&self, plans: &[(&str, &[&str])]) {
        *self.plans.0.lock().unwrap() = plans
            .iter()
            .map(|(title, changed)| OpenPlan {
                plan: "p1".to_owned(),
                title: (*title).to_owned(),
                changed: paths(changed),
            })
            .collect();
    }

    /// Asks a strategy.
    pub(crate) async fn ask(
        &self,
        strategy: &str,
        query: &str,
        focus: &[&str],
    ) -> Result<Vec<Hit>, StrategyError> {
        self.ask_in(strategy, query, focus, &[], PATIENCE).await
    }

    /// Asks a strategy about a plan that has changed these files, with so much time.
    pub(crate) async fn ask_in(
        &self,
        strategy: &str,
        query: &str,
        focus: &[&str],
        changed: &[&str],
        time: Duration,
    ) -> Result<Vec<Hit>, StrategyError> {
        let strategy = self
            .strategies
            .iter()
            .find(|known| known.name().as_str() == strategy);
        let ask = Ask {
            query: Query::parse(query),
            focus: paths(focus),
            searched: SearchTree {
                root: self.root.clone(),
                view: Arc::new(InPlan(DiskView::new(self.root.clone()), paths(changed))),
                index: None,
                beside_index: paths(changed).into(),
            },
            most_hits: 20,
        };
        let deadline = Deadline::after(&SystemClock::shared(), time);
        strategy
            .unwrap()
            .find(Arc::new(ask), self.token.scope(), deadline)
            .await
    }

    /// The same, as `path: why`.
    pub(crate) async fn found(&self, strategy: &str, query: &str, focus: &[&str]) -> Vec<String> {
        let hits = self.ask(strategy, query, focus).await.unwrap();
        hits.iter()
            .map(|hit| format!("{}: {}", hit.path, hit.why))
            .collect()
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn paths(texts: &[&str]) -> Vec<TreePath> {
    texts.iter().map(|text| TreePath::new(text).unwrap()).collect()
}
