//! A log in a directory of its own, and daemons on it.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use eventlog::{Log, SqliteOptions};
use jobs::Sharing;
use kernel::{Clock, ManualClock, SystemClock};
use protocol::HomeId;
use tempfile::TempDir;

use crate::subjects::{
    board::{Board, PATIENCE},
    daemon::{Daemon, LEASE, Setting},
};

/// A log, a clock and a board.
pub(crate) struct Stage {
    directory: TempDir,
    pub(crate) log: Log,
    /// The clock of everything on the stage, if it is moved by hand.
    pub(crate) manual: Option<Arc<ManualClock>>,
    clock: Arc<dyn Clock>,
    pub(crate) board: Board,
    pub(crate) home: HomeId,
}

impl Stage {
    /// Time passes as it does.
    pub(crate) fn in_real_time() -> Self {
        Self::with(SystemClock::shared(), None)
    }

    /// Time passes when the test says so.
    pub(crate) fn by_hand() -> Self {
        let manual = ManualClock::new();
        Self::with(Arc::clone(&manual) as Arc<dyn Clock>, Some(manual))
    }

    fn with(clock: Arc<dyn Clock>, manual: Option<Arc<ManualClock>>) -> Self {
        let directory = TempDir::new().unwrap();
        let log = open(directory.path().join("log.sqlite3"), &clock);
        Self {
            directory,
            log,
            manual,
            clock,
            board: Board::default(),
            home: HomeId::generate(),
        }
    }

    /// Closes the log and opens it again, as the next daemon does. Whoever else has it must be gone.
    pub(crate) fn reopen(&mut self) {
        self.board.forget_outputs();
        let elsewhere = TempDir::new().unwrap();
        self.log = open(elsewhere.path().join("log.sqlite3"), &self.clock);
        self.log = open(self.directory.path().join("log.sqlite3"), &self.clock);
    }

    pub(crate) fn setting(&self, name: &'static str, max_workers: usize) -> Setting {
        Setting {
            name,
            log: self.log.clone(),
            sharing: Sharing::Alone,
            home: self.home,
            max_workers,
            lease: LEASE,
            clock: Arc::clone(&self.clock),
            board: self.board.clone(),
        }
    }

    /// The only daemon on the log.
    pub(crate) async fn alone(&self, max_workers: usize) -> Daemon {
        Daemon::start(&self.setting("the only one", max_workers)).await
    }

    /// A daemon that shares the log with others. It has a home of its own.
    pub(crate) async fn sharing(&self, name: &'static str, max_workers: usize) -> Daemon {
        let setting = Setting {
            sharing: Sharing::WithOthers,
            home: HomeId::generate(),
            ..self.setting(name, max_workers)
        };
        Daemon::start(&setting).await
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.manual
            .as_ref()
            .expect("the clock is moved by hand")
            .advance(time);
    }
}

/// Opens a log. The one before may take a moment to let go of it.
fn open(path: PathBuf, clock: &Arc<dyn Clock>) -> Log {
    let options = SqliteOptions { path };
    let begun = Instant::now();
    loop {
        match Log::open_sqlite(&options, Arc::clone(clock)) {
            Ok(log) => return log,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
