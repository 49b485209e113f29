//! The owned processes of one daemon.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eventlog::Log;
use kernel::{Clock, Scope};
use protocol::{BootId, HomeId};
use tokio::sync::oneshot;

use crate::child::Child;
use crate::entry::{Entry, Facts};
use crate::error::{OpenProcessesError, SpawnError};
use crate::identity::machine_boot_id;
use crate::info::{self, Belongs, ProcessInfo, Why};
use crate::ledger::{Ledger, OpenError};
use crate::proc_table::{self, Table};
use crate::reclaim::{Reclaimed, reclaim};
use crate::spec::{KeeperProgram, Spec, StopPlan};
use crate::supervise::supervise;
use crate::tasks::Tasks;
use crate::view::{self, View, ViewError, ViewSpec};

/// How many children there may be at once. Each has five descriptors in the daemon and at least two processes;
/// more than this is a bug of whoever starts them. Further ones are refused.
const MAX_CHILDREN: usize = 512;
/// For how many pairs of owner and program starts are counted. When there are more, those that aren't running are
/// dropped, and count from zero again.
const MAX_COUNTED: usize = 4096;

type Answered = oneshot::Receiver<Result<Child, SpawnError>>;

/// What the service needs.
#[derive(Clone, Debug)]
pub struct ProcessesOptions {
    /// Stores the ledger.
    pub log: Log,
    /// The home of the ledger. Only one daemon may have a home at a time.
    pub home_id: HomeId,
    /// The boot id of this daemon.
    pub boot_id: BootId,
    /// The program to start as a keeper.
    pub keeper: KeeperProgram,
    /// Runs the tasks of the service. They end with the children.
    pub tasks: Tasks,
    /// The time source.
    pub clock: Arc<dyn Clock>,
}

/// The owned processes of one daemon. Clones refer to the same processes.
#[derive(Clone, Debug)]
pub struct Processes {
    shared: Arc<ProcessesShared>,
    tasks: Tasks,
    reclaimed: Reclaimed,
}

#[derive(Debug)]
pub(crate) struct ProcessesShared {
    pub(crate) ledger: Ledger,
    pub(crate) keeper: KeeperProgram,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) machine_boot_id: String,
    pub(crate) daemon_boot_id: String,
    /// The children. The lock is held for a lookup, never while waiting.
    registry: Mutex<Registry>,
}

#[derive(Debug)]
struct Registry {
    spawn_gate: SpawnGate,
    children: BTreeMap<String, Arc<Entry>>,
    /// How many times each program was started for each owner.
    starts: HashMap<(String, PathBuf), u64>,
    next: u64,
}

/// Whether children may be started.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SpawnGate {
    Open,
    Closed,
}

impl Processes {
    /// Opens the processes of a home: kills what an earlier daemon left running first.
    ///
    /// *Cancel safety*: if the future is dropped, some are killed and some rows are closed; the next call does
    /// the rest.
    ///
    /// # Errors
    /// If the ledger can't be read or written.
    pub async fn open(options: ProcessesOptions) -> Result<Self, OpenProcessesError> {
        let daemon_boot_id = options.boot_id.to_string();
        let (ledger, open) = Ledger::open(options.log, options.home_id, daemon_boot_id.clone())
            .await
            .map_err(|error| match error {
                OpenError::BadName(bad) => OpenProcessesError::BadName(bad),
                OpenError::Log(error) => OpenProcessesError::Read(error),
            })?;
        let shared = Arc::new(ProcessesShared {
            ledger,
            keeper: options.keeper,
            clock: options.clock,
            machine_boot_id: machine_boot_id(),
            daemon_boot_id,
            registry: Mutex::new(Registry {
                spawn_gate: SpawnGate::Open,
                children: BTreeMap::new(),
                starts: HashMap::new(),
                next: 0,
            }),
        });
        let reclaimed = reclaim(&shared, open).await?;
        if reclaimed != Reclaimed::default() {
            tracing::info!(?reclaimed, "cleaned up processes of an earlier daemon");
        }
        Ok(Self {
            shared,
            tasks: options.tasks,
            reclaimed,
        })
    }

    /// Starts a child. When this returns, its command has been executed.
    ///
    /// *Cancel safety*: if the future is dropped, the child is stopped, or never runs, and nothing is left of it.
    ///
    /// # Errors
    /// See [`SpawnError`]; nothing is left of the attempt.
    pub async fn spawn(&self, spec: Spec) -> Result<Child, SpawnError> {
        self.begin(spec)?.1.await.unwrap_or(Err(SpawnError::Stopped))
    }

    /// Starts a child unless a scope is cancelled. After that, no command is executed, and one that already was gets SIGTERM,
    /// as it would a moment later. If this returns an error, nothing of the child is running.
    ///
    /// *Cancel safety*: that of [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// The same, and [`SpawnError::Stopped`] if the scope was cancelled.
    pub async fn spawn_while(&self, wanted: &Scope, spec: Spec) -> Result<Child, SpawnError> {
        let (entry, mut answered) = self.begin(spec)?;
        let answer = tokio::select! {
            biased;
            _ = wanted.wait() => {
                entry.request_stop(StopPlan::PROMPT);
                answered.await
            }
            answer = &mut answered => answer,
        };
        answer.unwrap_or(Err(SpawnError::Stopped))
    }

    fn begin(&self, spec: Spec) -> Result<(Arc<Entry>, Answered), SpawnError> {
        let entry = self.shared.enter(&spec)?;
        let (answer, answered) = oneshot::channel();
        let life = supervise(Arc::clone(&self.shared), Arc::clone(&entry), spec, answer);
        self.tasks.spawn("process", life);
        Ok((entry, answered))
    }

    /// Makes a view; see [`View`].
    ///
    /// *Cancel safety*: if the future is dropped, the process that makes it is killed, and nothing is left of it
    /// except mount points that were missing.
    ///
    /// # Errors
    /// See [`ViewError`]; nothing is left of the attempt.
    pub async fn make_view(&self, spec: ViewSpec) -> Result<View, ViewError> {
        if self.shared.lock().spawn_gate == SpawnGate::Closed {
            return Err(ViewError::Stopped);
        }
        let (answer, answered) = oneshot::channel();
        self.tasks
            .spawn("view", view::make(Arc::clone(&self.shared), spec, answer));
        answered.await.unwrap_or(Err(ViewError::Stopped))
    }

    /// All children, oldest first. It reads `/proc`, which takes some milliseconds.
    #[must_use]
    pub fn list(&self) -> Vec<ProcessInfo> {
        let children = self.shared.children();
        let table = Table::read();
        let mut infos: Vec<_> = children.iter().map(|entry| info::info(entry, &table)).collect();
        infos.sort_by_key(|info| info.started_at);
        infos
    }

    /// How a pid relates to the children: it may be a child, its keeper, or anything below. It reads `/proc`.
    #[must_use]
    pub fn why(&self, pid: u32) -> Why {
        let children = self.shared.children();
        let table = Table::read();
        info::why(pid, &table, children.iter().map(AsRef::as_ref))
    }

    /// The owner of a process: that of the child that it is part of. It only looks at the parents of the process,
    /// which is a few reads of `/proc`.
    #[must_use]
    pub fn owner_of(&self, pid: u32) -> Belongs {
        let children = self.shared.children();
        let keepers = children.iter().map(AsRef::as_ref);
        info::owner_of(&proc_table::upwards(pid), keepers)
    }

    /// The number of children.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.lock().children.len()
    }

    /// What was found of an earlier daemon.
    #[must_use]
    pub fn reclaimed(&self) -> Reclaimed {
        self.reclaimed
    }

    /// Stops all children at once and waits until they have ended; no more are started. It takes as long as the
    /// plan, however many children there are.
    ///
    /// *Cancel safety*: the future may be dropped at any time; once polled, the stops continue.
    pub async fn stop_all(&self, plan: StopPlan) {
        for child in self.shut(plan) {
            child.over().await;
        }
    }

    /// Starts to stop all children without waiting; no more are started.
    pub fn begin_stop_all(&self, plan: StopPlan) {
        drop(self.shut(plan));
    }

    fn shut(&self, plan: StopPlan) -> Vec<Arc<Entry>> {
        let children: Vec<_> = {
            let mut registry = self.shared.lock();
            registry.spawn_gate = SpawnGate::Closed;
            registry.children.values().cloned().collect()
        };
        for child in &children {
            child.request_stop(plan);
        }
        children
    }
}

impl ProcessesShared {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn children(&self) -> Vec<Arc<Entry>> {
        self.lock().children.values().cloned().collect()
    }

    /// Registers a new child.
    fn enter(&self, spec: &Spec) -> Result<Arc<Entry>, SpawnError> {
        let mut registry = self.lock();
        if registry.spawn_gate == SpawnGate::Closed {
            return Err(SpawnError::Stopped);
        }
        if registry.children.len() >= MAX_CHILDREN {
            return Err(SpawnError::TooMany { limit: MAX_CHILDREN });
        }
        // The id of a boot is never reused, and neither is a number within it.
        let tag = format!("{}.{}", self.daemon_boot_id, registry.next);
        registry.next += 1;
        let restarts = registry.count_start(spec);
        let facts = Facts::of(spec, tag.clone(), restarts);
        let entry = Arc::new(Entry::new(facts, Arc::clone(&self.clock)));
        registry.children.insert(tag, Arc::clone(&entry));
        Ok(entry)
    }

    /// Unregisters a child.
    pub(crate) fn leave(&self, entry: &Entry) {
        self.lock().children.remove(&entry.facts.tag);
    }
}

impl Registry {
    /// Counts a start, and returns how many there were before.
    fn count_start(&mut self, spec: &Spec) -> u64 {
        if self.starts.len() >= MAX_COUNTED {
            let running = &self.children;
            self.starts.retain(|(owner, program), _| {
                let is_same =
                    |entry: &Arc<Entry>| entry.facts.owner == *owner && entry.facts.program == *program;
                running.values().any(is_same)
            });
        }
        let count = self
            .starts
            .entry((spec.owner.clone(), spec.program.clone()))
            .or_default();
        let before = *count;
        *count += 1;
        before
    }
}
