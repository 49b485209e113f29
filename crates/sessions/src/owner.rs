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
use std::time::Duration;

use eventlog::{Lease, LeaseError};
use kernel::{BootId, CancellationToken, Deadline, HomeId, TurnId};
use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::shared::Shared;
use crate::streams::as_text;

/// How long a daemon that went away is taken for alive by others: short enough for people, long enough for a busy machine.
const LEASE: Duration = Duration::from_secs(10);
/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// How soon a lease that was lost is taken again: until then, others may take our turns for nobody's.
const AGAIN: Duration = Duration::from_millis(200);

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
    #[serde(with = "as_text")]
    pub home: HomeId,
    /// Which life of it.
    #[serde(with = "as_text")]
    pub boot: BootId,
}

/// Whether whoever runs a turn is gone.
pub(crate) async fn is_gone(shared: &Shared, owner: Owner, turn: TurnId) -> Result<bool, SessionError> {
    if owner == shared.owner {
        // Ours, and we would know.
        return Ok(!shared.places.has(turn));
    }
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
pub(crate) async fn begin(shared: &Shared) -> Result<Lease, SessionError> {
    let owner = shared.owner;
    let taken = shared
        .log
        .lease(&key(owner), &owner.boot.to_string(), LEASE)
        .await;
    taken.map_err(lease_failed)
}

/// Shows others that this daemon lives, until it does no more.
pub(crate) async fn live(shared: Arc<Shared>, lease: Lease) {
    let mut held = Some(lease);
    loop {
        held = match held {
            Some(lease) => match shared.log.renew(&lease, LEASE).await {
                Ok(()) => Some(lease),
                Err(error) => {
                    tracing::warn!(%error, "the lease of this daemon was lost");
                    None
                }
            },
            None => match begin(&shared).await {
                Ok(lease) => Some(lease),
                Err(error) => {
                    tracing::debug!(%error, "the lease of this daemon cannot be taken yet");
                    None
                }
            },
        };
        let pause = if held.is_some() { RENEWAL } else { AGAIN };
        tokio::select! {
            () = has_closed(&shared) => break,
            () = Deadline::after(&shared.clock, pause).passed() => {}
        }
    }
    // So nobody needs to wait for the lease to expire.
    if let Some(lease) = held {
        give_back(&shared, &lease).await;
    }
}

/// Waits until the daemon takes no more prompts and none of its turns is left. Before that it is alive to others: a turn
/// that still unwinds must not have a successor.
async fn has_closed(shared: &Shared) {
    shared.open.scope().wait().await;
    let never = CancellationToken::new().scope();
    shared.places.idle(Deadline::never(), &never).await;
}

async fn give_back(shared: &Shared, lease: &Lease) {
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
