//! A daemon with a home of its own, for one test.

use std::fmt::Debug;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use daemon::{
    Daemon, Ended, Home, KeeperProgram, Listen, Options, ShutdownHandle, Signals, StreamLimit, Upkeep,
    WhenTaken,
};
use kernel::{Cause, CircuitBreaker, Clock, ManualClock, SystemClock};
use process::Processes;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

use crate::client::{Client, Target};

/// How long a condition may take to come true before the test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running daemon. When a test ends, its runtime drops the daemon, and the directory goes with this.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) home: Home,
    pub(crate) token: String,
    pub(crate) breakers: CircuitBreaker,
    pub(crate) handle: ShutdownHandle,
    pub(crate) ended: JoinHandle<Ended>,
    clock: Arc<dyn Clock>,
    directory: TempDir,
}

impl Running {
    pub(crate) async fn start() -> Self {
        Self::start_with(SystemClock::shared(), |_| {}).await
    }

    /// With a clock that only the test moves.
    pub(crate) async fn start_with_manual_clock() -> (Self, Arc<ManualClock>) {
        let clock = ManualClock::new();
        let running = Self::start_with(Arc::clone(&clock) as Arc<dyn Clock>, |_| {}).await;
        // What the daemon has tried out at its start is over, so that all alarms are of what the test does.
        until("nothing is waited for", || clock.pending_alarms() == 0).await;
        (running, clock)
    }

    pub(crate) async fn start_with(clock: Arc<dyn Clock>, change: impl FnOnce(&mut Options)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), clock, change).await
    }

    /// In a directory where something is already.
    pub(crate) async fn start_in(
        directory: TempDir,
        clock: Arc<dyn Clock>,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        Self::begin(directory, clock, change).await.0
    }

    /// With its processes, to start some. Whoever has them holds the log open.
    pub(crate) async fn start_with_processes(keeper: KeeperProgram) -> (Self, Processes) {
        let directory = tempfile::tempdir().unwrap();
        let change = |options: &mut Options| options.keeper = keeper;
        Self::begin(directory, SystemClock::shared(), change).await
    }

    async fn begin(
        directory: TempDir,
        clock: Arc<dyn Clock>,
        change: impl FnOnce(&mut Options),
    ) -> (Self, Processes) {
        let mut options = options(&directory);
        change(&mut options);
        let home = options.home.clone();
        let daemon = Daemon::start(options, Arc::clone(&clock)).await.unwrap();
        let processes = daemon.processes();
        let running = Self {
            address: daemon.address(),
            token: fs::read_to_string(home.token_file()).unwrap().trim().to_owned(),
            home,
            breakers: daemon.breakers(),
            handle: daemon.shutdown_handle(),
            ended: tokio::spawn(daemon.wait()),
            clock,
            directory,
        };
        (running, processes)
    }

    /// Stops the daemon as it should be, and starts the next one in the same home.
    pub(crate) async fn restart(self) -> Self {
        self.handle.stop(Cause::new("the test", "it is over"));
        within(self.ended).await.unwrap();
        Self::start_in(self.directory, self.clock, |_| {}).await
    }

    /// The same, with something done to the log in between.
    pub(crate) async fn restart_after(self, change: impl AsyncFnOnce(&eventlog::Log)) -> Self {
        self.handle.stop(Cause::new("the test", "it is over"));
        within(self.ended).await.unwrap();
        let path = self.home.log_database();
        let options = eventlog::SqliteOptions { path };
        let log = eventlog::Log::open_sqlite(&options, SystemClock::shared()).unwrap();
        change(&log).await;
        drop(log);
        Self::start_in(self.directory, self.clock, |_| {}).await
    }

    /// Ends the daemon without a word, and starts the next one in the same home.
    pub(crate) async fn crash(self) -> Self {
        self.ended.abort();
        assert!(within(self.ended).await.is_err(), "it ended by itself");
        // What is left of it lets go of the log as soon as it gets the thread.
        let lock = self.home.log_database();
        let is_free = || {
            let options = eventlog::SqliteOptions { path: lock.clone() };
            eventlog::Log::open_sqlite(&options, SystemClock::shared()).is_ok()
        };
        until("the log is free", is_free).await;
        Self::start_in(self.directory, self.clock, |_| {}).await
    }

    pub(crate) fn tcp(&self) -> Client {
        Client {
            target: Target::Tcp(self.address),
            token: self.token.clone(),
        }
    }

    pub(crate) fn unix(&self) -> Client {
        Client {
            target: Target::Unix(self.home.socket()),
            token: self.token.clone(),
        }
    }

    /// A connection on which `bytes` have been sent before the daemon can look at it: the test has the only
    /// thread, and does not give it away in between.
    pub(crate) fn raw(&self, bytes: &str) -> Raw {
        let mut stream = UnixStream::connect(self.home.socket()).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        Raw {
            stream: tokio::net::UnixStream::from_std(stream).unwrap(),
        }
    }

    /// The head of a request with the token, without the empty line at its end.
    pub(crate) fn head(&self, first_line: &str) -> String {
        format!(
            "{first_line}\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n",
            self.token
        )
    }

    /// Whether somebody still listens on TCP.
    pub(crate) fn listens(&self) -> bool {
        TcpStream::connect(self.address).is_ok()
    }

    /// Stops the daemon and returns how it ended.
    pub(crate) async fn stop(self) -> Ended {
        self.handle.stop(Cause::new("the test", "it is over"));
        within(self.ended).await.unwrap()
    }
}

/// A connection without a client's manners.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) stream: tokio::net::UnixStream,
}

impl Raw {
    pub(crate) async fn send(&mut self, bytes: &str) {
        use tokio::io::AsyncWriteExt;
        self.stream.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Whether the daemon has closed the connection, whatever is still to be read from it.
    pub(crate) fn is_cut_off(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut watched = [PollFd::new(&self.stream, PollFlags::empty())];
        poll(&mut watched, Some(&Timespec::default())).unwrap();
        watched[0].revents().contains(PollFlags::HUP)
    }

    /// What the daemon says up to a text, and with it.
    pub(crate) async fn up_to(&mut self, text: &str) -> String {
        let (mut said, mut byte) = (Vec::new(), [0]);
        let text_bytes = text.as_bytes();
        while !said.ends_with(text_bytes) {
            let length = within(self.stream.read(&mut byte)).await.unwrap();
            let so_far = String::from_utf8_lossy(&said);
            assert_eq!(length, 1, "it ended before it said {text:?}: {so_far}");
            said.push(byte[0]);
        }
        String::from_utf8(said).unwrap()
    }

    /// Everything that the daemon says until it closes the connection.
    pub(crate) async fn rest(mut self) -> String {
        let mut text = String::new();
        // A daemon that closes while we were sending resets the connection; what came before counts.
        drop(within(self.stream.read_to_string(&mut text)).await);
        text
    }
}

/// The usual options with a home in `directory` and any free port.
pub(crate) fn options(directory: &TempDir) -> Options {
    let home = Home {
        runtime: directory.path().join("run"),
        state: directory.path().join("state"),
    };
    Options {
        listen: Listen {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            when_taken: WhenTaken::Fail,
        },
        signals: Signals::LeaveAlone,
        upkeep: Upkeep::Never,
        streams: StreamLimit::AtMost(128),
        // A daemon finds out what it can do when it starts, and for that it starts something.
        keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_daemon-test-keeper").into()),
        ..Options::new(home)
    }
}

/// How many breakers a daemon has before anybody has used one: those of the strategies that are built in.
pub(crate) async fn own_breakers() -> usize {
    let running = Running::start().await;
    let own = running.breakers.snapshot().circuits.len();
    running.stop().await;
    own
}

/// Whether a breaker is that of a strategy. Those are always listed.
pub(crate) fn is_own(breaker: &protocol::Breaker) -> bool {
    breaker.id.starts_with("context/")
}

/// Waits for something that must not take for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it took too long")
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "this did not come true: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Asks until the answer is as it should be, and returns it.
pub(crate) async fn until_answer<T: Debug>(
    what: &str,
    mut ask: impl AsyncFnMut() -> T,
    is_right: impl Fn(&T) -> bool,
) -> T {
    let start = Instant::now();
    loop {
        let answer = ask().await;
        if is_right(&answer) {
            return answer;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "this did not come true: {what}: {answer:?}"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
