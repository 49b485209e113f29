//! From `cancel` to the last of 1,000 async waiters, against tokio-util, on the same runtime.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use tokio::runtime::Runtime;

use crate::measure::Measured;
use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;

const WAITERS: usize = 1000;
const ROUNDS: usize = 101;
const WARM_UP_ROUNDS: usize = 5;
/// How long the waiters may take to begin waiting before the round is abandoned.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the first and the last waiter of one round took.
struct Woken {
    first: f64,
    last: f64,
}

/// A figure of a round, and its bar.
type Question = (&'static str, fn(&Woken) -> f64, Bar);

const QUESTIONS: [Question; 2] = [
    ("cancel to the first waiter", |woken| woken.first, Bar::None),
    ("cancel to the last waiter", |woken| woken.last, Bar::NoSlower),
];

pub(crate) fn measure() -> Result<Table> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let mut ours = Vec::with_capacity(ROUNDS);
    let mut theirs = Vec::with_capacity(ROUNDS);
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        // The two swap places from round to round.
        let samples = if round % 2 == 0 {
            let ours = round_of_ours(&runtime)?;
            (ours, round_of_tokio_util(&runtime)?)
        } else {
            let theirs = round_of_tokio_util(&runtime)?;
            (round_of_ours(&runtime)?, theirs)
        };
        if round >= WARM_UP_ROUNDS {
            ours.push(samples.0);
            theirs.push(samples.1);
        }
    }
    let measured = |name, rounds: &[Woken], which: fn(&Woken) -> f64| Measured {
        name,
        samples: rounds.iter().map(which).collect(),
    };
    let mut table = Table::of_ratios(
        "Waking 1,000 waiters",
        "1,000 tasks on a tokio runtime with two workers wait for one token; a thread outside the runtime \
         cancels it once all of them are waiting. Each task notes when it runs again.",
    );
    for (label, which, bar) in QUESTIONS {
        let (ours, theirs) = (
            measured("tidelock", &ours, which),
            measured("tokio-util", &theirs, which),
        );
        table.compare(label, &ours, &theirs, bar);
    }
    Ok(table)
}

fn round_of_ours(runtime: &Runtime) -> Result<Woken> {
    let token = kernel::CancellationToken::new();
    let scope = token.scope();
    let cancel = || {
        token.cancel(kernel::Cause::new("bench", "the round begins"));
    };
    round(runtime, || scope.wait(), cancel)
}

fn round_of_tokio_util(runtime: &Runtime) -> Result<Woken> {
    let token = tokio_util::sync::CancellationToken::new();
    round(runtime, || token.clone().cancelled_owned(), || token.cancel())
}

fn round<F>(runtime: &Runtime, wait: impl Fn() -> F, cancel: impl FnOnce()) -> Result<Woken>
where
    F: Future + Send + 'static,
{
    let waiting = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..WAITERS)
        .map(|_| runtime.spawn(note_when_woken(wait(), Arc::clone(&waiting))))
        .collect();
    let given_up = Instant::now() + PATIENCE;
    while waiting.load(Ordering::Acquire) < WAITERS {
        if Instant::now() > given_up {
            bail!("the waiters did not begin to wait within {PATIENCE:?}");
        }
        thread::yield_now();
    }
    let began = Instant::now();
    cancel();
    let mut latencies = Vec::with_capacity(WAITERS);
    for task in tasks {
        latencies.push(nanoseconds(runtime.block_on(task)?.duration_since(began)));
    }
    latencies.sort_by(f64::total_cmp);
    Ok(Woken {
        first: latencies[0],
        last: latencies[WAITERS - 1],
    })
}

/// Waits, and signals that once: the count goes up when the waiter is known to be registered.
async fn note_when_woken(wait: impl Future, waiting: Arc<AtomicUsize>) -> Instant {
    let mut wait = pin!(wait);
    let mut is_first_poll = true;
    poll_fn(|context| {
        let polled = wait.as_mut().poll(context).map(drop);
        if is_first_poll {
            is_first_poll = false;
            waiting.fetch_add(1, Ordering::Release);
        }
        polled
    })
    .await;
    Instant::now()
}
