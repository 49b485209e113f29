//! One child, as the daemon shares it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use kernel::{CancellationToken, Clock, Deadline, Seen, Slot, WaitError};
use tokio::net::unix::pipe::Sender;

use crate::ended::Ended;
use crate::identity::Identity;
use crate::outlet::Outlet;
use crate::spec::{Enforcement, Spec, StopPlan};
use crate::state::{Life, StopRequest};
use crate::stderr_ring::Ring;

/// How many characters of the arguments are kept for display. They can have megabytes.
const SHOWN_ARGUMENT_CHARS: usize = 512;
const SHOWN_ARGUMENTS: usize = 64;

/// What is known about a child before it runs, and doesn't change.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Is in the environment of everything that belongs to the child.
    pub(crate) tag: String,
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<String>,
    pub(crate) owner: String,
    pub(crate) reason: String,
    pub(crate) generation: u64,
    pub(crate) restarts: u64,
    pub(crate) started_at: SystemTime,
}

/// What is known once it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) command: Identity,
    pub(crate) confinement: Enforcement,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    pub(crate) keeper: OnceLock<Identity>,
    pub(crate) started: OnceLock<Started>,
    pub(crate) life: Slot<Life>,
    clock: Arc<dyn Clock>,
    /// The last of its standard error.
    stderr: Mutex<Ring>,
    /// The pipes that nobody has taken yet.
    pipes: Mutex<UntakenStreams>,
}

/// Our ends of the child's streams, as long as nobody has taken them.
#[derive(Debug, Default)]
pub(crate) struct UntakenStreams {
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Option<Outlet>,
    /// Also `None` if the last of it is kept here.
    pub(crate) stderr: Option<Outlet>,
}

impl Facts {
    pub(crate) fn of(spec: &Spec, tag: String, restarts: u64) -> Self {
        let program = spec.program.as_os_str();
        let shown = std::iter::once(program).chain(spec.arguments.iter().map(AsRef::as_ref));
        let shorten = |text: &std::ffi::OsStr| {
            let text = text.to_string_lossy();
            match text.char_indices().nth(SHOWN_ARGUMENT_CHARS) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text.into_owned(),
            }
        };
        let mut argv: Vec<_> = shown.take(SHOWN_ARGUMENTS).map(shorten).collect();
        if spec.arguments.len() >= SHOWN_ARGUMENTS {
            argv.push("…".to_owned());
        }
        Self {
            tag,
            program: spec.program.clone(),
            argv,
            owner: spec.owner.clone(),
            reason: spec.reason.clone(),
            generation: spec.generation,
            restarts,
            started_at: SystemTime::now(),
        }
    }
}

impl Entry {
    pub(crate) fn new(facts: Facts, clock: Arc<dyn Clock>) -> Self {
        Self {
            facts,
            keeper: OnceLock::new(),
            started: OnceLock::new(),
            life: Slot::new(Life::Starting { stop_request: None }),
            clock,
            stderr: Mutex::default(),
            pipes: Mutex::default(),
        }
    }

    /// Applies a transition. If it is refused, somebody else has made one, and a life has few of them.
    pub(crate) fn advance(&self, next: impl Fn(&Life) -> Option<Life>) {
        let mut seen = self.life.read();
        while let Some(wanted) = next(&seen.state) {
            match self.life.transition(seen.generation, wanted) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }

    /// Requests the end of the child without waiting.
    pub(crate) fn request_stop(&self, plan: StopPlan) {
        let stop_request = StopRequest::of(plan, self.clock.now());
        self.advance(|life| life.on_stop_request(stop_request));
    }

    /// Waits until the predicate holds.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn wait(&self, mut wanted: impl FnMut(&Life) -> bool + Unpin) -> Arc<Life> {
        let never = CancellationToken::new().scope();
        let waited = self.life.wait_until(&mut wanted, Deadline::never(), &never).await;
        match waited {
            Ok(Seen { state, .. })
            | Err(
                WaitError::DeadlineExceeded {
                    last: Seen { state, .. },
                }
                | WaitError::Cancelled {
                    last: Seen { state, .. },
                    ..
                },
            ) => state,
        }
    }

    /// Waits for the end; `None` if it never ran.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub(crate) async fn over(&self) -> Option<Arc<Ended>> {
        match &*self.wait(Life::is_over).await {
            Life::Ended(ended) => Some(Arc::clone(ended)),
            _ => None,
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_stderr(&self, bytes: &[u8]) {
        self.ring().add(bytes);
    }

    pub(crate) fn stderr_tail(&self) -> String {
        self.ring().text()
    }

    fn untaken(&self) -> MutexGuard<'_, UntakenStreams> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn offer(&self, streams: UntakenStreams) {
        *self.untaken() = streams;
    }

    pub(crate) fn take_all(&self) -> UntakenStreams {
        std::mem::take(&mut self.untaken())
    }

    pub(crate) fn take_stdin(&self) -> Option<Sender> {
        self.untaken().stdin.take()
    }

    pub(crate) fn take_stdout(&self) -> Option<Outlet> {
        self.untaken().stdout.take()
    }

    pub(crate) fn take_stderr(&self) -> Option<Outlet> {
        self.untaken().stderr.take()
    }
}
