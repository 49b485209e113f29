//! The leases of this process.
//!
//! The file has one owner, so leases of an earlier process are void. Leases are kept in memory and use the
//! monotonic clock. Only their tokens come from the log's counter, so that none is ever reused.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    lease::{Lease, LeaseError},
    names::Version,
};

#[derive(Debug, Default)]
pub(super) struct Leases {
    held: BTreeMap<Arc<str>, Holder>,
}

#[derive(Debug)]
struct Holder {
    owner: Arc<str>,
    token: Version,
    expires: Instant,
}

impl Leases {
    /// Grants a lease that is free or expired, with the next token.
    pub(super) fn take(
        &mut self,
        key: Arc<str>,
        owner: Arc<str>,
        ttl: Duration,
        now: Instant,
        next_token: impl FnOnce() -> Version,
    ) -> Result<Lease, LeaseError> {
        if let Some(holder) = self.held.get(&key).filter(|holder| holder.expires > now) {
            let (owner, remaining) = (Arc::clone(&holder.owner), holder.expires - now);
            return Err(LeaseError::Held {
                key,
                owner,
                remaining,
            });
        }
        // Expired leases are removed with each new one, so only live ones are kept.
        self.held.retain(|_, holder| holder.expires > now);
        let token = next_token();
        let holder = Holder {
            owner: Arc::clone(&owner),
            token,
            expires: now + ttl,
        };
        self.held.insert(Arc::clone(&key), holder);
        Ok(Lease { key, owner, token })
    }

    pub(super) fn is_held(&self, lease: &Lease, now: Instant) -> bool {
        self.held
            .get(&lease.key)
            .is_some_and(|holder| holder.token == lease.token && holder.expires > now)
    }

    pub(super) fn renew(&mut self, lease: &Lease, ttl: Duration, now: Instant) -> Result<(), LeaseError> {
        if !self.is_held(lease, now) {
            return Err(LeaseError::Lost {
                key: Arc::clone(&lease.key),
            });
        }
        if let Some(holder) = self.held.get_mut(&lease.key) {
            holder.expires = now + ttl;
        }
        Ok(())
    }

    pub(super) fn release(&mut self, lease: &Lease, now: Instant) -> Result<(), LeaseError> {
        if !self.is_held(lease, now) {
            return Err(LeaseError::Lost {
                key: Arc::clone(&lease.key),
            });
        }
        self.held.remove(&lease.key);
        Ok(())
    }

    /// Releases a lease that nobody was told about, expired or not.
    pub(super) fn forget(&mut self, lease: &Lease) {
        if self
            .held
            .get(&lease.key)
            .is_some_and(|holder| holder.token == lease.token)
        {
            self.held.remove(&lease.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_that_have_expired_take_no_room() {
        let (mut leases, mut token) = (Leases::default(), 0);
        let begin = Instant::now();
        for number in 0..100 {
            let now = begin + Duration::from_secs(number);
            let key = format!("life {number}").into();
            let taken = leases.take(key, "one".into(), Duration::from_secs(10), now, || {
                token += 1;
                Version::from_u64(token)
            });
            taken.unwrap();
            assert!(leases.held.len() <= 10, "{}", leases.held.len());
        }
    }
}
