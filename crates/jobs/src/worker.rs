//! This daemon as a worker among others that share the log. A worker lives as long as its lease.
//!
//! Without sharing, no lease is needed: the log has one owner, and what an earlier one left is dead. With
//! sharing, the worker holds one lease for all of its attempts. The lease is taken for the first claim and
//! renewed while anything runs, so an idle daemon writes nothing. A worker that lost its lease never gets it
//! back: the daemon continues as another worker, under another key, and the attempts of the old one no longer
//! belong to it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use eventlog::{Commit, Lease, LeaseError, Log};

use crate::{job::Worker, service::Sharing};

/// How many times a lease is renewed within its duration: often enough to survive an outage of more than half of
/// it.
const RENEWALS_PER_LEASE: u32 = 5;

/// The fraction of a lease that is reserved for stopping what runs under it.
const STOPPED_WITHIN: u32 = 5;

#[derive(Debug)]
pub(crate) struct WorkerIdentity {
    home: Arc<str>,
    boot: String,
    /// How many leases were taken. Each is another worker.
    incarnation: u64,
    held: LeaseState,
}

#[derive(Debug)]
enum LeaseState {
    /// No lease is needed.
    Alone,
    /// No lease is held.
    Nothing,
    Lease {
        lease: Lease,
        renewed_at: Instant,
    },
}

impl WorkerIdentity {
    pub(crate) fn new(sharing: Sharing, home: String, boot: String) -> Self {
        Self {
            home: home.into(),
            boot,
            incarnation: 0,
            held: match sharing {
                Sharing::Alone => LeaseState::Alone,
                Sharing::WithOthers => LeaseState::Nothing,
            },
        }
    }

    pub(crate) fn home(&self) -> &Arc<str> {
        &self.home
    }

    /// The worker as it is stored in the jobs that it claims. Without a lease it has claimed none.
    pub(crate) fn worker(&self) -> Worker {
        let (lease_key, lease_token) = match &self.held {
            LeaseState::Lease { lease, .. } => (Arc::clone(&lease.key), lease.token.get()),
            LeaseState::Alone | LeaseState::Nothing => (self.key().into(), 0),
        };
        Worker {
            lease_key,
            lease_token,
            home: Arc::clone(&self.home),
        }
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.held {
            LeaseState::Lease { lease, .. } => Some(lease),
            LeaseState::Alone | LeaseState::Nothing => None,
        }
    }

    /// Makes the commit fail unless this worker is alive.
    pub(crate) fn guard(&self, commit: Commit) -> Commit {
        match self.lease() {
            Some(lease) => commit.under(lease),
            None => commit,
        }
    }

    /// What to request from the log before a claim; `None` if the lease is valid for long enough.
    pub(crate) fn lease_request(&self, ttl: Duration, now: Instant) -> Option<LeaseRequest> {
        match &self.held {
            LeaseState::Alone => None,
            LeaseState::Nothing => Some(LeaseRequest::Take {
                key: self.key(),
                owner: self.home.to_string(),
            }),
            LeaseState::Lease { lease, renewed_at } => {
                let age = now.saturating_duration_since(*renewed_at);
                (age >= ttl / RENEWALS_PER_LEASE).then(|| LeaseRequest::Renew(lease.clone()))
            }
        }
    }

    /// Whether jobs that are claimed now are safe for a while.
    pub(crate) fn can_claim(&self, ttl: Duration, now: Instant) -> bool {
        match &self.held {
            LeaseState::Alone => true,
            LeaseState::Nothing => false,
            LeaseState::Lease { renewed_at, .. } => now.saturating_duration_since(*renewed_at) < ttl / 2,
        }
    }

    /// When to renew the lease; `None` if there is none.
    pub(crate) fn renew_at(&self, ttl: Duration) -> Option<Instant> {
        match &self.held {
            LeaseState::Lease { renewed_at, .. } => Some(*renewed_at + ttl / RENEWALS_PER_LEASE),
            LeaseState::Alone | LeaseState::Nothing => None,
        }
    }

    /// When this worker must treat its lease as expired, by its own clock: a little before others do, so that its
    /// attempts have ended by then. `None` if there is no lease.
    pub(crate) fn expires_at(&self, ttl: Duration) -> Option<Instant> {
        match &self.held {
            LeaseState::Lease { renewed_at, .. } => Some(*renewed_at + ttl - ttl / STOPPED_WITHIN),
            LeaseState::Alone | LeaseState::Nothing => None,
        }
    }

    /// Records that the lease was taken or renewed. `asked_at` is when it was requested, so that its end is
    /// never overestimated.
    pub(crate) fn granted(&mut self, lease: Lease, asked_at: Instant) {
        self.held = LeaseState::Lease {
            lease,
            renewed_at: asked_at,
        };
    }

    /// Handles the loss of the lease, and with it of this worker. The next worker has a different key.
    pub(crate) fn lost(&mut self) {
        if matches!(self.held, LeaseState::Lease { .. }) {
            self.incarnation += 1;
            self.held = LeaseState::Nothing;
        }
    }

    fn key(&self) -> String {
        format!("job-worker/{}.{}", self.boot, self.incarnation)
    }
}

#[derive(Debug)]
pub(crate) enum LeaseRequest {
    Take { key: String, owner: String },
    Renew(Lease),
}

impl LeaseRequest {
    pub(crate) async fn ask(self, log: Log, ttl: Duration) -> Result<Lease, LeaseError> {
        match self {
            Self::Take { key, owner } => log.lease(&key, &owner, ttl).await,
            Self::Renew(lease) => log.renew(&lease, ttl).await.map(|()| lease),
        }
    }
}
