//! The identity of a home on a log that others share: one daemon has it at a time.
//!
//! 1. Every life holds a lease of its own, from before it says that it has the identity until it is over.
//! 2. The head of the home says which life has it, and where. It changes by a commit on the version that was seen.
//! 3. Whoever takes it from a life at another place holds the lease of that life while it does. So that one is gone; and if it
//!    comes back, it finds its lease lost, looks at the head, and ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{Commit, CommitError, Lease, LeaseError, Log, LogError, StoredHead, StreamId, Version, Write};
use kernel::{Clock, Deadline, Scope};
use protocol::{BootId, HomeId};
use thiserror::Error;

use crate::place::Relation;
use crate::record::{MachineRecord, head, record_of, stream};
use crate::{Identity, Machine};

/// How long a daemon that went away is taken for alive.
const LEASE: Duration = Duration::from_secs(15);
/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// How often the claim is made again because others wrote in between. Each of them had it for a moment, so there are not many.
const ATTEMPTS: u32 = 8;

/// What is to be done about a home that was last seen elsewhere.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Elsewhere {
    /// If it is a copy, refuse to start.
    Refuse,
    /// The user says that it has moved here.
    Adopt,
}

/// Why a life does not have the identity of its home.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// Another daemon has it.
    #[error(
        "this home ({here}) is a copy: the home with its id is on the machine {machine}{there}",
        here = .here.display(), there = in_brackets(.there.as_ref())
    )]
    Copied {
        /// This one.
        here: PathBuf,
        /// The other one, if it said so.
        there: Option<PathBuf>,
        /// What its machine is called.
        machine: String,
    },
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] LogError),
    /// The log could not be written.
    #[error(transparent)]
    Write(#[from] CommitError),
}

fn in_brackets(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" ({})", path.display()))
        .unwrap_or_default()
}

/// An identity that this life has.
#[derive(Clone, Debug)]
pub struct Claimed {
    log: Log,
    clock: Arc<dyn Clock>,
    stream: StreamId,
    identity: Identity,
    lease: Lease,
}

/// Another life has taken the identity.
#[derive(Debug, Error)]
#[error("the daemon of the same home on {machine}{there} has taken over", there = in_brackets(.there.as_ref()))]
pub struct TakenOver {
    machine: String,
    there: Option<PathBuf>,
}

/// Takes the identity of a home for this life.
///
/// # Errors
/// Another daemon has it, or the log cannot be used.
///
/// *Cancel safety*: dropped half-way, it may be taken, and is free again when its lease is over.
pub async fn claim(
    log: &Log,
    clock: &Arc<dyn Clock>,
    identity: Identity,
    machine: &Machine,
    elsewhere: Elsewhere,
) -> Result<Claimed, ClaimError> {
    let stream = stream(identity.home).map_err(CommitError::from)?;
    let boot = identity.boot.to_string();
    let key = key(&boot);
    // The way to the log may be long. Whoever writes in between is noticed.
    let (lease, seen) = tokio::join!(log.lease(&key, &boot, LEASE), log.head(&stream));
    let lease = lease.map_err(without_lease)?;
    let claimed = Claimed {
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
        claimed.give_back().await;
    }
    taken.map(|()| claimed)
}

impl Claimed {
    async fn take(
        &self,
        machine: &Machine,
        mut seen: Option<StoredHead>,
        elsewhere: Elsewhere,
    ) -> Result<(), ClaimError> {
        let record = MachineRecord {
            name: machine.name.clone(),
            boot: self.identity.boot,
            place: Some(machine.place.clone()),
        };
        let mut attempt = 1;
        loop {
            // A record that cannot be read says nothing, and is written again.
            let before = seen.as_ref().and_then(|stored| record_of(&self.log, stored));
            let proof = match before {
                Some(before) => self.prove_gone(machine, &before, elsewhere).await?,
                None => None,
            };
            let write = Write {
                stream: self.stream.clone(),
                expected: seen.map_or(Version::NONE, |stored| stored.version),
                head: Some(head(&record)?),
                events: Vec::new(),
            };
            let committed = self.log.commit(Commit::one(write)).await;
            if let Some(proof) = proof {
                release(&self.log, &proof).await;
            }
            match committed {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict { actual, .. }) if attempt < ATTEMPTS => {
                    attempt += 1;
                    seen = actual.map(|actual| *actual);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes sure that nobody else has the identity: the lease of who had it, if that is needed for a proof.
    async fn prove_gone(
        &self,
        ours: &Machine,
        before: &MachineRecord,
        elsewhere: Elsewhere,
    ) -> Result<Option<Lease>, ClaimError> {
        let is_still_there = |state: &std::path::Path| (ours.is_at)(state, self.identity.home);
        let relation = ours.place.relation(before.place.as_ref(), is_still_there);
        let copied = || ClaimError::Copied {
            here: ours.place.path.clone(),
            there: before.path(),
            machine: before.name.clone(),
        };
        match (relation, elsewhere) {
            (Relation::Same, _) => return Ok(None),
            (Relation::Copy, Elsewhere::Refuse) => return Err(copied()),
            (Relation::Moved, _) | (Relation::Copy, Elsewhere::Adopt) => {}
        }
        let key = key(&before.boot.to_string());
        let mut taken = self.log.lease(&key, &self.identity.boot.to_string(), LEASE).await;
        if let Err(LeaseError::Held { remaining, .. }) = &taken {
            // A daemon that was killed a moment ago has left its lease behind. One that lives renews it meanwhile.
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

    /// Holds the identity until the daemon closes. Returns who has taken it, if somebody else has.
    ///
    /// *Cancel safety*: dropped, the lease is over after a while.
    pub async fn keep(mut self, closing: Scope) -> Result<(), TakenOver> {
        loop {
            tokio::select! {
                biased;
                _ = closing.wait() => {
                    self.give_back().await;
                    return Ok(());
                }
                () = Deadline::after(&self.clock, RENEWAL).passed() => {}
            }
            match self.renew().await {
                Ok(None) => {}
                Ok(Some(other)) => {
                    return Err(TakenOver {
                        there: other.path(),
                        machine: other.name,
                    });
                }
                Err(error) => tracing::warn!(%error, "the identity of this home could not be renewed"),
            }
        }
    }

    /// Renews the lease, or takes it again. Returns who has the identity, if that is somebody else.
    async fn renew(&mut self) -> Result<Option<MachineRecord>, LeaseError> {
        match self.log.renew(&self.lease, LEASE).await {
            Err(LeaseError::Lost { .. }) => {}
            renewed => return renewed.map(|()| None),
        }
        let boot = self.identity.boot.to_string();
        self.lease = self.log.lease(&key(&boot), &boot, LEASE).await?;
        let stored = self.log.head(&self.stream).await?;
        let record = stored.and_then(|stored| record_of(&self.log, &stored));
        Ok(record.filter(|record| record.boot != self.identity.boot))
    }

    /// Gives the identity back: the next daemon of the home need not wait, wherever it is.
    pub async fn give_back(&self) {
        release(&self.log, &self.lease).await;
    }
}

async fn release(log: &Log, lease: &Lease) {
    if let Err(error) = log.release(lease).await {
        tracing::debug!(%error, "a lease was not given back");
    }
}

/// Whether the daemon of a home is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// It is, as far as is known.
    Running,
    /// Nobody holds the lease of its newest life.
    Gone,
}

/// Looks whether the daemon of another home is there. Whoever looks holds its lease for a moment, if nobody else does.
///
/// # Errors
/// The log cannot be read.
///
/// *Cancel safety*: dropped half-way, a daemon that is gone may be taken for alive for a while.
pub async fn presence(log: &Log, home: HomeId, looking: BootId) -> Result<Presence, LogError> {
    let stream = stream(home).map_err(|bad| LogError::Engine(Arc::new(bad)))?;
    let stored = log.head(&stream).await?;
    let Some(record) = stored.and_then(|stored| record_of(log, &stored)) else {
        // Every daemon that others can know of has written itself down before.
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
