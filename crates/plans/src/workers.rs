//! Workers: one task for each key, which processes requests one after the other.
//!
//! When several callers want to change one thing and each change takes I/O, a lock would be held across it. A worker
//! has a queue instead: it owns the thing, and callers send pieces of work and wait for the answers. The work is done
//! even if the caller stops waiting.
//!
//! A worker that is idle for a while ends, and drops the thing; the next caller starts another one. For a moment there
//! may be two workers for one key: the old one at its last piece of work, and the new one. So workers are for order and
//! speed only. What must never happen twice is refused by the log, which checks versions.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{Clock, Deadline};
use process::Tasks;
use tokio::sync::{mpsc, oneshot};

/// How many pieces of work may wait for one worker. Each has a waiting caller; when the queue is full, further callers
/// wait for a free slot.
const QUEUE: usize = 256;
/// How long an idle worker lives. It is about as long as a person thinks, and what it holds (a mounted sandbox, a
/// parsed manifest) is rebuilt in milliseconds.
pub(crate) const IDLE: Duration = Duration::from_secs(120);
/// How often a caller tries the next worker because its own was just ending. A worker ends once in two minutes.
const TRIES: usize = 4;

type Work<T> = Box<dyn for<'a> FnOnce(&'a mut T) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> + Send>;

/// The workers of one kind of thing, by key.
pub(crate) struct Workers<K, T> {
    name: &'static str,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
    idle: Duration,
    /// Guards which workers are open; `None` once no more are opened. Only looked up and replaced under it.
    open: Mutex<Option<HashMap<K, mpsc::Sender<Work<T>>>>>,
}

/// The work wasn't done: the daemon is stopping.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Closed;

impl<K, T> fmt::Debug for Workers<K, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Workers")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<K: Eq + Hash + Clone + Send + 'static, T: Send + 'static> Workers<K, T> {
    pub(crate) fn new(name: &'static str, tasks: Tasks, clock: Arc<dyn Clock>, idle: Duration) -> Self {
        Self {
            name,
            tasks,
            clock,
            idle,
            open: Mutex::new(Some(HashMap::new())),
        }
    }

    /// Sends a piece of work and waits for its answer. `make` makes the thing if no worker owns it.
    ///
    /// *Cancel safety*: dropped halfway, the work is done anyway, or was never queued.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        key: K,
        make: impl Fn() -> T,
        work: impl for<'a> FnOnce(&'a mut T) -> Pin<Box<dyn Future<Output = R> + Send + 'a>> + Send + 'static,
    ) -> Result<R, Closed> {
        let (answer, answered) = oneshot::channel();
        let mut work: Work<T> = Box::new(move |thing| {
            Box::pin(async move {
                // The caller may have stopped waiting.
                drop(answer.send(work(thing).await));
            })
        });
        for _ in 0..TRIES {
            let queue = self.queue(&key, &make).ok_or(Closed)?;
            match queue.send(work).await {
                Ok(()) => return answered.await.map_err(|_| Closed),
                Err(refused) => work = refused.0,
            }
        }
        Err(Closed)
    }

    /// Sends a piece of work without waiting for it. It is dropped if the queue is full.
    pub(crate) fn enqueue(
        &self,
        key: &K,
        make: impl Fn() -> T,
        work: impl for<'a> FnOnce(&'a mut T) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> + Send + 'static,
    ) {
        if let Some(queue) = self.queue(key, &make) {
            drop(queue.try_send(Box::new(work)));
        }
    }

    /// Accepts no more work. What was sent is still done.
    pub(crate) fn close(&self) {
        *self.open() = None;
    }

    fn open(&self) -> MutexGuard<'_, Option<HashMap<K, mpsc::Sender<Work<T>>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, key: &K, make: &impl Fn() -> T) -> Option<mpsc::Sender<Work<T>>> {
        let mut guard = self.open();
        let open = guard.as_mut()?;
        if let Some(queue) = open.get(key).filter(|queue| !queue.is_closed()) {
            return Some(queue.clone());
        }
        // Remove closed workers here, so that the map doesn't grow with what was once in use.
        open.retain(|_, queue| !queue.is_closed());
        let (queue, inbox) = mpsc::channel(QUEUE);
        open.insert(key.clone(), queue.clone());
        drop(guard);
        self.tasks.spawn(
            self.name,
            serve(make(), inbox, Arc::clone(&self.clock), self.idle),
        );
        Some(queue)
    }
}

/// Does one piece of work after the other, until none has arrived for a while or none can arrive any more.
async fn serve<T: Send + 'static>(
    mut thing: T,
    mut inbox: mpsc::Receiver<Work<T>>,
    clock: Arc<dyn Clock>,
    idle: Duration,
) {
    loop {
        let idle = Deadline::after(&clock, idle);
        let work = tokio::select! {
            biased;
            work = inbox.recv() => work,
            () = idle.passed(), if !inbox.is_closed() => {
                inbox.close();
                continue;
            }
        };
        match work {
            Some(work) => work(&mut thing).await,
            None => break,
        }
    }
    // It may hold a manifest of hundreds of thousands of files, or mounts, which take the kernel a while.
    let closing = tokio::task::spawn_blocking(move || {
        drop(thing);
        process::give_memory_back();
    });
    // It fails only if the runtime ends.
    drop(closing.await);
}
