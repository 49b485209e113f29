//! Blocks a plain thread on a future.
//!
//! A blocking wait is the async wait of this crate driven by a sleeping thread, so there is one way to wait and
//! one proof that no wake-up is lost.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use crate::sync::{Condvar, Mutex, lock, wait};

/// Runs a future to completion on this thread, which sleeps between polls.
///
/// Use it for the waits of this crate. Futures that need an executor's timers or sockets don't work here.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let sleeper = Arc::new(Sleeper::default());
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        sleeper.sleep();
    }
}

/// A thread that sleeps until it is woken. A wake-up that arrives before the sleep is remembered.
struct Sleeper {
    /// Whether the thread was woken since it last slept.
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Default for Sleeper {
    fn default() -> Self {
        Self {
            woken: Mutex::new(false),
            changed: Condvar::new(),
        }
    }
}

impl Sleeper {
    fn sleep(&self) {
        let mut woken = lock(&self.woken);
        while !*woken {
            woken = wait(&self.changed, woken);
        }
        *woken = false;
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *lock(&self.woken) = true;
        self.changed.notify_one();
    }
}
