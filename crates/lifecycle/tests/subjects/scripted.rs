//! Servers that do as they are told, without a process: they hang at the handshake, fail, crash and refuse to go.

use std::sync::{Arc, Mutex, MutexGuard};

use kernel::{CancellationToken, Deadline, Scope, Slot};
use lifecycle::{
    EndReason, Failure, Launch, LaunchFailure, RunningServer, ServerExit, ServerGeneration, ServerKey,
};

/// The name that is not configured.
pub(crate) const UNKNOWN: &str = "unknown";

/// What a server does by itself. Whatever it does not, it waits to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Manners {
    pub(crate) at_handshake: AtHandshake,
    pub(crate) when_cancelled: WhenCancelled,
    pub(crate) at_stop: AtStop,
    pub(crate) at_probe: AtProbe,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AtHandshake {
    Answers,
    Hangs,
    Panics,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WhenCancelled {
    Goes,
    Ignores,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AtStop {
    Goes,
    Hangs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AtProbe {
    Answers,
    Refuses,
    Hangs,
}

/// A server with good manners.
pub(crate) const POLITE: Manners = Manners {
    at_handshake: AtHandshake::Answers,
    when_cancelled: WhenCancelled::Goes,
    at_stop: AtStop::Goes,
    at_probe: AtProbe::Answers,
};

/// Where a process is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Handshake,
    Answered,
    Refused(Failure),
    /// It ended by itself; nobody has cleaned up after it yet.
    Ended(Failure),
    /// It was told to stop and may go.
    MayGo,
    /// Nothing is left of it.
    Gone,
}

/// One process of the script.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) key: ServerKey,
    pub(crate) generation: ServerGeneration,
    stage: Slot<Stage>,
    /// Guards whether somebody has asked it to stop.
    stops: Arc<Mutex<usize>>,
    manners: Manners,
}

/// Launches scripted servers. Clones are the same script.
#[derive(Clone, Debug)]
pub(crate) struct Scripted {
    /// Guards the manners of the next server and all processes so far.
    script: Arc<Mutex<Script>>,
}

#[derive(Debug)]
struct Script {
    manners: Manners,
    processes: Vec<Process>,
    most_at_once: usize,
}

/// A failure as a server leaves it behind.
pub(crate) fn failure(message: &str) -> Failure {
    Failure {
        message: message.to_owned(),
        exit: Some(ServerExit::Code(3)),
        stderr_tail: "cannot read the configuration\n".to_owned(),
    }
}

fn never() -> Scope {
    CancellationToken::new().scope()
}

impl Process {
    pub(crate) fn stage(&self) -> Stage {
        Stage::clone(&self.stage.read().state)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.stage() == Stage::Gone
    }

    /// Moves on, if the process is in that stage. Returns whether it was.
    fn step(&self, from: impl Fn(&Stage) -> bool, to: &Stage) -> bool {
        loop {
            let seen = self.stage.read();
            if !from(&seen.state) {
                return false;
            }
            if self.stage.transition(seen.generation, to.clone()).is_ok() {
                return true;
            }
        }
    }

    /// Answers the handshake.
    pub(crate) fn answer(&self) -> bool {
        self.step(|stage| *stage == Stage::Handshake, &Stage::Answered)
    }

    /// Fails at the handshake.
    pub(crate) fn refuse(&self, message: &str) -> bool {
        self.step(
            |stage| *stage == Stage::Handshake,
            &Stage::Refused(failure(message)),
        )
    }

    /// Ends without being asked to.
    pub(crate) fn crash(&self, message: &str) -> bool {
        self.step(|stage| *stage == Stage::Answered, &Stage::Ended(failure(message)))
    }

    /// Lets a process go that hangs at its stop.
    pub(crate) fn let_go(&self) -> bool {
        let was_told = *self.stops.lock().unwrap() > 0;
        was_told && self.step(|stage| *stage != Stage::Gone, &Stage::MayGo)
    }

    fn gone(&self) {
        self.step(|stage| *stage != Stage::Gone, &Stage::Gone);
    }
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self {
            script: Arc::new(Mutex::new(Script {
                manners: POLITE,
                processes: Vec::new(),
                most_at_once: 0,
            })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// How servers behave that are launched from now on.
    pub(crate) fn behave(&self, manners: Manners) {
        self.lock().manners = manners;
    }

    /// All processes so far, oldest first.
    pub(crate) fn processes(&self) -> Vec<Process> {
        self.lock().processes.clone()
    }

    /// The newest process.
    pub(crate) fn newest(&self) -> Process {
        self.processes().pop().expect("something was launched")
    }

    /// Processes of which something is left.
    pub(crate) fn alive(&self) -> Vec<Process> {
        let mut processes = self.processes();
        processes.retain(|process| !process.is_gone());
        processes
    }

    /// The most processes of one key that were there at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.lock().most_at_once
    }

    fn begin(&self, key: &ServerKey, generation: ServerGeneration) -> Process {
        let mut script = self.lock();
        let process = Process {
            key: key.clone(),
            generation,
            stage: Slot::new(Stage::Handshake),
            stops: Arc::default(),
            manners: script.manners,
        };
        script.processes.push(process.clone());
        let is_there = |other: &&Process| other.key == *key && !other.is_gone();
        let at_once = script.processes.iter().filter(is_there).count();
        script.most_at_once = script.most_at_once.max(at_once);
        process
    }
}

impl Launch for Scripted {
    type Server = Process;

    fn knows(&self, key: &ServerKey) -> bool {
        &*key.server != UNKNOWN
    }

    async fn launch(
        &self,
        key: &ServerKey,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<Process, LaunchFailure> {
        let process = self.begin(key, generation);
        match process.manners.at_handshake {
            AtHandshake::Answers => assert!(process.answer()),
            AtHandshake::Hangs => {}
            AtHandshake::Panics => {
                process.gone();
                // A panic as any other, but for the message on the terminal.
                std::panic::resume_unwind(Box::new("told to panic"));
            }
        }
        let scope = match process.manners.when_cancelled {
            WhenCancelled::Goes => scope.clone(),
            WhenCancelled::Ignores => never(),
        };
        let is_told = |stage: &Stage| *stage != Stage::Handshake;
        let waited = process.stage.wait_until(is_told, Deadline::never(), &scope).await;
        match waited.map(|seen| Stage::clone(&seen.state)) {
            Ok(Stage::Answered | Stage::Ended(_)) => Ok(process),
            Ok(Stage::Refused(failure)) => {
                process.gone();
                Err(failure)
            }
            other => {
                process.gone();
                Err(Failure::new(format!("given up: {other:?}")))
            }
        }
    }
}

impl RunningServer for Process {
    async fn ended(&self) -> EndReason {
        let has_ended = |stage: &Stage| matches!(stage, Stage::Ended(_) | Stage::Gone);
        let waited = self
            .stage
            .wait_until(has_ended, Deadline::never(), &never())
            .await;
        match Stage::clone(&waited.expect("there is no end to this wait").state) {
            Stage::Ended(failure) => failure,
            _ => Failure::new("gone"),
        }
    }

    async fn stop(&self) {
        *self.stops.lock().unwrap() += 1;
        if self.manners.at_stop == AtStop::Hangs {
            let may_go = |stage: &Stage| matches!(stage, Stage::MayGo | Stage::Gone);
            drop(self.stage.wait_until(may_go, Deadline::never(), &never()).await);
        }
        self.gone();
    }

    async fn probe(&self, _: &Deadline) -> Result<(), String> {
        match self.manners.at_probe {
            AtProbe::Answers => Ok(()),
            AtProbe::Refuses => Err("an error".to_owned()),
            AtProbe::Hangs => std::future::pending().await,
        }
    }
}
