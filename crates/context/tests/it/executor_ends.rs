//! Strategies that hang, block and are cancelled: nothing of them is left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use context::{Execute as _, Strategy, StrategyError, StrategyOutcome, on_thread};
use kernel::{CancellationToken, Cause, Deadline};

use crate::executor::{FOREVER, SECOND, ran, runtime};
use crate::pipeline_kit::{Bench, ask, finds, free, hit, scripted, until};

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

/// How much of the process there is: threads and file handles.
fn threads_and_handles() -> (usize, usize) {
    (entries("/proc/self/task"), entries("/proc/self/fd"))
}

/// Somebody is at work, as long as this is there.
struct AtWork(Arc<AtomicUsize>);

impl AtWork {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst); // tidy: a test counts who is at work
        Self(Arc::clone(count))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst); // tidy: a test counts who is at work
    }
}

/// A strategy that never answers, and is not told to end by anything but being dropped.
fn hangs(name: &str, at_work: &Arc<AtomicUsize>) -> Arc<dyn Strategy> {
    let at_work = Arc::clone(at_work);
    scripted(name, move |_, _, _| {
        let at_work = AtWork::new(&at_work);
        async move {
            std::future::pending::<()>().await;
            drop(at_work);
            Ok(Vec::new())
        }
    })
}

/// A strategy that looks on a thread, with a file open, until its scope is cancelled.
fn hangs_on_thread(name: &str, at_work: &Arc<AtomicUsize>) -> Arc<dyn Strategy> {
    let at_work = Arc::clone(at_work);
    scripted(name, move |_, scope, _| {
        let at_work = Arc::clone(&at_work);
        on_thread(scope, move |scope| {
            let file = std::fs::File::open("/proc/self/status");
            let at_work = AtWork::new(&at_work);
            let cancelled = scope.wait_blocking(Deadline::never());
            drop((file, cancelled, at_work));
            Err(StrategyError::Cancelled)
        })
    })
}

#[test]
fn after_timeouts_no_task_no_thread_and_no_handle_is_left() {
    let runtime = runtime();
    runtime.block_on(async {
        let bench = Bench::new(4);
        // The first round warms up whatever is made once.
        let mut before = None;
        for round in 0_u64..3 {
            let at_work = Arc::default();
            let strategies = [
                (hangs_on_thread("thread", &at_work), SECOND),
                (hangs("future", &at_work), 2 * SECOND),
                (hangs_on_thread("deadline", &at_work), 9 * SECOND),
                (finds("quick", vec![hit("a", 1, 1.0)]), SECOND),
            ];
            let deadline = bench.after(5 * SECOND);
            let (bench, at_work) = (&bench, &at_work);
            let run = async {
                let scope = free();
                let ask = ask(3);
                bench.executor.run(&ask, &strategies, &deadline, &scope).await
            };
            let time = async {
                until("both threads and the future are at work", || {
                    at_work.load(Ordering::SeqCst) == 3 && bench.tasks.running() == 3
                })
                .await;
                bench.clock.advance(SECOND);
                until("the first thread has ended", || bench.tasks.running() == 2).await;
                bench.clock.advance(SECOND);
                until("the future is gone", || bench.tasks.running() == 1).await;
                bench.clock.advance(3 * SECOND);
            };
            let (found, ()) = tokio::join!(run, time);
            let timed_out = |after| StrategyOutcome::TimedOut { after };
            let expected = [
                ran("thread", timed_out(SECOND), SECOND, Vec::new()),
                ran("future", timed_out(2 * SECOND), 2 * SECOND, Vec::new()),
                ran("deadline", StrategyOutcome::OutOfTime, 5 * SECOND, Vec::new()),
                ran(
                    "quick",
                    StrategyOutcome::Ran { hits: 1 },
                    Duration::ZERO,
                    vec![hit("a", 1, 1.0)],
                ),
            ];
            assert_eq!(found, expected);
            for name in ["thread", "future", "deadline"] {
                assert_eq!(bench.counted(name).0, round + 1);
            }
            assert_eq!(bench.counted("quick").0, 0);
            until("no task is left", || bench.tasks.running() == 0).await;
            assert_eq!(at_work.load(Ordering::SeqCst), 0);
            bench.breakers.reset_all();
            match before {
                None => {
                    // The threads of the first round are about to end.
                    until("the threads have ended", || threads_and_handles().0 <= 6).await;
                    before = Some(threads_and_handles());
                }
                Some(before) => {
                    until("as many threads and handles as before", || {
                        threads_and_handles() == before
                    })
                    .await;
                }
            }
            assert_eq!(bench.clock.pending_alarms(), 0);
        }
    });
}

#[test]
fn sixteen_callers_of_strategies_that_hang_never_use_more_than_the_workers() {
    runtime().block_on(async {
        const CALLERS: usize = 16;
        let bench = Arc::new(Bench::new(4));
        (0..3).for_each(|_| bench.breakers.record_failure("context/open"));
        let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let strategies: Vec<_> = (0..3)
            .map(|place| {
                let (at_work, most) = (Arc::clone(&at_work), Arc::clone(&most));
                let strategy = scripted(&format!("hangs-{place}"), move |_, scope, _| {
                    let (at_work, most) = (Arc::clone(&at_work), Arc::clone(&most));
                    on_thread(scope, move |scope| {
                        let now = at_work.fetch_add(1, Ordering::SeqCst) + 1; // tidy: a test counts who is at work
                        most.fetch_max(now, Ordering::SeqCst); // tidy: a test counts who is at work
                        drop(scope.wait_blocking(Deadline::never()));
                        // It takes its time to end: others are let in only after that.
                        std::thread::sleep(Duration::from_millis(2)); // tidy: work that cannot be interrupted
                        at_work.fetch_sub(1, Ordering::SeqCst); // tidy: a test counts who is at work
                        Err(StrategyError::Cancelled)
                    })
                });
                (strategy, SECOND)
            })
            .chain([(finds("open", Vec::new()), SECOND)])
            .collect();
        let strategies = Arc::new(strategies);
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (bench, strategies) = (Arc::clone(&bench), Arc::clone(&strategies));
                let deadline = bench.after(10 * SECOND);
                tokio::spawn(async move {
                    let scope = free();
                    bench.executor.run(&ask(3), &strategies, &deadline, &scope).await
                })
            })
            .collect();
        // Nobody waits for a worker to hear that a circuit is open.
        until("all have asked, and four are at work", || {
            bench.counted("open").3 == CALLERS as u64 && at_work.load(Ordering::SeqCst) == 4
        })
        .await;
        // What hangs opens its circuit, and everybody after that is told at once.
        while callers.iter().any(|caller| !caller.is_finished()) {
            until("four are at work, or all is over", || {
                at_work.load(Ordering::SeqCst) == 4
                    || callers.iter().all(|caller| caller.is_finished())
                    || bench.tasks.running() < 4
            })
            .await;
            bench.clock.advance(SECOND / 4);
            tokio::task::yield_now().await;
        }
        for caller in callers {
            let found = caller.await.unwrap();
            assert_eq!(found.len(), 4);
            for ran in &found[..3] {
                let is_named = matches!(
                    ran.outcome,
                    StrategyOutcome::TimedOut { .. }
                        | StrategyOutcome::OutOfTime
                        | StrategyOutcome::Open { .. }
                );
                assert!(is_named, "{ran:?}");
            }
            assert!(matches!(found[3].outcome, StrategyOutcome::Open { .. }));
        }
        until("no task is left", || bench.tasks.running() == 0).await;
        assert_eq!(
            (at_work.load(Ordering::SeqCst), most.load(Ordering::SeqCst)),
            (0, 4)
        );
    });
}

#[test]
fn what_never_got_a_worker_is_out_of_time_and_no_failure() {
    runtime().block_on(async {
        let bench = Bench::new(1);
        let at_work = Arc::default();
        let first = [(hangs("first", &at_work), FOREVER)];
        let second = [(hangs("second", &at_work), FOREVER)];
        let (ask, scope, never) = (ask(3), free(), Deadline::never());
        let mut holds_the_worker = Box::pin(bench.executor.run(&ask, &first, &never, &scope));
        assert!(look_once(&mut holds_the_worker).await.is_none());
        until("it has the worker", || at_work.load(Ordering::SeqCst) == 1).await;
        let deadline = bench.after(SECOND);
        let mut waits = Box::pin(bench.executor.run(&ask, &second, &deadline, &scope));
        assert!(look_once(&mut waits).await.is_none());
        bench.clock.advance(SECOND);
        let expected = [ran(
            "second",
            StrategyOutcome::OutOfTime,
            Duration::ZERO,
            Vec::new(),
        )];
        assert_eq!(waits.await, expected);
        assert_eq!((bench.counted("first").0, bench.counted("second").0), (0, 0));
        drop(holds_the_worker);
        until("no task is left", || bench.tasks.running() == 0).await;
        // A question that is over before it begins asks nobody.
        let over = bench.after(Duration::ZERO);
        let found = bench.executor.run(&ask, &second, &over, &scope).await;
        assert_eq!(found, expected);
        assert_eq!((bench.counted("first").0, bench.counted("second").0), (0, 0));
    });
}

#[test]
fn who_blocks_a_thread_of_the_runtime_does_not_hold_up_the_answer() {
    runtime().block_on(async {
        let bench = Bench::new(4);
        let (begun, release) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let blocks = {
            let (begun, release) = (Arc::clone(&begun), Arc::clone(&release));
            scripted("blocks", move |_, _, _| {
                let (begun, release) = (Arc::clone(&begun), Arc::clone(&release));
                async move {
                    begun.wait();
                    release.wait();
                    Ok(vec![hit("a", 1, 1.0)])
                }
            })
        };
        let strategies = [(blocks, SECOND), (finds("quick", Vec::new()), SECOND)];
        let deadline = bench.after(9 * SECOND);
        let (ask, scope) = (ask(3), free());
        let mut run = Box::pin(bench.executor.run(&ask, &strategies, &deadline, &scope));
        assert!(look_once(&mut run).await.is_none());
        begun.wait();
        until("the quick one is done", || bench.tasks.running() == 1).await;
        bench.clock.advance(9 * SECOND);
        let found = run.await;
        let outcomes: Vec<_> = found.into_iter().map(|ran| ran.outcome).collect();
        assert_eq!(
            outcomes,
            [
                StrategyOutcome::TimedOut { after: SECOND },
                StrategyOutcome::Ran { hits: 0 }
            ]
        );
        let counted = bench.counted("blocks");
        assert_eq!(counted, (1, 1, 0, 0));
        // It comes back with something. Nobody listens any longer, its circuit included.
        release.wait();
        until("no task is left", || bench.tasks.running() == 0).await;
        assert_eq!(bench.counted("blocks"), counted);
    });
}

/// Looks at a future once.
async fn look_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[test]
fn who_is_cancelled_or_dropped_counts_neither_way_and_leaves_nothing() {
    runtime().block_on(async {
        for is_dropped in [false, true] {
            let bench = Bench::new(4);
            let at_work = Arc::default();
            let strategies = [
                (hangs_on_thread("thread", &at_work), FOREVER),
                (hangs("future", &at_work), FOREVER),
            ];
            let token = CancellationToken::new();
            let (ask, scope) = (ask(3), token.scope());
            let never = Deadline::never();
            let mut run = Box::pin(bench.executor.run(&ask, &strategies, &never, &scope));
            assert!(look_once(&mut run).await.is_none());
            until("both are at work", || at_work.load(Ordering::SeqCst) == 2).await;
            if is_dropped {
                drop(run);
            } else {
                token.cancel(Cause::new("test", "enough"));
                let outcomes: Vec<_> = run.await.into_iter().map(|ran| ran.outcome).collect();
                assert_eq!(outcomes, [StrategyOutcome::OutOfTime, StrategyOutcome::OutOfTime]);
            }
            until("no task is left", || bench.tasks.running() == 0).await;
            assert_eq!(at_work.load(Ordering::SeqCst), 0);
            for name in ["thread", "future"] {
                assert_eq!(bench.counted(name), (0, 0, 0, 0));
            }
            assert_eq!((token.tracked(), bench.clock.pending_alarms()), ((0, 0), 0));
        }
    });
}
