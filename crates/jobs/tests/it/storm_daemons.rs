//! Workers of a storm: services in runtimes of their own, or programs. Both can be killed and can stand still.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, SyncSender},
    thread::JoinHandle,
    time::Duration,
};

use eventlog::Log;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{runtime::Builder, sync::mpsc::Sender};

use crate::{
    play::{Answer, Order, Place, obey, open},
    storm_database::Database,
};

/// How long an answer may take. Nothing that works takes as long.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many calls or answers may wait. A worker is told one thing at a time, so there is never more than one.
const ANSWERS: usize = 4;

/// Where the workers of a storm work.
pub(crate) enum Ground {
    /// In this process, on one log.
    Here { log: Log },
    /// In processes of their own, on one database.
    There { database: Database },
}

/// A worker.
pub(crate) enum Daemon {
    Here(Service),
    There(Program),
}

impl Daemon {
    pub(crate) fn start(ground: &Ground, place: &Place) -> Self {
        match ground {
            Ground::Here { log } => Self::Here(Service::start(log, place)),
            Ground::There { database } => Self::There(Program::start(database, place)),
        }
    }

    /// Tells it something, and waits for the answer.
    pub(crate) fn tell(&mut self, order: Order) -> Answer {
        match self {
            Self::Here(service) => service.call(|answer| Call::Obey(order, answer)),
            Self::There(program) => program.tell(&order),
        }
    }

    /// It stands still for so long, and then goes on as if nothing had been.
    pub(crate) fn stall(&mut self, time: Duration) {
        match self {
            Self::Here(service) => {
                service.call(|answer| Call::Stand(time, answer));
            }
            Self::There(program) => {
                program.signal(Signal::STOP);
                std::thread::sleep(time);
                program.signal(Signal::CONT);
            }
        }
    }

    /// It is dead when this returns, and has said nothing to anybody.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

/// A worker in a thread of its own. All of it runs on that thread, so it stands still and dies as a whole.
pub(crate) struct Service {
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

enum Call {
    Obey(Order, SyncSender<Answer>),
    Stand(Duration, SyncSender<Answer>),
}

impl Service {
    fn start(log: &Log, place: &Place) -> Self {
        let (calls, mut called) = tokio::sync::mpsc::channel(ANSWERS);
        let (log, place) = (log.clone(), place.clone());
        let (ready, is_ready) = mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let jobs = open(log, &place).await.unwrap();
                ready.send(()).unwrap();
                while let Some(call) = called.recv().await {
                    match call {
                        Call::Obey(order, answer) => answer.send(obey(&jobs, order).await).unwrap(),
                        Call::Stand(time, answer) => {
                            std::thread::sleep(time);
                            answer.send(Answer::Done).unwrap();
                        }
                    }
                }
            });
        });
        is_ready.recv_timeout(PATIENCE).unwrap();
        Self {
            calls: Some(calls),
            thread: Some(thread),
        }
    }

    fn call(&self, call: impl FnOnce(SyncSender<Answer>) -> Call) -> Answer {
        let (answer, answered) = mpsc::sync_channel(1);
        let calls = self.calls.as_ref().unwrap();
        assert!(calls.blocking_send(call(answer)).is_ok(), "it is gone");
        answered.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Service {
    /// Without calls its runtime ends, and drops everything that runs there where it is.
    fn drop(&mut self) {
        drop(self.calls.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

/// A worker that is a program.
pub(crate) struct Program {
    child: Child,
    stdin: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Program {
    fn start(database: &Database, place: &Place) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_storm-worker"))
            .args([&database.url, &database.schema, &place.home.to_string()])
            .arg(&place.diary)
            .arg(place.lease.as_millis().to_string())
            .arg(place.max_workers.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (told, answers) = mpsc::sync_channel(ANSWERS);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        let program = Self {
            child,
            stdin,
            answers,
        };
        assert!(matches!(program.answer(), Answer::Ready), "it is not ready");
        program
    }

    fn tell(&mut self, order: &Order) -> Answer {
        let line = serde_json::to_string(order).unwrap();
        writeln!(self.stdin, "{line}").unwrap();
        self.answer()
    }

    fn answer(&self) -> Answer {
        let line = self.answers.recv_timeout(PATIENCE).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
