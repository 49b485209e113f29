//! Who runs a turn, and how it is known that they are gone.
//!
//! A turn names its owner: a home, and one life of its daemon. It is stale when that life is over, and never because it is
//! old. A home has one daemon at a time, so an earlier life of our own home is over. Of another home we know it by its lease:
//! every life holds one of its own, from before its first turn until it is over, and whoever can take it has proved that
//! nobody holds it. It is that of the life and not of the home: the next life would have to wait until the lease of the one
//! before has expired, and in the moment after that others would take its turns for nobody's. That proof is only needed to
//! be sure enough to bury: if it were wrong, the commit that buries would still refuse the next one of the owner, since each
//! names the version that it saw.

use std::sync::Arc;
use std::time::{Duration, Instant};

use eventlog::{Lease, LeaseError};
use kernel::{CancellationToken, Cause, Deadline, Scope, Slot};
use protocol::{BootId, HomeId, TurnId};
use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::inner::SessionsInner;

/// How long a daemon that went away is taken for alive by others: short enough for people, long enough for a busy machine
/// and for a database that is restarted.
const LEASE: Duration = Duration::from_secs(15);
/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// How soon it is tried again when a lease could not be renewed or taken.
const AGAIN: Duration = Duration::from_millis(200);
/// How long before the end of a lease its turns are stopped, so that nothing of them is left when others may take over.
const STOPPED_WITHIN: Duration = Duration::from_secs(3);

/// Whether other daemons use the same log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sharing {
    /// Nobody else has it: what another life owned is nobody's.
    Alone,
    /// Others have it too.
    WithOthers,
}

/// One life of one daemon.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    /// The home. It has one daemon at a time.
    pub home: HomeId,
    /// Which life of it.
    pub boot: BootId,
}

pub(crate) async fn is_gone(
    shared: &SessionsInner,
    owner: Owner,
    turn: TurnId,
) -> Result<bool, SessionError> {
    if owner == shared.owner {
        // Ours, and we would know.
        return Ok(!shared.permits.has(turn));
    }
    is_life_over(shared, owner).await
}

/// Whether another life than this one is over.
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

/// Takes the lease of this life, before its first turn. Nobody else has a reason to hold it.
pub(crate) async fn begin(shared: &SessionsInner) -> Result<Lease, SessionError> {
    let owner = shared.owner;
    let taken = shared
        .log
        .lease(&key(owner), &owner.boot.to_string(), LEASE)
        .await;
    taken.map_err(lease_failed)
}

/// The lease of this life, for those who work under it.
#[derive(Debug)]
pub(crate) struct Tenure {
    /// Cancelled when the lease is over; then there is another one for the next.
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
    /// Cancelled when the lease that is held now is over.
    pub(crate) fn scope(&self) -> Scope {
        self.token.read().state.scope()
    }

    fn end(&self) {
        let seen = self.token.read();
        seen.state
            .cancel(Cause::new("the daemon", "it could not renew its lease"));
        // Only whoever renews the lease ends it.
        drop(self.token.transition(seen.generation, CancellationToken::new()));
    }
}

/// A lease that this life holds.
struct Held {
    lease: Lease,
    /// When it was asked for, so that its end is never overrated.
    asked_at: Instant,
}

/// Shows others that this daemon lives, until it does no more. When the lease could not be renewed for so long that others
/// may soon take the turns for nobody's, they are stopped.
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
                        tracing::debug!(%error, "the lease of this daemon cannot be taken yet");
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
    // So nobody needs to wait for the lease to expire.
    if let Some(held) = held {
        give_back(&shared, &held.lease).await;
    }
}

/// Renews a lease, and says when the next time is. One that cannot be renewed is held until it is over.
async fn renewed(shared: &SessionsInner, held: Held) -> (Option<Held>, Duration) {
    let asked_at = shared.clock.now();
    let over_at = held.asked_at + LEASE - STOPPED_WITHIN;
    let over = Deadline::after(&shared.clock, over_at.saturating_duration_since(asked_at));
    let answer = tokio::select! {
        biased;
        // First of all, in case this process was stopped meanwhile.
        () = over.passed() => None,
        answer = shared.log.renew(&held.lease, LEASE) => Some(answer),
    };
    match answer {
        Some(Ok(())) => (Some(Held { asked_at, ..held }), RENEWAL),
        Some(Err(LeaseError::Log(error))) => {
            tracing::warn!(%error, "the lease of this daemon could not be renewed");
            (Some(held), AGAIN)
        }
        Some(Err(error)) => {
            tracing::warn!(%error, "the lease of this daemon was lost");
            shared.tenure.end();
            (None, Duration::ZERO)
        }
        None => {
            tracing::warn!("the lease of this daemon could not be renewed in time; its turns are stopped");
            shared.tenure.end();
            (None, Duration::ZERO)
        }
    }
}

/// Waits until the daemon takes no more prompts and none of its turns is left. Before that it is alive to others: a turn
/// that still unwinds must not have a successor.
async fn has_closed(shared: &SessionsInner) {
    shared.open.scope().wait().await;
    let never = CancellationToken::new().scope();
    shared.permits.idle(Deadline::never(), &never).await;
}

async fn give_back(shared: &SessionsInner, lease: &Lease) {
    if let Err(error) = shared.log.release(lease).await {
        tracing::debug!(%error, "a lease was not given back");
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
