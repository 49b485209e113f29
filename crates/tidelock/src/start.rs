//! Gets work done by a daemon, whether one is there or has to be started first.
//!
//! 1. The request is simply sent. To look first and then send would decide on a state that may have moved: a daemon
//!    can end in between.
//! 2. Only a request that was certainly not carried out leads to a start, and is sent again afterwards: nobody was
//!    there, or the daemon refused it because it was about to end. One whose fate is not known is sent again only
//!    if doing it twice is the same as doing it once.
//! 3. For a start, the start lock is taken and the look is repeated, so that of many clients one starts a daemon and
//!    the others find it.
//! 4. A daemon that is alive and does not take work is either about to serve or about to end. Both are waited for,
//!    with a bound. A second daemon would be refused by the first one's lock.
//! 5. The new daemon says through a pipe that it serves, or why it cannot.
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

/// How long a daemon that does not take work may go on like that. Its requests in flight have as much time.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(12);
/// How long to wait for others who start a daemon: longer than one step of a start may take.
pub(crate) const START_LOCK_TIMEOUT: Duration = Duration::from_secs(90);
/// How long to wait for the end of a daemon before asking again whether it serves by now.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// How many things of a list are asked for at a time.
const PAGE: usize = 100;

/// The code of a daemon that finds its log in use.
const LOG_TAKEN: &str = "log_taken";

/// How often something is tried that others can spoil by being faster. The second time finds what they have done,
/// unless they undo it at once; whoever meets this three times has another problem.
const ATTEMPTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    Before,
    Now,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The same as to send it once.
    Harmless,
    /// Something else.
    Harmful,
}

impl Client {
    /// Has `work` done by a daemon, starting one if needed.
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
    /// Where it goes on, if there is more.
    pub(crate) next: Option<String>,
    /// The last page without its things.
    pub(crate) rest: Value,
}

impl Client {
    /// Reads a list from the newest thing on, at most so many or all. `path` has a query.
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

/// The same as [`Client::ask`], and who started the daemon.
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
                // Somebody was faster: a daemon whose client was killed, and with it the lock on its start.
                // Or its runtime directory was removed, and it is about to make it again.
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

/// Waits until a daemon takes work or none is alive.
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
        // Whether it has ended or not, the next look tells.
        let (Waited::Ended | Waited::StillThere) =
            process.wait(LOOK_AGAIN_AFTER.min(left)).map_err(unclear)?;
    }
}

/// A daemon is alive and takes no work.
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
