//! Leases: a right that expires, with a token that fences off holders that have lost it.

use std::{sync::Arc, time::Duration};

use crate::{
    error::LogError,
    names::{BadName, Version},
};

/// A lease as its holder knows it. The log decides whether it is still valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lease {
    /// The key that is leased.
    pub key: Arc<str>,
    /// The holder.
    pub owner: Arc<str>,
    /// Grows with each new holder. A commit under a lease with an older token is refused.
    pub token: Version,
}

/// A lease wasn't granted, or is no longer held.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else holds it.
    #[error("`{key}` is held by `{owner}` for another {} ms", remaining.as_millis())]
    Held {
        /// The key that is leased.
        key: Arc<str>,
        /// The holder.
        owner: Arc<str>,
        /// How long they hold it at most, unless they renew it.
        remaining: Duration,
    },
    /// It has expired or was taken by somebody else.
    #[error("the lease on `{key}` is no longer held")]
    Lost {
        /// The key that is leased.
        key: Arc<str>,
    },
    /// An invalid key or owner.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}
