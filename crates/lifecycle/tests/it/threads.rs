//! The manager on real threads and in real time, where reads and writes of different callers come in between each
//! other. The schedules of the other tests never interrupt a step.

use std::{sync::Arc, time::Duration};

use kernel::{CancellationToken, Deadline, SystemClock};
use lifecycle::{
    ExpectedProcess, LifecycleError, LifecycleManager, LifecycleOptions, LifecycleSettings, Patience,
    ServerKey,
};
use process::Tasks;

use crate::{stage::key, subjects::scripted::Scripted};

const CALLERS: u64 = 8;
const CALLS: u64 = 400;

/// Far more than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn deadline() -> Deadline {
    Deadline::after(&SystemClock::shared(), PATIENCE)
}

async fn one_call(
    manager: &LifecycleManager<Scripted>,
    script: &Scripted,
    key: &ServerKey,
    number: u64,
) -> Result<(), LifecycleError> {
    let scope = CancellationToken::new().scope();
    match number % 16 {
        0 => manager.restart_server(key, &deadline(), &scope).await.map(drop),
        1 => manager.stop_server(key, &deadline(), &scope).await,
        2 | 3 => manager.start_server(key, &deadline(), &scope).await.map(drop),
        4 => {
            script.newest().crash("by chance");
            Ok(())
        }
        5 => manager.get_client(key, &Patience::NoWait, &scope).await.map(drop),
        6 | 7 => {
            let all = manager.list().into_iter();
            let mut of_key = all.filter(|status| status.key == *key);
            let seen = of_key.next().expect("it was started").generation;
            let (named, time) = (ExpectedProcess::Exactly(seen), deadline());
            match manager.restart_server_if(key, named, &time, &scope).await {
                // One that was on its way up is joined, and is the one that was seen.
                Ok(generation) => assert!(generation >= seen),
                Err(LifecycleError::ServerMoved { current, .. }) => assert!(current.generation > seen),
                Err(other) => return Err(other),
            }
            Ok(())
        }
        _ => {
            let lease = manager
                .get_client(key, &Patience::Wait(deadline()), &scope)
                .await?;
            lease.server(&Patience::Wait(deadline()), &scope).await.map(drop)
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_start_stop_restart_and_lease_never_have_two_processes_or_lose_a_lease() {
    let (script, tasks) = (Scripted::new(), Tasks::default());
    let manager = LifecycleManager::new(LifecycleOptions {
        launch: script.clone(),
        settings: LifecycleSettings {
            first_pause: Duration::from_micros(100),
            longest_pause: Duration::from_millis(1),
            max_failures: usize::MAX,
            ..LifecycleSettings::default()
        },
        clock: SystemClock::shared(),
        tasks: Arc::new(tasks.clone()),
    });
    let scope = CancellationToken::new().scope();
    let keys = [key("ruff"), key("ty")];
    for key in &keys {
        manager.start_server(key, &deadline(), &scope).await.unwrap();
    }
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (manager, script, keys) = (manager.clone(), script.clone(), keys.clone());
            tokio::spawn(async move {
                for call in 0..CALLS {
                    // Any spread will do that has the callers disagree.
                    let number = (call * 7 + caller * 5) ^ (call >> 2);
                    let key = &keys[(number >> 4) as usize % keys.len()];
                    match one_call(&manager, &script, key, number).await {
                        Ok(())
                        | Err(LifecycleError::ServerStopped | LifecycleError::ServerRestarting { .. }) => {}
                        Err(other) => panic!("caller {caller}, call {call}: {other:?}"),
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(script.most_at_once(), 1);
    let all = manager.close(&deadline(), &scope).await.unwrap();
    assert_eq!(all.still_stopping, []);
    for status in manager.list() {
        assert_eq!((status.state.name(), status.leases), ("stopped", 0), "{status:?}");
    }
    assert_eq!(script.alive().len(), 0);
    tokio::time::timeout(PATIENCE, tasks.finished())
        .await
        .expect("no task is left");
}
