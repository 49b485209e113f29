//! Leases: the right to do something until a time, with a token that fences off those who lost it.

use std::{sync::Arc, time::Duration};

use crate::{
    error::LogError,
    names::{BadName, Version},
};

/// A lease as its holder has it. It is only a claim: the log decides whether it is still good.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lease {
    /// What it is on.
    pub key: Arc<str>,
    /// Who holds it.
    pub owner: Arc<str>,
    /// Grows with each new holder. A commit under a lease with an older token is refused.
    pub token: Version,
}

/// A lease was not given, or is no longer held.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else holds it.
    #[error("`{key}` is held by `{owner}` for another {} ms", remaining.as_millis())]
    Held {
        /// What it is on.
        key: Arc<str>,
        /// Who holds it.
        owner: Arc<str>,
        /// How long at most, unless they renew it.
        remaining: Duration,
    },
    /// It has expired or was taken by somebody else.
    #[error("the lease on `{key}` is no longer held")]
    Lost {
        /// What it was on.
        key: Arc<str>,
    },
    /// A key or owner that cannot be used.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}
