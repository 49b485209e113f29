//! Sends work to a daemon, starting one first if needed.
//!
//! 1. The request is simply sent. Checking first and sending later would rely on a state that may have changed: a
//!    daemon can end in between.
//! 2. Only a request that was certainly not carried out leads to a start, and is sent again afterwards: no daemon was
//!    there, or the daemon refused it because it was about to end. A request whose outcome is unknown is sent again
//!    only if doing it twice is the same as doing it once.
//! 3. For a start, the start lock is taken and the check is repeated, so that of many clients one starts a daemon and
//!    the others find it.
//! 4. A daemon that is alive but does not accept work is about to serve or about to end. We wait for either, with a
//!    bound. The first daemon's lock would keep out a second one.
//! 5. The new daemon reports through a pipe that it serves, or why it can't.
//!
//! Every wait has a deadline, and the start lock is held for no longer than their sum.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{Client, ClientError, Probe};
use crate::daemon_process::{DaemonProcess, Waited};
use crate::error::{ALREADY_RUNNING, Exit, Failure, UNREACHABLE, chain};
use crate::launch;
use crate::start_lock::{StartLock, StartLockError};

/// How long a daemon may be alive without accepting work. Its requests in flight have as much time.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(12);
/// How long to wait for other clients that start a daemon: longer than one step of a start may take.
pub(crate) const START_LOCK_TIMEOUT: Duration = Duration::from_secs(90);
/// How long to wait for the end of a daemon before checking again whether it serves by now.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How many items of a list to request at a time.
const PAGE: usize = 100;

/// The error code of a daemon that finds its log in use.
const LOG_TAKEN: &str = "log_taken";

/// How often to try something that another client can do first. The second attempt finds the result of the other
/// client, unless that is undone at once; three failures in a row mean another problem.
const ATTEMPTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    Before,
    Now,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Has the same effect as sending it once.
    Harmless,
    /// Has another effect.
    Harmful,
}

impl Client {
    /// Runs `work` against a daemon, starting one if needed.
    pub(crate) fn ask<T>(
        &self,
        repeat: Repeat,
        work: impl Fn(&Client) -> Result<T, ClientError>,
    ) -> Result<T, Failure> {
        with_daemon(self, repeat, work).map(|(answer, _)| answer)
    }

    /// Reads something from a daemon, starting one if needed.
    pub(crate) fn fetch<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Repeat::Harmless, |client| client.get(path))
    }
}

#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) things: Vec<Value>,
    /// Where the list continues, if there is more.
    pub(crate) next: Option<String>,
    /// The last page without its items.
    pub(crate) rest: Value,
}

impl Client {
    /// Reads a list from the newest item on, up to `most` items or all. `path` has a query.
    pub(crate) fn fetch_pages(&self, path: &str, name: &str, most: Option<usize>) -> Result<Pages, Failure> {
        let mut things: Vec<Value> = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let limit = most.map_or(PAGE, |most| PAGE.min(most - things.len()));
            let before = next.map_or_else(String::new, |before| format!("&before={before}"));
            let mut rest: Value = self.fetch(&format!("{path}&limit={limit}{before}"))?;
            if let Value::Array(page) = rest[name].take() {
                things.extend(page);
            }
            let place = rest.get("next_before").or_else(|| rest.get("next"));
            next = place.and_then(Value::as_str).map(str::to_owned);
            if next.is_none() || most.is_some_and(|most| things.len() >= most) {
                return Ok(Pages { things, next, rest });
            }
        }
    }
}

/// Like [`Client::ask`], and also returns who started the daemon.
pub(crate) fn with_daemon<T>(
    client: &Client,
    repeat: Repeat,
    work: impl Fn(&Client) -> Result<T, ClientError>,
) -> Result<(T, Started), Failure> {
    let mut started = Started::Before;
    for _ in 1..ATTEMPTS {
        match work(client) {
            Ok(done) => return Ok((done, started)),
            Err(error) if may_be_repeated(&error, repeat) => {
                if ensure_running(client)? == Started::Now {
                    started = Started::Now;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((work(client)?, started))
}

fn may_be_repeated(error: &ClientError, repeat: Repeat) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused(refusal) => refusal.is_about_the_daemons_end(),
        ClientError::Broken { .. } => repeat == Repeat::Harmless,
        ClientError::Home(_)
        | ClientError::Token { .. }
        | ClientError::Timeout { .. }
        | ClientError::TooLarge
        | ClientError::Output { .. }
        | ClientError::NotUnderstood { .. }
        | ClientError::ForeignPeer { .. } => false,
    }
}

fn ensure_running(client: &Client) -> Result<Started, Failure> {
    let context = &client.context;
    context.home.prepare()?;
    let _lock = StartLock::take(&context.home, START_LOCK_TIMEOUT)?;
    for _ in 1..ATTEMPTS {
        match wait_for_room(client)? {
            Room::Occupied => return Ok(Started::Before),
            Room::Free => match launch::in_background(context) {
                Ok(()) => return Ok(Started::Now),
                // Another daemon came first: its client was killed, which released the start lock.
                // Or its runtime directory was removed, and it is about to create it again.
                Err(failure) if failure.code == ALREADY_RUNNING || failure.code == LOG_TAKEN => {}
                Err(failure) => return Err(failure),
            },
        }
    }
    launch::in_background(context).map(|()| Started::Now)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// No daemon is alive.
    Free,
    Occupied,
}

/// Waits until a daemon accepts work or none is alive.
fn wait_for_room(client: &Client) -> Result<Room, Failure> {
    let unclear = |error: std::io::Error| Failure::new(Exit::Unreachable, "daemon_unclear", chain(&error));
    let give_up_at = Instant::now() + SETTLE_TIMEOUT;
    loop {
        if client.probe()? == Probe::Ready {
            return Ok(Room::Occupied);
        }
        let Some(process) = DaemonProcess::find(&client.context.home).map_err(unclear)? else {
            return Ok(Room::Free);
        };
        let left = give_up_at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(does_not_answer(process.owner.pid));
        }
        // Whether it has ended or not, the next check will show.
        let (Waited::Ended | Waited::StillThere) =
            process.wait(LOOK_AGAIN_AFTER.min(left)).map_err(unclear)?;
    }
}

/// A daemon is alive but accepts no work.
pub(crate) fn does_not_answer(pid: u32) -> Failure {
    Failure::new(
        Exit::Unreachable,
        UNREACHABLE,
        format!("the daemon (pid {pid}) is running but doesn't answer"),
    )
    .advise(format!(
        "stop it with `tidelock down`; if that doesn't help, use `kill -9 {pid}`"
    ))
}

impl From<StartLockError> for Failure {
    fn from(error: StartLockError) -> Failure {
        let (code, advice) = match error {
            StartLockError::Unusable { .. } => ("home_unusable", "see `tidelock doctor`"),
            StartLockError::Busy { .. } => (
                "start_busy",
                "try again, or check for `tidelock` processes that hang",
            ),
        };
        Failure::new(Exit::Unreachable, code, chain(&error)).advise(advice)
    }
}
