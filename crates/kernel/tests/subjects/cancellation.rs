//! A cancellation that can be reset: ours, and the two of the report.

use std::sync::Arc;

use kernel::{CancellationToken, Cause, Deadline, Scope};

use super::sync::{AtomicBool, Condvar, Mutex, Ordering};

/// What a run of some work sees of its cancellation.
pub(crate) trait Cancellation: Clone + Send + Sync + 'static {
    /// One run of the work.
    type Run: Clone + Send + Sync + 'static;

    fn new() -> Self;
    /// A worker starts.
    fn begin(&self) -> Self::Run;
    fn cancel(&self);
    fn reset(&self);
    fn is_cancelled(run: &Self::Run) -> bool;
    /// Sleeps until the run is cancelled.
    fn wait(run: &Self::Run);
}

impl Cancellation for CancellationToken {
    type Run = Scope;

    fn new() -> Self {
        Self::new()
    }

    fn begin(&self) -> Scope {
        self.scope()
    }

    fn cancel(&self) {
        self.cancel(Cause::new("test", "asked to stop"));
    }

    fn reset(&self) {
        self.reset().expect("a token without parents can be reset");
    }

    fn is_cancelled(run: &Scope) -> bool {
        run.is_cancelled()
    }

    fn wait(run: &Scope) {
        run.wait_blocking(Deadline::never())
            .expect("there is no deadline");
    }
}

/// The flag of the report: set and notified under a lock, cleared without one.
#[derive(Clone)]
pub(crate) struct BareClear {
    event: Arc<Event>,
}

/// The repair that the report suggests: the clear takes the lock too.
#[derive(Clone)]
pub(crate) struct LockedClear {
    event: Arc<Event>,
}

/// An event as Python's `threading.Event`: a waiter that is woken returns, and its caller looks at the flag.
pub(crate) struct Event {
    flag: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Event {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            flag: AtomicBool::new(false),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        })
    }

    fn set(&self) {
        let guard = self.lock.lock().unwrap();
        self.flag.store(true, Ordering::SeqCst);
        self.changed.notify_all();
        drop(guard);
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    fn wait(&self) {
        let guard = self.lock.lock().unwrap();
        if !self.is_set() {
            drop(self.changed.wait(guard).unwrap());
        }
    }
}

macro_rules! faulty {
    ($name:ident, $reset:expr) => {
        impl Cancellation for $name {
            type Run = Arc<Event>;

            fn new() -> Self {
                Self {
                    event: Event::new(),
                }
            }

            fn begin(&self) -> Arc<Event> {
                Arc::clone(&self.event)
            }

            fn cancel(&self) {
                self.event.set();
            }

            fn reset(&self) {
                $reset(&*self.event);
            }

            fn is_cancelled(run: &Arc<Event>) -> bool {
                run.is_set()
            }

            fn wait(run: &Arc<Event>) {
                run.wait();
            }
        }
    };
}

faulty!(BareClear, |event: &Event| event
    .flag
    .store(false, Ordering::SeqCst));
faulty!(LockedClear, |event: &Event| {
    let guard = event.lock.lock().unwrap();
    event.flag.store(false, Ordering::SeqCst);
    drop(guard);
});
