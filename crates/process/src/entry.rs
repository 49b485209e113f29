//! One child, as everybody in the daemon shares it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use kernel::{CancellationToken, Clock, Deadline, Seen, Slot, WaitError};
use tokio::net::unix::pipe::Sender;

use crate::ended::Ended;
use crate::identity::Identity;
use crate::outlet::Outlet;
use crate::spec::{Enforcement, Spec, StopPlan};
use crate::state::{Life, Wish};
use crate::stderr_ring::Ring;

/// How much of the arguments is kept to be shown. They can have megabytes.
const SHOWN_ARGUMENT_CHARS: usize = 512;
const SHOWN_ARGUMENTS: usize = 64;

/// What is known of a child before it runs, and for good.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Stands in the environment of everything that belongs to it.
    pub(crate) tag: String,
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<String>,
    pub(crate) owner: String,
    pub(crate) reason: String,
    pub(crate) generation: u64,
    pub(crate) restarts: u64,
    pub(crate) started_at: SystemTime,
}

/// What is known of it once it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub(crate) command: Identity,
    pub(crate) confinement: Enforcement,
}

/// A child.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) facts: Facts,
    pub(crate) keeper: OnceLock<Identity>,
    pub(crate) started: OnceLock<Started>,
    pub(crate) life: Slot<Life>,
    clock: Arc<dyn Clock>,
    /// Guards the last of its standard error.
    stderr: Mutex<Ring>,
    /// Guards the pipes that nobody has taken yet.
    pipes: Mutex<Untaken>,
}

/// Our ends of the streams of a child, as long as nobody has taken them.
#[derive(Debug, Default)]
pub(crate) struct Untaken {
    pub(crate) stdin: Option<Sender>,
    pub(crate) stdout: Option<Outlet>,
    /// Nothing as well if the last of it is kept here.
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
            life: Slot::new(Life::Starting { wish: None }),
            clock,
            stderr: Mutex::default(),
            pipes: Mutex::default(),
        }
    }

    /// Moves the life on. Each refused attempt means that somebody else has moved it, and a life has few moves.
    pub(crate) fn advance(&self, next: impl Fn(&Life) -> Option<Life>) {
        let mut seen = self.life.read();
        while let Some(wanted) = next(&seen.state) {
            match self.life.transition(seen.generation, wanted) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }

    /// Wants it to end. It does not wait.
    pub(crate) fn wish(&self, plan: StopPlan) {
        let wish = Wish::of(plan, self.clock.now());
        self.advance(|life| life.on_wish(wish));
    }

    /// Waits until the life is as wanted.
    ///
    /// *Cancel safety*: may be dropped at any time.
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
    /// *Cancel safety*: may be dropped at any time.
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

    fn untaken(&self) -> MutexGuard<'_, Untaken> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn offer(&self, streams: Untaken) {
        *self.untaken() = streams;
    }

    /// All that nobody has taken.
    pub(crate) fn take_all(&self) -> Untaken {
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
