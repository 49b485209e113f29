//! The identity of a home on a log that others share: one daemon has it at a time.
//!
//! 1. Every life holds a lease of its own, from before it says that it has the identity until it is over.
//! 2. The head of the home says which life has it, and where. It changes by a commit on the version that was seen.
//! 3. Whoever takes it from a life at another place holds the lease of that life while it does. So that one is gone; and if it
//!    comes back, it finds its lease lost, looks at the head, and ends.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{
    BadName, Commit, CommitError, Head, Lease, LeaseError, Log, LogError, StoredHead, StreamId, Version,
    Write,
};
use kernel::{BootId, Cause, Clock, Deadline, HomeId, Scope};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::place::{Place, Relation};
use super::{KIND, Machine};
use crate::durable::error::LogStartError;
use crate::durable::home_id;
use crate::life::Life;

/// How long a daemon that went away is taken for alive.
const LEASE: Duration = Duration::from_secs(15);
/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(3);
/// How often the claim is made again because others wrote in between. Each of them had it for a moment, so there are not many.
const ATTEMPTS: u32 = 8;

/// What the head of a home says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    boot: String,
    place: Place,
}

/// What is to be done about a home that was last seen elsewhere.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::durable) enum Elsewhere {
    /// If it is a copy, refuse to start.
    Refuse,
    /// The user says that it has moved here.
    Adopt,
}

/// An identity that this life has.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    log: Log,
    clock: Arc<dyn Clock>,
    stream: StreamId,
    boot: String,
    lease: Lease,
}

/// Takes the identity of a home for this life.
pub(in crate::durable) async fn claim(
    log: &Log,
    clock: &Arc<dyn Clock>,
    (home_id, boot_id): (HomeId, BootId),
    machine: &Machine,
    elsewhere: Elsewhere,
) -> Result<Claimed, LogStartError> {
    let stream = stream(home_id).map_err(|bad| LogStartError::Write(bad.into()))?;
    let boot = boot_id.to_string();
    let lease = log.lease(&key(&boot), &boot, LEASE).await.map_err(not_leased)?;
    let claimed = Claimed {
        log: log.clone(),
        clock: Arc::clone(clock),
        stream,
        boot,
        lease,
    };
    let taken = claimed.take(home_id, machine, elsewhere).await;
    if taken.is_err() {
        claimed.give_back().await;
    }
    taken.map(|()| claimed)
}

impl Claimed {
    async fn take(
        &self,
        home_id: HomeId,
        machine: &Machine,
        elsewhere: Elsewhere,
    ) -> Result<(), LogStartError> {
        let record = Record {
            name: machine.name.clone(),
            boot: self.boot.clone(),
            place: machine.place.clone(),
        };
        let mut attempt = 1;
        loop {
            let seen = self.log.head(&self.stream).await.map_err(LogStartError::Read)?;
            // A record that cannot be read says nothing, and is written again.
            let before = seen.as_ref().and_then(|stored| record_of(&self.log, stored));
            let proof = match before {
                Some(before) => self.prove_gone(home_id, &record, &before, elsewhere).await?,
                None => None,
            };
            let write = Write {
                stream: self.stream.clone(),
                expected: seen.map_or(Version::NONE, |stored| stored.version),
                head: Some(head(&record)),
                events: Vec::new(),
            };
            let committed = self.log.commit(Commit::one(write)).await;
            if let Some(proof) = proof {
                release(&self.log, &proof).await;
            }
            match committed {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(LogStartError::Write(error)),
            }
        }
    }

    /// Makes sure that nobody else has the identity: the lease of who had it, if that is needed for a proof.
    async fn prove_gone(
        &self,
        home_id: HomeId,
        ours: &Record,
        before: &Record,
        elsewhere: Elsewhere,
    ) -> Result<Option<Lease>, LogStartError> {
        let is_still_there = |state: &std::path::Path| home_id::is_at(state, home_id);
        let relation = ours.place.relation(&before.place, is_still_there);
        let copied = || LogStartError::Copied {
            here: ours.place.path.clone(),
            there: before.place.path.clone(),
            machine: before.name.clone(),
        };
        match (relation, elsewhere) {
            (Relation::Same, _) => return Ok(None),
            (Relation::Copy, Elsewhere::Refuse) => return Err(copied()),
            (Relation::Moved, _) | (Relation::Copy, Elsewhere::Adopt) => {}
        }
        let key = key(&before.boot);
        let mut taken = self.log.lease(&key, &self.boot, LEASE).await;
        if let Err(LeaseError::Held { remaining, .. }) = &taken {
            // A daemon that was killed a moment ago has left its lease behind. One that lives renews it meanwhile.
            tracing::info!(
                machine = before.name,
                ?remaining,
                "waiting for an earlier daemon of this home"
            );
            Deadline::after(&self.clock, *remaining).passed().await;
            taken = self.log.lease(&key, &self.boot, LEASE).await;
        }
        match taken {
            Ok(lease) => Ok(Some(lease)),
            Err(LeaseError::Held { .. }) => Err(copied()),
            Err(error) => Err(not_leased(error)),
        }
    }

    /// Holds the identity until the daemon closes. Who has lost it to somebody else ends.
    pub(crate) async fn keep(mut self, life: Life, closing: Scope) {
        loop {
            tokio::select! {
                biased;
                _ = closing.wait() => return self.give_back().await,
                () = Deadline::after(&self.clock, RENEWAL).passed() => {}
            }
            match self.renew().await {
                Ok(None) => {}
                Ok(Some(other)) => {
                    let why = format!(
                        "the daemon of the same home on {} ({}) has taken over",
                        other.name,
                        other.place.path.display()
                    );
                    tracing::error!(why, "this home was copied, and somebody uses the copy");
                    life.stop(Cause::new("the shared log", why));
                    return;
                }
                Err(error) => tracing::warn!(%error, "the identity of this home could not be renewed"),
            }
        }
    }

    /// Renews the lease, or takes it again. Returns who has the identity, if that is somebody else.
    async fn renew(&mut self) -> Result<Option<Record>, LeaseError> {
        match self.log.renew(&self.lease, LEASE).await {
            Err(LeaseError::Lost { .. }) => {}
            renewed => return renewed.map(|()| None),
        }
        self.lease = self.log.lease(&key(&self.boot), &self.boot, LEASE).await?;
        let stored = self.log.head(&self.stream).await?;
        let record = stored.and_then(|stored| record_of(&self.log, &stored));
        Ok(record.filter(|record| record.boot != self.boot))
    }

    pub(in crate::durable) async fn give_back(&self) {
        release(&self.log, &self.lease).await;
    }
}

async fn release(log: &Log, lease: &Lease) {
    if let Err(error) = log.release(lease).await {
        tracing::debug!(%error, "a lease was not given back");
    }
}

pub(super) fn record_of(log: &Log, stored: &StoredHead) -> Option<Record> {
    log.readable(stored, serde_json::from_slice(&stored.head.body))
}

pub(super) fn stream(home_id: HomeId) -> Result<StreamId, BadName> {
    StreamId::new(&format!("{KIND}/{home_id}"))
}

fn head(record: &Record) -> Head {
    Head {
        kind: Arc::from(KIND),
        status: Arc::from("claimed"),
        body: json!(record).to_string().into_bytes().into(),
        blobs: Vec::new(),
    }
}

fn key(boot: &str) -> String {
    format!("machine/{boot}")
}

fn not_leased(error: LeaseError) -> LogStartError {
    match error {
        LeaseError::Log(error) => LogStartError::Read(error),
        LeaseError::BadName(bad) => LogStartError::Write(bad.into()),
        LeaseError::Held { .. } | LeaseError::Lost { .. } => {
            LogStartError::Read(LogError::Engine(Arc::new(error)))
        }
    }
}
