//! Who runs a turn, and how others know that the owner is gone.
//!
//! A turn names its owner: a home, and one boot of its daemon. It is stale when that boot is over, never because it is
//! old. A home has one daemon at a time, so an earlier boot of our own home is over. For another home, its lease
//! decides: every boot holds its own lease, from before its first turn until its end, and a daemon that can take the
//! lease has proved that no other daemon holds it. The lease belongs to the boot, not to the home. Otherwise the next
//! boot would have to wait until the lease of the previous one expires, and right after that, others would consider its
//! turns abandoned.
//!
//! Even if that proof were wrong, nothing would be lost: each commit names the version that it saw, so after another
//! daemon has ended the turn, the next commit of the owner is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::{Lease, LeaseError};
use kernel::{CancellationToken, Cause, Deadline, Scope, Slot};
use protocol::{BootId, HomeId, TurnId};
use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::inner::SessionsInner;

/// How long a dead daemon counts as alive: short enough for users, long enough for a busy machine and for a restart of
/// the database.
const LEASE: Duration = Duration::from_secs(15);
/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// The pause before the next attempt to renew or take a lease.
const AGAIN: Duration = Duration::from_millis(200);
/// How long before the end of the lease the turns are stopped, so that they have ended by the time others may take
/// over.
const STOPPED_WITHIN: Duration = Duration::from_secs(3);

/// Whether other daemons use the same log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sharing {
    /// No other daemon: every turn of another boot is abandoned.
    Alone,
    /// Others use it too.
    WithOthers,
}

/// One boot of a daemon.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// The home. It has one daemon at a time.
    pub home: HomeId,
    /// The boot.
    pub boot: BootId,
}

pub(crate) async fn is_gone(
    shared: &SessionsInner,
    owner: Owner,
    turn: TurnId,
) -> Result<bool, SessionError> {
    if owner == shared.owner {
        // The turn is ours, so we know.
        return Ok(!shared.permits.has(turn));
    }
    is_life_over(shared, owner).await
}

/// Whether another boot is over.
pub(crate) async fn is_life_over(shared: &SessionsInner, owner: Owner) -> Result<bool, SessionError> {
    if owner.home == shared.owner.home || shared.sharing == Sharing::Alone {
        return Ok(true);
    }
    let taken = shared
        .log
        .lease(&key(owner), &shared.owner.boot.to_string(), LEASE)
        .await;
    match taken {
        Ok(lease) => {
            give_back(shared, &lease).await;
            Ok(true)
        }
        Err(LeaseError::Held { .. }) => Ok(false),
        Err(error) => Err(lease_failed(error)),
    }
}

/// Takes the lease of this boot, before its first turn. No one else has a reason to hold it.
pub(crate) async fn begin(shared: &SessionsInner) -> Result<Lease, SessionError> {
    let owner = shared.owner;
    let taken = shared
        .log
        .lease(&key(owner), &owner.boot.to_string(), LEASE)
        .await;
    taken.map_err(lease_failed)
}

/// The lease of this boot, for work that depends on it.
#[derive(Debug)]
pub(crate) struct Tenure {
    /// Cancelled when the lease is lost, and then replaced for the next lease.
    token: Slot<CancellationToken>,
}

impl Default for Tenure {
    fn default() -> Self {
        Self {
            token: Slot::new(CancellationToken::new()),
        }
    }
}

impl Tenure {
    /// Cancelled when the current lease is lost.
    pub(crate) fn scope(&self) -> Scope {
        self.token.read().state.scope()
    }

    fn end(&self) {
        let seen = self.token.read();
        seen.state
            .cancel(Cause::new("the daemon", "it could not renew its lease"));
        // Only the task that renews the lease ends it.
        drop(self.token.transition(seen.generation, CancellationToken::new()));
    }
}

struct Held {
    lease: Lease,
    /// When it was requested, so that its end is never estimated too late.
    asked_at: Instant,
}

/// Holds the lease until the daemon has closed. If it couldn't be renewed for so long that others may soon consider the
/// turns abandoned, the turns are stopped.
pub(crate) async fn live(shared: Arc<SessionsInner>, lease: Lease) {
    let mut held = Some(Held {
        lease,
        asked_at: shared.clock.now(),
    });
    loop {
        let (now_held, pause) = match held.take() {
            Some(held) => renewed(&shared, held).await,
            None => {
                let asked_at = shared.clock.now();
                match begin(&shared).await {
                    Ok(lease) => (Some(Held { lease, asked_at }), RENEWAL),
                    Err(error) => {
                        tracing::debug!(%error, "could not take the lease of this daemon; retrying");
                        (None, AGAIN)
                    }
                }
            }
        };
        held = now_held;
        tokio::select! {
            () = has_closed(&shared) => break,
            () = Deadline::after(&shared.clock, pause).passed() => {}
        }
    }
    // Release it, so that others needn't wait for it to expire.
    if let Some(held) = held {
        give_back(&shared, &held.lease).await;
    }
}

/// Renews the lease, and returns the pause before the next renewal.
async fn renewed(shared: &SessionsInner, held: Held) -> (Option<Held>, Duration) {
    let asked_at = shared.clock.now();
    let over_at = held.asked_at + LEASE - STOPPED_WITHIN;
    let over = Deadline::after(&shared.clock, over_at.saturating_duration_since(asked_at));
    let answer = tokio::select! {
        biased;
        // Checked first, in case this process was suspended in the meantime.
        () = over.passed() => None,
        answer = shared.log.renew(&held.lease, LEASE) => Some(answer),
    };
    match answer {
        Some(Ok(())) => (Some(Held { asked_at, ..held }), RENEWAL),
        Some(Err(LeaseError::Log(error))) => {
            tracing::warn!(%error, "could not renew the lease of this daemon");
            (Some(held), AGAIN)
        }
        Some(Err(error)) => {
            tracing::warn!(%error, "the lease of this daemon was lost");
            shared.tenure.end();
            (None, Duration::ZERO)
        }
        None => {
            tracing::warn!("could not renew the lease of this daemon in time; stopping its turns");
            shared.tenure.end();
            (None, Duration::ZERO)
        }
    }
}

/// Waits until the daemon accepts no more prompts and all its turns have ended. Until then it counts as alive, so that no
/// other daemon starts a turn while one is still ending here.
async fn has_closed(shared: &SessionsInner) {
    shared.open.scope().wait().await;
    let never = CancellationToken::new().scope();
    shared.permits.idle(Deadline::never(), &never).await;
}

async fn give_back(shared: &SessionsInner, lease: &Lease) {
    if let Err(error) = shared.log.release(lease).await {
        tracing::debug!(%error, "could not release a lease");
    }
}

fn key(owner: Owner) -> String {
    format!("sessions/{}/{}", owner.home, owner.boot)
}

fn lease_failed(error: LeaseError) -> SessionError {
    match error {
        LeaseError::Log(error) => SessionError::Log(error),
        LeaseError::BadName(bad) => bad.into(),
        LeaseError::Held { .. } | LeaseError::Lost { .. } => {
            SessionError::Log(eventlog::LogError::Engine(Arc::new(error)))
        }
    }
}
