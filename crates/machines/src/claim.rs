//! The identity of a home on a shared log: one daemon has it at a time.
//!
//! 1. Every boot holds a lease of its own, from before it claims the identity until it ends.
//! 2. The head of the home names the boot that has it, and where. It changes by a commit on the version that was
//!    seen.
//! 3. A daemon that takes the identity from a boot at another location holds the lease of that boot while it
//!    does. So that boot is gone; if it comes back, it finds its lease lost, reads the head, and exits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{
    CommitError, ConflictRetries, Lease, LeaseError, Log, LogError, ReadError, StoredHead, StreamId,
};
use kernel::{Clock, Deadline, Scope};
use protocol::{BootId, HomeId};
use thiserror::Error;

use crate::location::LocationRelation;
use crate::record::{HomeEntity, MachineRecord};
use crate::{Identity, Machine};

/// How long a daemon that went away counts as alive.
const LEASE: Duration = Duration::from_secs(15);
/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// How many times the claim is retried because others wrote in between. Each of them had it for a moment, so
/// there are few.
const ATTEMPTS: usize = 8;

/// What to do about a home that was last seen elsewhere.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ElsewherePolicy {
    /// If it is a copy, refuse to start.
    Refuse,
    /// The user says that it has moved here.
    Adopt,
}

/// Why a daemon doesn't have the identity of its home.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// Another daemon has it.
    #[error(
        "this home ({here}) is a copy: the home with its id is on the machine {machine}{there}",
        here = .here.display(), there = in_brackets(.there.as_ref())
    )]
    Copied {
        /// This home.
        here: PathBuf,
        /// The other home, if its location is known.
        there: Option<PathBuf>,
        /// The name of its machine.
        machine: String,
    },
    /// The log couldn't be read.
    #[error(transparent)]
    Read(#[from] LogError),
    /// The log couldn't be written.
    #[error(transparent)]
    Write(#[from] CommitError),
}

fn in_brackets(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" ({})", path.display()))
        .unwrap_or_default()
}

/// The identity of a home, held by this boot.
#[derive(Clone, Debug)]
pub struct IdentityClaim {
    log: Log,
    clock: Arc<dyn Clock>,
    stream: StreamId,
    identity: Identity,
    lease: Lease,
}

/// Another boot has taken the identity.
#[derive(Debug, Error)]
#[error("the daemon of the same home on {machine}{there} has taken over", there = in_brackets(.there.as_ref()))]
pub struct IdentityTakenOver {
    machine: String,
    there: Option<PathBuf>,
}

/// Claims the identity of a home for this boot.
///
/// # Errors
/// Another daemon has it, or the log can't be used.
///
/// *Cancel safety*: if the future is dropped, the identity may be claimed, and is free again when its lease
/// expires.
pub async fn claim(
    log: &Log,
    clock: &Arc<dyn Clock>,
    identity: Identity,
    machine: &Machine,
    elsewhere: ElsewherePolicy,
) -> Result<IdentityClaim, ClaimError> {
    let stream = HomeEntity::stream_of(&identity.home).map_err(CommitError::from)?;
    let boot = identity.boot.to_string();
    let key = key(&boot);
    // The log may be far away, so both are requested at once. A write in between is noticed.
    let (lease, seen) = tokio::join!(log.lease(&key, &boot, LEASE), log.head(&stream));
    let lease = lease.map_err(without_lease)?;
    let claimed = IdentityClaim {
        log: log.clone(),
        clock: Arc::clone(clock),
        stream,
        identity,
        lease,
    };
    let taken = match seen {
        Ok(seen) => claimed.take(machine, seen, elsewhere).await,
        Err(error) => Err(error.into()),
    };
    if taken.is_err() {
        claimed.release().await;
    }
    taken.map(|()| claimed)
}

impl IdentityClaim {
    async fn take(
        &self,
        machine: &Machine,
        mut seen: Option<StoredHead>,
        elsewhere: ElsewherePolicy,
    ) -> Result<(), ClaimError> {
        let record = MachineRecord {
            name: machine.name.clone(),
            boot: self.identity.boot,
            place: Some(machine.place.clone()),
        };
        let mut retries = ConflictRetries::new(ATTEMPTS);
        loop {
            // A record that can't be read says nothing, and is replaced.
            let held = seen.as_ref().map(|stored| HomeEntity::of_head(&self.log, stored));
            let proof = match held {
                Some(Ok(held)) => self.ensure_gone(machine, &held.record, elsewhere).await?,
                _ => None,
            };
            let mut next = HomeEntity::replacing(self.identity.home, seen.as_ref(), record.clone());
            let saved = next.save(&self.log, &[]).await;
            if let Some(proof) = proof {
                release(&self.log, &proof).await;
            }
            if !retries.again(&saved) {
                return Ok(saved?);
            }
            seen = self.log.head(&self.stream).await?;
        }
    }

    /// Makes sure that nobody else has the identity. Returns the lease of the previous boot, if that was needed
    /// as proof.
    async fn ensure_gone(
        &self,
        ours: &Machine,
        before: &MachineRecord,
        elsewhere: ElsewherePolicy,
    ) -> Result<Option<Lease>, ClaimError> {
        let is_still_there = |state: &std::path::Path| (ours.is_at)(state, self.identity.home);
        let relation = ours.place.relation(before.place.as_ref(), is_still_there);
        let copied = || ClaimError::Copied {
            here: ours.place.path.clone(),
            there: before.path(),
            machine: before.name.clone(),
        };
        match (relation, elsewhere) {
            (LocationRelation::Same, _) => return Ok(None),
            (LocationRelation::Copy, ElsewherePolicy::Refuse) => return Err(copied()),
            (LocationRelation::Moved, _) | (LocationRelation::Copy, ElsewherePolicy::Adopt) => {}
        }
        let key = key(&before.boot.to_string());
        let mut taken = self.log.lease(&key, &self.identity.boot.to_string(), LEASE).await;
        if let Err(LeaseError::Held { remaining, .. }) = &taken {
            // A daemon that was killed a moment ago has left its lease behind. One that lives renews it in the
            // meantime.
            tracing::info!(
                machine = before.name,
                ?remaining,
                "waiting for an earlier daemon of this home"
            );
            Deadline::after(&self.clock, *remaining).passed().await;
            taken = self.log.lease(&key, &self.identity.boot.to_string(), LEASE).await;
        }
        match taken {
            Ok(lease) => Ok(Some(lease)),
            Err(LeaseError::Held { .. }) => Err(copied()),
            Err(error) => Err(without_lease(error).into()),
        }
    }

    /// Holds the identity until the daemon closes. Returns an error if somebody else has taken it.
    ///
    /// *Cancel safety*: if the future is dropped, the lease expires after a while.
    pub async fn keep(mut self, closing: Scope) -> Result<(), IdentityTakenOver> {
        loop {
            tokio::select! {
                biased;
                _ = closing.wait() => {
                    self.release().await;
                    return Ok(());
                }
                () = Deadline::after(&self.clock, RENEWAL).passed() => {}
            }
            match self.renew().await {
                Ok(None) => {}
                Ok(Some(other)) => {
                    return Err(IdentityTakenOver {
                        there: other.path(),
                        machine: other.name,
                    });
                }
                Err(error) => tracing::warn!(%error, "could not renew the identity of this home"),
            }
        }
    }

    /// Renews the lease, or takes it again. Returns who has the identity, if it is somebody else.
    async fn renew(&mut self) -> Result<Option<MachineRecord>, LeaseError> {
        match self.log.renew(&self.lease, LEASE).await {
            Err(LeaseError::Lost { .. }) => {}
            renewed => return renewed.map(|()| None),
        }
        let boot = self.identity.boot.to_string();
        self.lease = self.log.lease(&key(&boot), &boot, LEASE).await?;
        let stored = self.log.head(&self.stream).await?;
        let record = stored.and_then(|stored| HomeEntity::of_head(&self.log, &stored).ok());
        let record = record.map(|home| home.record);
        Ok(record.filter(|record| record.boot != self.identity.boot))
    }

    /// Releases the identity, so that the next daemon of the home needn't wait, wherever it is.
    pub async fn release(&self) {
        release(&self.log, &self.lease).await;
    }
}

async fn release(log: &Log, lease: &Lease) {
    if let Err(error) = log.release(lease).await {
        tracing::debug!(%error, "could not release a lease");
    }
}

/// Whether the daemon of a home is running.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It is, as far as is known.
    Running,
    /// Nobody holds the lease of its newest boot.
    Gone,
}

/// Checks whether the daemon of another home is running. If its lease is free, this takes it for a moment.
///
/// # Errors
/// The log can't be read.
///
/// *Cancel safety*: if the future is dropped, a dead daemon may count as alive for a while.
pub async fn presence(log: &Log, home: HomeId, looking: BootId) -> Result<Presence, LogError> {
    let found = match HomeEntity::read(log, home).await {
        Err(ReadError::Log(error)) => return Err(error),
        found => found.ok().flatten(),
    };
    let Some(HomeEntity { record, .. }) = found else {
        // Every daemon that others can know of has written its record before.
        return Ok(Presence::Gone);
    };
    let (key, looking) = (key(&record.boot.to_string()), looking.to_string());
    match log.lease(&key, &looking, LEASE).await {
        Ok(lease) => {
            release(log, &lease).await;
            Ok(Presence::Gone)
        }
        Err(LeaseError::Held { .. }) => Ok(Presence::Running),
        Err(error) => Err(without_lease(error)),
    }
}

fn key(boot: &str) -> String {
    format!("machine/{boot}")
}

fn without_lease(error: LeaseError) -> LogError {
    match error {
        LeaseError::Log(error) => error,
        error => LogError::Engine(Arc::new(error)),
    }
}
