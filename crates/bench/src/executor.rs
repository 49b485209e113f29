//! The smallest executor that is fair to a future.
//!
//! The waker is created once and kept, so that a contender with an async interface only pays for its own work. A
//! future that is not ready is polled in a spin first: it most likely waits for a lock that the other thread is about
//! to release, and putting the thread to sleep would cost more than everything that is measured.

use std::hint::spin_loop;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// How often to check the flag before the thread goes to sleep; some tens of microseconds.
const SPINS: usize = 20_000;

#[derive(Debug)]
pub(crate) struct Executor {
    signal: Arc<Signal>,
    waker: Waker,
}

#[derive(Debug)]
struct Signal {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Executor {
    pub(crate) fn for_this_thread() -> Self {
        let signal = Arc::new(Signal {
            thread: thread::current(),
            is_woken: AtomicBool::new(false),
        });
        Self {
            waker: Waker::from(Arc::clone(&signal)),
            signal,
        }
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut context = Context::from_waker(&self.waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            self.wait();
        }
    }

    fn wait(&self) {
        for _ in 0..SPINS {
            if self.signal.is_woken.swap(false, Ordering::AcqRel) {
                return;
            }
            spin_loop();
        }
        while !self.signal.is_woken.swap(false, Ordering::AcqRel) {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_future_that_is_woken_late_is_polled_again() {
        let mut polls = 0;
        let mut helper = None;
        let output = Executor::for_this_thread().block_on(poll_fn(|context| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready("done");
            }
            let waker = context.waker().clone();
            // The first wake-up comes during the spin, the second long after it.
            let delay = if polls == 1 {
                Duration::ZERO
            } else {
                Duration::from_millis(50)
            };
            helper = Some(thread::spawn(move || {
                thread::sleep(delay);
                waker.wake();
            }));
            Poll::Pending
        }));
        helper.unwrap().join().unwrap();
        assert_eq!((output, polls), ("done", 3));
    }
}
