//! Work that a test holds wherever it waits, so that every interleaving can be forced and not only hoped for.
//!
//! A future runs from one point where it waits to the next. Between two of these points nobody else can come in between;
//! at them, anybody can. So whoever lets something else happen at each point in turn has tried every order there is.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake},
    time::Duration,
};

use tokio::sync::Notify;

/// Nothing in these scenarios takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// After so long, whoever comes in between is taken to wait for what is held: that has a lock of the database.
const STUCK: Duration = Duration::from_millis(500);

/// Work that goes on only when it is told to.
pub(crate) struct Held<'a, T> {
    work: Pin<Box<dyn Future<Output = T> + 'a>>,
    woken: Arc<Woken>,
    done: Option<T>,
    has_begun: bool,
}

#[derive(Default)]
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl<'a, T> Held<'a, T> {
    /// Work that has not begun.
    pub(crate) fn new(work: impl Future<Output = T> + 'a) -> Self {
        Self {
            work: Box::pin(work),
            woken: Arc::default(),
            done: None,
            has_begun: false,
        }
    }

    /// Lets it go on to the next point where it waits, and says whether it got to its end instead.
    async fn step(&mut self) -> bool {
        if self.done.is_some() {
            return true;
        }
        if self.has_begun {
            // What it waits for has come.
            tokio::time::timeout(PATIENCE, self.woken.0.notified())
                .await
                .expect("it waits for nothing");
        }
        self.has_begun = true;
        let waker = Arc::clone(&self.woken).into();
        if let Poll::Ready(done) = self.work.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.done = Some(done);
        }
        self.done.is_some()
    }

    /// Lets it go on until it has waited so often, and holds it there. Says whether it got to its end before.
    pub(crate) async fn hold_at(&mut self, point: usize) -> bool {
        for _ in 0..point {
            if self.step().await {
                return true;
            }
        }
        false
    }

    /// Lets something happen while it is held. Where it holds a lock that the other one needs, it goes on, point by point,
    /// until it holds it no more.
    pub(crate) async fn let_happen<R>(&mut self, other: impl Future<Output = R>) -> R {
        let mut other = pin!(other);
        loop {
            match tokio::time::timeout(STUCK, &mut other).await {
                Ok(happened) => return happened,
                Err(_) => self.step().await,
            };
        }
    }

    /// Lets it go on to its end.
    pub(crate) async fn finish(mut self) -> T {
        while !self.step().await {}
        self.done.expect("it is done")
    }
}
