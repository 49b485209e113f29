//! Who this daemon is to the others that share the log: a worker that lives as long as its lease.
//!
//! Alone there is nobody to prove it to: the log has one owner, and whatever an earlier one left is dead. With others
//! the worker holds one lease for all of its attempts. It is taken for the first claim and renewed while anything
//! runs, so an idle daemon writes nothing. A worker that lost its lease never gets it back: it goes on as another
//! worker, under another key, and the attempts of the old one are no longer its own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use eventlog::{Commit, Lease, LeaseError, Log};

use crate::{job::Worker, service::Sharing};

/// How often a lease is renewed within its time: often enough that an outage may last for more than half of it.
const RENEWALS_PER_LEASE: u32 = 5;

/// The part of a lease that is left for the end of what runs under it.
const STOPPED_WITHIN: u32 = 5;

/// This daemon as a worker.
#[derive(Debug)]
pub(crate) struct Identity {
    home: Arc<str>,
    boot: String,
    /// How often a lease was taken. Each time it is another worker.
    incarnation: u64,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// No lease is needed.
    Alone,
    /// None is held.
    Nothing,
    Lease {
        lease: Lease,
        renewed_at: Instant,
    },
}

impl Identity {
    pub(crate) fn new(sharing: Sharing, home: String, boot: String) -> Self {
        Self {
            home: home.into(),
            boot,
            incarnation: 0,
            held: match sharing {
                Sharing::Alone => Held::Alone,
                Sharing::WithOthers => Held::Nothing,
            },
        }
    }

    pub(crate) fn home(&self) -> &Arc<str> {
        &self.home
    }

    /// The worker as it stands in the jobs that it claims. Without a lease it has claimed none.
    pub(crate) fn worker(&self) -> Worker {
        let (lease_key, lease_token) = match &self.held {
            Held::Lease { lease, .. } => (Arc::clone(&lease.key), lease.token.get()),
            Held::Alone | Held::Nothing => (self.key().into(), 0),
        };
        Worker {
            lease_key,
            lease_token,
            home: Arc::clone(&self.home),
        }
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.held {
            Held::Lease { lease, .. } => Some(lease),
            Held::Alone | Held::Nothing => None,
        }
    }

    /// The commit, made only while this worker lives.
    pub(crate) fn guard(&self, commit: Commit) -> Commit {
        match self.lease() {
            Some(lease) => commit.under(lease),
            None => commit,
        }
    }

    /// What has to be asked of the log before anything is claimed; `None` if the lease is good for long enough.
    pub(crate) fn wanted(&self, ttl: Duration, now: Instant) -> Option<Wanted> {
        match &self.held {
            Held::Alone => None,
            Held::Nothing => Some(Wanted::Take {
                key: self.key(),
                owner: self.home.to_string(),
            }),
            Held::Lease { lease, renewed_at } => {
                let age = now.saturating_duration_since(*renewed_at);
                (age >= ttl / RENEWALS_PER_LEASE).then(|| Wanted::Renew(lease.clone()))
            }
        }
    }

    /// Whether what is claimed now is safe for a while.
    pub(crate) fn can_claim(&self, ttl: Duration, now: Instant) -> bool {
        match &self.held {
            Held::Alone => true,
            Held::Nothing => false,
            Held::Lease { renewed_at, .. } => now.saturating_duration_since(*renewed_at) < ttl / 2,
        }
    }

    /// When the lease has to be renewed; `None` if there is none.
    pub(crate) fn renew_at(&self, ttl: Duration) -> Option<Instant> {
        match &self.held {
            Held::Lease { renewed_at, .. } => Some(*renewed_at + ttl / RENEWALS_PER_LEASE),
            Held::Alone | Held::Nothing => None,
        }
    }

    /// When this worker must take its lease for over, by its own clock: a little before others may, so that what it runs has
    /// ended by then. `None` if there is none.
    pub(crate) fn over_at(&self, ttl: Duration) -> Option<Instant> {
        match &self.held {
            Held::Lease { renewed_at, .. } => Some(*renewed_at + ttl - ttl / STOPPED_WITHIN),
            Held::Alone | Held::Nothing => None,
        }
    }

    /// The lease was taken or renewed; `asked_at` is when that was asked for, so that its end is never overrated.
    pub(crate) fn granted(&mut self, lease: Lease, asked_at: Instant) {
        self.held = Held::Lease {
            lease,
            renewed_at: asked_at,
        };
    }

    /// The lease is gone, and with it this worker. The next one has another key.
    pub(crate) fn lost(&mut self) {
        if matches!(self.held, Held::Lease { .. }) {
            self.incarnation += 1;
            self.held = Held::Nothing;
        }
    }

    fn key(&self) -> String {
        format!("job-worker/{}.{}", self.boot, self.incarnation)
    }
}

/// What has to be asked of the log.
#[derive(Debug)]
pub(crate) enum Wanted {
    Take { key: String, owner: String },
    Renew(Lease),
}

impl Wanted {
    /// Asks for it.
    pub(crate) async fn ask(self, log: Log, ttl: Duration) -> Result<Lease, LeaseError> {
        match self {
            Self::Take { key, owner } => log.lease(&key, &owner, ttl).await,
            Self::Renew(lease) => log.renew(&lease, ttl).await.map(|()| lease),
        }
    }
}
