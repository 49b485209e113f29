//! Waits until a plan is as it is wanted.
//!
//! The state decides, never a moment: whoever wakes looks at the plan again. Moments have places, so that one that comes
//! between the look and the wait is not missed.

use std::time::{Duration, Instant};

use protocol::Plan;
use serde_json::Value;

use super::get;
use super::moments::{Hear, Told, read};
use crate::client::{Client, ClientError, Downloaded, Interrupts, Paused};
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::Failure;

/// How long it may take until what a command changed is recorded. A large sandbox without an overlay is read file by
/// file.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How long to wait before looking for the daemon again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// The plan once nothing of a job is left in it, or as it is when that takes too long or somebody presses Ctrl-C.
pub(in crate::commands) fn until_left(
    id: &str,
    job: &str,
    interrupts: &mut Interrupts,
    (context, client): (&Context, &Client),
) -> Result<Value, Failure> {
    let has_left = |plan: &Plan| plan.running.iter().all(|command| command.job != job);
    until(id, has_left, interrupts, (context, client))
}

/// The plan once it is as wanted, or as it is when that takes too long or somebody presses Ctrl-C.
pub(super) fn until(
    id: &str,
    is_wanted: impl Fn(&Plan) -> bool,
    interrupts: &mut Interrupts,
    (context, client): (&Context, &Client),
) -> Result<Value, Failure> {
    let give_up_at = Instant::now() + PATIENCE;
    let mut place = 0;
    loop {
        let answer = get(id, "", context, client)?;
        let plan: Plan = printable(&answer)?;
        if is_wanted(&plan) || Instant::now() >= give_up_at {
            return Ok(answer);
        }
        let ended = read(client, id, &mut place, interrupts, |told| {
            let is_late = Instant::now() >= give_up_at;
            Ok(match told {
                Told::Other if !is_late => Hear::More,
                _ => Hear::Enough,
            })
        });
        match ended {
            Ok(Downloaded::UntilInterrupted) => return Ok(answer),
            Ok(Downloaded::Whole) => {}
            Err(ClientError::Refused(refusal)) if !refusal.is_about_the_daemons_end() => {
                return Err((*refusal).into());
            }
            // A daemon that has gone is started again by the next look.
            Err(_) => {
                if client.pause(LOOK_AGAIN_AFTER, interrupts) == Paused::UntilInterrupted {
                    return Ok(answer);
                }
            }
        }
    }
}
