//! A manager on a scripted stage: its servers, its clock and its scheduler are in the hands of the test.

use std::{
    future::Future,
    path::Path,
    sync::{Arc, Mutex},
};

use kernel::{CancellationToken, Clock, Deadline, ManualClock, Scope};
use lifecycle::{
    ClientLease, LifecycleError, LifecycleManager, LifecycleOptions, LifecycleSettings, Patience, Probe,
    ServerGeneration, ServerKey, ServerStatus,
};

use crate::{scheduler::Scheduler, subjects::scripted::Scripted};

/// Everything that a test has in hand.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) script: Scripted,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) scheduler: Scheduler,
    pub(crate) manager: LifecycleManager<Scripted>,
    pub(crate) token: CancellationToken,
}

/// A call that is under way, or its result.
pub(crate) struct Call<T> {
    /// Guards the result, once there is one.
    result: Arc<Mutex<Option<T>>>,
    pub(crate) task: u64,
}

impl<T> Call<T> {
    /// The result, if there is one by now.
    pub(crate) fn take(&self) -> Option<T> {
        self.result.lock().unwrap().take()
    }

    /// The result, which must be there.
    pub(crate) fn done(&self) -> T {
        self.take().expect("the call is done")
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.result.lock().unwrap().is_none()
    }
}

/// The settings of most tests: nothing is left to chance.
pub(crate) fn settings() -> LifecycleSettings {
    LifecycleSettings {
        jitter: 0.0,
        ..LifecycleSettings::default()
    }
}

/// A key of a configured server.
pub(crate) fn key(name: &str) -> ServerKey {
    ServerKey::new(name, Path::new("/workspace"))
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(settings())
    }

    pub(crate) fn with(settings: LifecycleSettings) -> Self {
        let (script, clock, scheduler) = (Scripted::new(), ManualClock::new(), Scheduler::default());
        let manager = LifecycleManager::new(LifecycleOptions {
            launch: script.clone(),
            settings,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            tasks: Arc::new(scheduler.clone()),
        });
        Self {
            script,
            clock,
            scheduler,
            manager,
            token: CancellationToken::new(),
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        self.token.scope()
    }

    pub(crate) fn deadline(&self, seconds: u64) -> Deadline {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Deadline::after(&clock, std::time::Duration::from_secs(seconds))
    }

    /// Starts a call and runs everything as far as it goes.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Call<T> {
        let call = self.begin(future);
        self.scheduler.run();
        call
    }

    /// Starts a call without running anything.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Call<T> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let task = self.scheduler.add(Box::pin(async move {
            let value = future.await;
            *slot.lock().unwrap() = Some(value);
        }));
        Call { result, task }
    }

    pub(crate) fn start(&self, key: &ServerKey) -> Call<Result<ServerGeneration, LifecycleError>> {
        let (manager, key, scope) = (self.manager.clone(), key.clone(), self.scope());
        self.call(async move { manager.start_server(&key, &Deadline::never(), &scope).await })
    }

    pub(crate) fn restart(&self, key: &ServerKey) -> Call<Result<ServerGeneration, LifecycleError>> {
        let (manager, key, scope) = (self.manager.clone(), key.clone(), self.scope());
        self.call(async move { manager.restart_server(&key, &Deadline::never(), &scope).await })
    }

    pub(crate) fn stop(&self, key: &ServerKey) -> Call<Result<(), LifecycleError>> {
        let (manager, key, scope) = (self.manager.clone(), key.clone(), self.scope());
        self.call(async move { manager.stop_server(&key, &Deadline::never(), &scope).await })
    }

    pub(crate) fn get(
        &self,
        key: &ServerKey,
        patience: Patience,
    ) -> Call<Result<ClientLease<Scripted>, LifecycleError>> {
        let (manager, key, scope) = (self.manager.clone(), key.clone(), self.scope());
        self.call(async move { manager.get_client(&key, &patience, &scope).await })
    }

    /// A client of a server that is up.
    pub(crate) fn client(&self, key: &ServerKey) -> ClientLease<Scripted> {
        let wait = Patience::Wait(Deadline::never());
        self.get(key, wait).done().expect("the server is up")
    }

    pub(crate) fn health(&self, key: &ServerKey) -> Result<ServerStatus, LifecycleError> {
        let (manager, key) = (self.manager.clone(), key.clone());
        let call = self.begin(async move { manager.health_check(&key, &Probe::Skip).await });
        // One poll is all it may need, whatever else is ready.
        let newest = |ready: usize| ready - 1;
        assert!(self.scheduler.step(newest));
        call.done().map(|health| health.status)
    }
}
