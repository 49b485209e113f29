//! A registry of servers that can be restarted: ours, and the one of the report.

use std::{
    any::Any,
    collections::BTreeMap,
    future::Future,
    path::Path,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard},
    task::Poll,
    time::Duration,
};

use kernel::{CancellationToken, Clock, Deadline, Scope};
use lifecycle::{
    Launch, LifecycleError, LifecycleManager, Patience, Probe, RunningServer, ServerGeneration, ServerKey,
};

/// An answer that may take a while.
pub(crate) type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Trouble>> + Send>>;

/// Why there was no better answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Trouble {
    NotFound,
    Restarting,
    /// With its reason, as people read it.
    Failed(String),
    Stopped,
    Timeout,
}

/// What a health check says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub(crate) state: String,
    pub(crate) generation: u64,
    pub(crate) leases: usize,
}

/// Somebody who uses a server.
pub(crate) struct Client {
    /// Which process the client is led to.
    pub(crate) generation: Box<dyn Fn() -> Answer<u64> + Send>,
    /// Given back when it is dropped.
    _lease: Box<dyn Any + Send>,
}

/// The operations of the report, on servers by name. Those that wait do so until the deadline.
pub(crate) trait Servers: Send + Sync {
    fn start(&self, name: &str, deadline: &Deadline) -> Answer<u64>;
    fn restart(&self, name: &str, deadline: &Deadline) -> Answer<u64>;
    fn stop(&self, name: &str, deadline: &Deadline) -> Answer<()>;
    /// The time that one server has.
    fn stop_all(&self, time: Duration, clock: &Arc<dyn Clock>) -> Answer<()>;
    fn get_client(&self, name: &str, patience: Patience) -> Answer<Client>;
    fn health(&self, name: &str) -> Answer<Seen>;
}

fn key(name: &str) -> ServerKey {
    ServerKey::new(name, Path::new("/workspace"))
}

fn nobody_cancels() -> Scope {
    CancellationToken::new().scope()
}

impl From<LifecycleError> for Trouble {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::ServerNotFound { .. } => Self::NotFound,
            LifecycleError::ServerRestarting { .. } => Self::Restarting,
            LifecycleError::ServerFailed { reason, .. } => Self::Failed(reason.to_string()),
            LifecycleError::ServerStopped => Self::Stopped,
            LifecycleError::RequestTimeout { .. } => Self::Timeout,
            other => panic!("nobody does what leads to {other:?}"),
        }
    }
}

impl<L: Launch> Servers for LifecycleManager<L> {
    fn start(&self, name: &str, deadline: &Deadline) -> Answer<u64> {
        let (manager, key, deadline) = (self.clone(), key(name), deadline.clone());
        Box::pin(async move {
            let started = manager.start_server(&key, &deadline, &nobody_cancels()).await;
            Ok(started?.get())
        })
    }

    fn restart(&self, name: &str, deadline: &Deadline) -> Answer<u64> {
        let (manager, key, deadline) = (self.clone(), key(name), deadline.clone());
        Box::pin(async move {
            let restarted = manager.restart_server(&key, &deadline, &nobody_cancels()).await;
            Ok(restarted?.get())
        })
    }

    fn stop(&self, name: &str, deadline: &Deadline) -> Answer<()> {
        let (manager, key, deadline) = (self.clone(), key(name), deadline.clone());
        Box::pin(async move { Ok(manager.stop_server(&key, &deadline, &nobody_cancels()).await?) })
    }

    fn stop_all(&self, time: Duration, clock: &Arc<dyn Clock>) -> Answer<()> {
        let (manager, deadline) = (self.clone(), Deadline::after(clock, time));
        Box::pin(async move {
            manager.stop_all(&deadline, &nobody_cancels()).await?;
            Ok(())
        })
    }

    fn get_client(&self, name: &str, patience: Patience) -> Answer<Client> {
        let (manager, key) = (self.clone(), key(name));
        Box::pin(async move {
            let lease = manager.get_client(&key, &patience, &nobody_cancels()).await?;
            let lease = Arc::new(lease);
            let user = Arc::clone(&lease);
            Ok(Client {
                generation: Box::new(move || {
                    let (user, patience) = (Arc::clone(&user), patience.clone());
                    Box::pin(async move {
                        let current = user.server(&patience, &nobody_cancels()).await?;
                        Ok(current.generation.get())
                    })
                }),
                _lease: Box::new(lease),
            })
        })
    }

    fn health(&self, name: &str) -> Answer<Seen> {
        let (manager, key) = (self.clone(), key(name));
        Box::pin(async move {
            let status = manager.health_check(&key, &Probe::Skip).await?.status;
            Ok(Seen {
                state: status.state.name().to_owned(),
                generation: status.generation.get(),
                leases: status.leases,
            })
        })
    }
}

/// The algorithm of the report: a restart takes the entry out, does what takes long, and puts a new entry in.
/// Whoever looks in between finds nothing, and believes it.
pub(crate) struct DeleteThenInsert<L: Launch> {
    shared: Arc<Shared<L>>,
}

struct Shared<L: Launch> {
    launch: L,
    /// Guards the entries.
    registry: Mutex<Registry<L::Server>>,
}

struct Registry<S> {
    entries: BTreeMap<ServerKey, Entry<S>>,
    launches: u64,
}

#[derive(Clone)]
struct Entry<S> {
    server: S,
    generation: u64,
    leases: usize,
}

/// Counts a client out, if its entry is still there.
struct Count<L: Launch> {
    shared: Arc<Shared<L>>,
    key: ServerKey,
}

impl<L: Launch> Drop for Count<L> {
    fn drop(&mut self) {
        if let Some(entry) = self.shared.lock().entries.get_mut(&self.key) {
            entry.leases = entry.leases.saturating_sub(1);
        }
    }
}

impl<L: Launch> Shared<L> {
    fn lock(&self) -> MutexGuard<'_, Registry<L::Server>> {
        self.registry.lock().unwrap()
    }

    async fn launch(&self, key: &ServerKey) -> Result<u64, Trouble> {
        let generation = {
            let mut registry = self.lock();
            registry.launches += 1;
            registry.launches
        };
        let number = ServerGeneration::from_u64(generation);
        let launched = self.launch.launch(key, number, &nobody_cancels()).await;
        let server = launched.map_err(|failure| Trouble::Failed(failure.to_string()))?;
        let entry = Entry {
            server,
            generation,
            leases: 0,
        };
        self.lock().entries.insert(key.clone(), entry);
        Ok(generation)
    }
}

impl<L: Launch> DeleteThenInsert<L> {
    pub(crate) fn new(launch: L) -> Self {
        let registry = Registry {
            entries: BTreeMap::new(),
            launches: 0,
        };
        Self {
            shared: Arc::new(Shared {
                launch,
                registry: Mutex::new(registry),
            }),
        }
    }
}

impl<L: Launch> Servers for DeleteThenInsert<L> {
    fn start(&self, name: &str, _: &Deadline) -> Answer<u64> {
        let (shared, key) = (Arc::clone(&self.shared), key(name));
        Box::pin(async move {
            let known = shared.lock().entries.get(&key).map(|entry| entry.generation);
            match known {
                Some(generation) => Ok(generation),
                None => shared.launch(&key).await,
            }
        })
    }

    fn restart(&self, name: &str, _: &Deadline) -> Answer<u64> {
        let (shared, key) = (Arc::clone(&self.shared), key(name));
        Box::pin(async move {
            let removed = shared.lock().entries.remove(&key);
            removed.ok_or(Trouble::NotFound)?.server.stop().await;
            shared.launch(&key).await
        })
    }

    fn stop(&self, name: &str, _: &Deadline) -> Answer<()> {
        let (shared, key) = (Arc::clone(&self.shared), key(name));
        Box::pin(async move {
            let removed = shared.lock().entries.remove(&key);
            removed.ok_or(Trouble::NotFound)?.server.stop().await;
            Ok(())
        })
    }

    fn stop_all(&self, time: Duration, clock: &Arc<dyn Clock>) -> Answer<()> {
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(clock));
        Box::pin(async move {
            let all = std::mem::take(&mut shared.lock().entries);
            for entry in all.into_values() {
                let mut stop = pin!(entry.server.stop());
                let mut passed = Deadline::after(&clock, time).passed();
                std::future::poll_fn(|context| match stop.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => Pin::new(&mut passed).poll(context),
                })
                .await;
            }
            Ok(())
        })
    }

    fn get_client(&self, name: &str, _: Patience) -> Answer<Client> {
        let (shared, key) = (Arc::clone(&self.shared), key(name));
        Box::pin(async move {
            let generation = {
                let mut registry = shared.lock();
                let entry = registry.entries.get_mut(&key).ok_or(Trouble::NotFound)?;
                entry.leases += 1;
                entry.generation
            };
            Ok(Client {
                generation: Box::new(move || Box::pin(std::future::ready(Ok(generation)))),
                _lease: Box::new(Count { shared, key }),
            })
        })
    }

    fn health(&self, name: &str) -> Answer<Seen> {
        let seen = self.shared.lock().entries.get(&key(name)).map(|entry| Seen {
            state: "ready".to_owned(),
            generation: entry.generation,
            leases: entry.leases,
        });
        Box::pin(std::future::ready(seen.ok_or(Trouble::NotFound)))
    }
}
