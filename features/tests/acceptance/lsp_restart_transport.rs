//! Servers that the scenarios of `lsp_restart.feature` can direct, whatever they are reached by.

use std::sync::Arc;

use kernel::{Clock, ManualClock, SystemClock};
use lsp::{Launch, LifecycleManager, LifecycleOptions, LifecycleSettings};
use process::Tasks;

use crate::{
    lifecycle_subjects::{
        restart::{DeleteThenInsert, Servers},
        scripted::{AtHandshake, AtStop, Manners, POLITE, Process, Scripted},
    },
    lsp_restart_process::RealServers,
};

/// Which algorithm a scenario is run against.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Subject {
    #[default]
    Ours,
    DeleteThenInsert,
}

/// What a scenario tells its servers.
pub(crate) trait Direct: Send + Sync {
    /// Servers that are launched from now on hang at initialize.
    fn hang_at_initialize(&self);
    /// Servers that are launched from now on answer it.
    fn answer_from_now_on(&self);
    /// Those that hang answer. It may be said more than once.
    fn answer_initialize(&self);
    /// Those that hang end with [`EXIT_CODE`] and [`LAST_WORDS`].
    fn fail_at_initialize(&self);
    /// The newest process dies.
    fn die(&self);
    /// Whether that has come through to whoever speaks to it.
    fn is_death_known(&self) -> bool;
    /// How many processes were launched.
    fn launched(&self) -> usize;
    /// How many are alive.
    fn alive(&self) -> usize;
}

/// What a server that fails at initialize leaves behind.
pub(crate) const EXIT_CODE: i32 = 3;
/// The end of its standard error.
pub(crate) const LAST_WORDS: &str = "cannot read the configuration";

/// A registry of servers, and what tells them what to do.
pub(crate) struct Stage {
    pub(crate) servers: Arc<dyn Servers>,
    pub(crate) director: Arc<dyn Direct>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The transports by their names in the feature file. A further one is a launcher that can be directed.
pub(crate) async fn open(transport: &str, subject: Subject) -> Stage {
    match transport {
        "in-memory" => Stage::new(Scripted::new(), subject, ManualClock::new()),
        "real process" => Stage::new(RealServers::open(subject).await, subject, SystemClock::shared()),
        other => panic!("no launcher for the transport {other:?}"),
    }
}

impl Stage {
    pub(crate) fn new<L>(launcher: L, subject: Subject, clock: Arc<dyn Clock>) -> Self
    where
        L: Launch + Direct + Clone,
    {
        let director = Arc::new(launcher.clone());
        let servers: Arc<dyn Servers> = match subject {
            Subject::Ours => Arc::new(LifecycleManager::new(LifecycleOptions {
                launch: launcher,
                settings: LifecycleSettings::default(),
                clock: Arc::clone(&clock),
                tasks: Arc::new(Tasks::default()),
            })),
            Subject::DeleteThenInsert => Arc::new(DeleteThenInsert::new(launcher)),
        };
        Self {
            servers,
            director,
            clock,
        }
    }
}

/// Servers in memory that hang when they are told to stop.
pub(crate) fn stubborn() -> Scripted {
    let script = Scripted::new();
    script.behave(Manners {
        at_stop: AtStop::Hangs,
        ..POLITE
    });
    script
}

impl Direct for Scripted {
    fn hang_at_initialize(&self) {
        self.behave(Manners {
            at_handshake: AtHandshake::Hangs,
            ..POLITE
        });
    }

    fn answer_from_now_on(&self) {
        self.behave(POLITE);
    }

    fn answer_initialize(&self) {
        self.alive().iter().for_each(|process| {
            process.answer();
        });
    }

    fn fail_at_initialize(&self) {
        self.alive().iter().for_each(|process| {
            process.refuse("the server ended while it was starting");
        });
    }

    fn die(&self) {
        assert!(self.newest().crash("killed"), "the newest process is up");
    }

    fn is_death_known(&self) -> bool {
        true
    }

    fn launched(&self) -> usize {
        self.processes().len()
    }

    fn alive(&self) -> usize {
        Self::alive(self)
            .iter()
            .filter(|process| !Process::is_gone(process))
            .count()
    }
}
