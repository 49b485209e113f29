//! Leases, in the database and by the database's clock.
//!
//! A token is drawn while the row of its key is locked, and a row is only taken if it is expired. So tokens grow
//! with each new holder of a key, whichever daemon it is.

use std::{sync::Arc, time::Duration};

use super::{
    failure::{Failure, outcome},
    pool::Pooled,
    read::{number, unsigned},
};
use crate::{
    error::LogError,
    lease::{Lease, LeaseError},
    names::Version,
};

/// A lease may be released between two of our statements. After this many attempts, it counts as busy.
const ATTEMPTS: u32 = 8;
/// The longest time that is sent to the database, so that no sum overflows there: 100 years.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A duration as the statements take it.
pub(super) fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.min(LONGEST).as_micros()).unwrap_or(i64::MAX)
}

pub(super) async fn take(
    mut connection: Pooled,
    key: &Arc<str>,
    owner: &Arc<str>,
    ttl: Duration,
) -> Result<Lease, Failure<LeaseError>> {
    for _ in 0..ATTEMPTS {
        match try_take(&mut connection, key, owner, ttl).await? {
            Attempt::Taken(lease) => return Ok(lease),
            Attempt::Held(held) => return Err(Failure::Refused(held)),
            Attempt::GivenBackMeanwhile => {}
        }
    }
    Err(Failure::Log(LogError::Engine(Arc::new(Busy))))
}

#[derive(Debug, thiserror::Error)]
#[error("others kept taking and releasing the lease")]
struct Busy;

enum Attempt {
    Taken(Lease),
    Held(LeaseError),
    GivenBackMeanwhile,
}

async fn try_take(
    connection: &mut Pooled,
    key: &Arc<str>,
    owner: &Arc<str>,
    ttl: Duration,
) -> Result<Attempt, Failure<LeaseError>> {
    connection.enter_transaction();
    let statements = &connection.statements;
    let (key_text, owner_text, ttl) = (&**key, &**owner, microseconds(ttl));
    let (begun, offered, taken, holder, ended) = tokio::join!(
        biased;
        connection.batch("BEGIN"),
        connection.execute(&statements.offer_lease, [&key_text]),
        connection.query_opt(&statements.take_lease, [&key_text, &owner_text, &ttl]),
        connection.query_opt(&statements.holder, [&key_text]),
        connection.batch("COMMIT"),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    let (taken, no_taken) = split(taken);
    let (holder, no_holder) = split(holder);
    outcome([begun, offered.map(drop), no_taken, no_holder], ended)?;
    if let Some(row) = taken.flatten() {
        let lease = Lease {
            key: Arc::clone(key),
            owner: Arc::clone(owner),
            token: Version::from_u64(unsigned(row.try_get(0)?)?),
        };
        return Ok(Attempt::Taken(lease));
    }
    let Some(row) = holder.flatten() else {
        return Ok(Attempt::GivenBackMeanwhile);
    };
    Ok(Attempt::Held(LeaseError::Held {
        key: Arc::clone(key),
        owner: row.try_get::<_, &str>(0)?.into(),
        remaining: Duration::from_micros(u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0)),
    }))
}

/// A value, and whether there is one.
fn split<T, E>(result: Result<T, E>) -> (Option<T>, Result<(), E>) {
    match result {
        Ok(value) => (Some(value), Ok(())),
        Err(error) => (None, Err(error)),
    }
}

/// Renewing twice has the same effect as once, so it is retried if the connection is lost.
pub(super) async fn renew(
    connection: Pooled,
    lease: &Lease,
    ttl: Duration,
) -> Result<(), Failure<LeaseError>> {
    let (key, token, ttl) = (&*lease.key, number(lease.token.get()), microseconds(ttl));
    let renewed = connection
        .execute(&connection.statements.renew_lease, [&key, &token, &ttl])
        .await?;
    held(renewed, lease)
}

pub(super) async fn release(connection: Pooled, lease: &Lease) -> Result<(), Failure<LeaseError>> {
    let (key, token) = (&*lease.key, number(lease.token.get()));
    let released = connection
        .execute(&connection.statements.release_lease, [&key, &token])
        .await
        .map_err(Failure::in_write)?;
    held(released, lease)
}

fn held(rows: u64, lease: &Lease) -> Result<(), Failure<LeaseError>> {
    if rows == 1 {
        return Ok(());
    }
    Err(Failure::Refused(LeaseError::Lost {
        key: Arc::clone(&lease.key),
    }))
}
