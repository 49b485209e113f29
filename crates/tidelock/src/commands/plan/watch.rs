//! Waits until a plan is in a given state.
//!
//! The state decides, never an event: on every wake-up, the plan is read again. Events have positions, so one that
//! arrives between the read and the wait is not missed.

use std::time::{Duration, Instant};

use protocol::Plan;
use serde_json::Value;

use super::{get, path};
use crate::client::{Client, ClientError, Interrupts, LOOK_AGAIN_AFTER, Paused, StreamEnd};
use crate::error::Failure;
use crate::printable::printable;

/// How long recording a command's changes may take. A large sandbox without an overlay is read file by file.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Returns the plan once the job has left it, or its current state on timeout or Ctrl-C.
pub(in crate::commands) fn until_left(
    id: &str,
    job: &str,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Value, Failure> {
    let has_left = |plan: &Plan| plan.running.iter().all(|command| command.job != job);
    until(id, has_left, interrupts, client)
}

/// Returns the plan once it is as wanted, or its current state on timeout or Ctrl-C.
pub(super) fn until(
    id: &str,
    is_wanted: impl Fn(&Plan) -> bool,
    interrupts: &mut Interrupts,
    client: &Client,
) -> Result<Value, Failure> {
    let give_up_at = Instant::now() + PATIENCE;
    let is_late = || Instant::now() >= give_up_at;
    let mut place = "0".to_owned();
    loop {
        let answer = get(id, "", client)?;
        let plan: Plan = printable(&answer)?;
        if is_wanted(&plan) || is_late() {
            return Ok(answer);
        }
        match client.next_event(&path(id, "/events"), &mut place, interrupts, is_late) {
            Ok(StreamEnd::Interrupted) => return Ok(answer),
            Ok(StreamEnd::Over | StreamEnd::Enough) => {}
            Err(ClientError::Refused(refusal)) if !refusal.is_about_the_daemons_end() => {
                return Err((*refusal).into());
            }
            // The next read restarts a daemon that has gone away.
            Err(_) => {
                if client.pause(LOOK_AGAIN_AFTER, interrupts) == Paused::UntilInterrupted {
                    return Ok(answer);
                }
            }
        }
    }
}
