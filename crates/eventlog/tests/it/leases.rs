//! Leases, and the commits that are made under them.

use std::time::Duration;

use eventlog::{Commit, CommitError, LeaseError, Version};

use crate::{
    engines::{Engine, on_every_engine},
    support::write,
};

const TTL: Duration = Duration::from_secs(2);

on_every_engine!(
    a_lease_is_held_by_one,
    a_commit_under_a_lease_needs_it,
    a_commit_under_an_expired_lease_is_refused_though_nobody_took_it,
    a_renewed_lease_lives_on,
    a_lease_that_is_lost_cannot_be_renewed_or_released,
    of_many_who_want_a_lease_one_gets_it,
);

async fn a_lease_is_held_by_one(engine: Engine) {
    let lease = engine.log.lease("workspace", "one", TTL).await.unwrap();
    let error = engine.other.lease("workspace", "two", TTL).await.unwrap_err();
    let LeaseError::Held { owner, remaining, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(&*owner, "one");
    assert!(remaining <= TTL && remaining > TTL / 2, "{remaining:?}");
    engine.log.lease("elsewhere", "two", TTL).await.unwrap();
    engine.log.release(&lease).await.unwrap();
    let next = engine.other.lease("workspace", "two", TTL).await.unwrap();
    assert!(next.token > lease.token);
}

async fn a_commit_under_a_lease_needs_it(engine: Engine) {
    let lease = engine.log.lease("key", "one", TTL).await.unwrap();
    let made = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &["a"])).under(&lease))
        .await
        .unwrap()[0];
    engine.time.pass(TTL);
    let taken = engine.other.lease("key", "two", TTL).await.unwrap();
    let late = Commit::one(write("s", made.version, "late", &["late"])).under(&lease);
    let error = engine.log.commit(late).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Fenced { key } if &**key == "key"),
        "{error}"
    );
    engine
        .other
        .commit(Commit::one(write("s", made.version, "y", &["b"])).under(&taken))
        .await
        .unwrap();
}

async fn a_commit_under_an_expired_lease_is_refused_though_nobody_took_it(engine: Engine) {
    let lease = engine.log.lease("key", "one", TTL).await.unwrap();
    engine.time.pass(TTL);
    let error = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &[])).under(&lease))
        .await
        .unwrap_err();
    assert!(matches!(error, CommitError::Fenced { .. }), "{error}");
}

async fn a_renewed_lease_lives_on(engine: Engine) {
    let lease = engine.log.lease("key", "one", TTL).await.unwrap();
    for _ in 0..3 {
        engine.time.pass(TTL / 2);
        engine.other.renew(&lease, TTL).await.unwrap();
    }
    engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &[])).under(&lease))
        .await
        .unwrap();
}

async fn a_lease_that_is_lost_cannot_be_renewed_or_released(engine: Engine) {
    let lost = engine.log.lease("key", "one", TTL).await.unwrap();
    engine.time.pass(TTL);
    assert!(matches!(
        engine.log.renew(&lost, TTL).await,
        Err(LeaseError::Lost { .. })
    ));
    let taken = engine.log.lease("key", "two", TTL).await.unwrap();
    assert!(matches!(
        engine.log.renew(&lost, TTL).await,
        Err(LeaseError::Lost { .. })
    ));
    assert!(matches!(
        engine.log.release(&lost).await,
        Err(LeaseError::Lost { .. })
    ));
    engine.log.renew(&taken, TTL).await.unwrap();
}

async fn of_many_who_want_a_lease_one_gets_it(engine: Engine) {
    let asking: Vec<_> = (0..32)
        .map(|index: usize| {
            let log = if index.is_multiple_of(2) {
                engine.log.clone()
            } else {
                engine.other.clone()
            };
            tokio::spawn(async move { log.lease("key", &index.to_string(), TTL).await.is_ok() })
        })
        .collect();
    let mut got = 0;
    for asked in asking {
        got += usize::from(asked.await.unwrap());
    }
    assert_eq!(got, 1);
}
