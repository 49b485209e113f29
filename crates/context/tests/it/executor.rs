//! Strategies that run together, and circuits that hear how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use context::{Execute as _, Hit, Ran, StrategyError, StrategyName, StrategyOutcome, on_thread};
use kernel::{CircuitState, Deadline, Scope};
use tokio::sync::Notify;

use crate::pipeline_kit::{Bench, Found, ask, free, hit, scripted, until};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const FOREVER: Duration = Duration::from_secs(1_000_000);

/// A runtime whose threads end as soon as they have nothing to do, so that they can be counted.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .thread_keep_alive(Duration::from_millis(1))
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn ran(name: &str, outcome: StrategyOutcome, took: Duration, hits: Vec<Hit>) -> Ran {
    Ran {
        strategy: StrategyName::new(name),
        outcome,
        took,
        hits,
    }
}

pub(crate) fn failed(why: &str) -> StrategyOutcome {
    StrategyOutcome::Failed { why: why.to_owned() }
}

#[test]
fn each_end_is_reported_and_counted() {
    type Does = fn(Scope) -> Found;
    let hits = || vec![hit("a", 1, 2.0), hit("b", 2, 1.0)];
    let cases: [(Does, StrategyOutcome, (u64, u32)); 8] = [
        (
            |_| Ok(vec![hit("b", 2, 1.0), hit("a", 1, 2.0)]),
            StrategyOutcome::Ran { hits: 2 },
            (1, 0),
        ),
        (|_| Ok(Vec::new()), StrategyOutcome::Ran { hits: 0 }, (1, 0)),
        (
            |_| Err(StrategyError::NotApplicable("no git".to_owned())),
            StrategyOutcome::NotApplicable {
                why: "no git".to_owned(),
            },
            (1, 1),
        ),
        (
            |_| Err(StrategyError::Failed("disk\non fire".to_owned())),
            failed("disk on fire"),
            (2, 2),
        ),
        (
            |_| Err(StrategyError::Cancelled),
            failed("it gave up, and nobody had asked it to"),
            (2, 2),
        ),
        (
            |_| panic!("out of {}", "luck"),
            failed("it panicked: out of luck"),
            (2, 2),
        ),
        (
            |_| Ok(vec![hit("a", 1, f64::NAN)]),
            failed("it gave a a score that is no number"),
            (2, 2),
        ),
        (
            |_| Ok((0..31).map(|line| hit("a", line, 1.0)).collect()),
            failed("it found 31 places, and 30 are too many"),
            (2, 2),
        ),
    ];
    for (does, outcome, (failures, in_a_row)) in cases {
        for is_on_thread in [false, true] {
            let strategy = scripted("one", move |_, scope: Scope, _| async move {
                if is_on_thread {
                    on_thread(scope, move |scope| does(scope.clone())).await
                } else {
                    does(scope)
                }
            });
            let bench = Bench::new(4);
            bench.breakers.record_failure("context/one");
            let found = runtime().block_on(async {
                let found = bench
                    .executor
                    .run(&ask(3), &[(strategy, SECOND)], &Deadline::never(), &free())
                    .await;
                bench.tasks.finished().await;
                found
            });
            let hits = if outcome == (StrategyOutcome::Ran { hits: 2 }) {
                hits()
            } else {
                Vec::new()
            };
            let expected = ran("one", outcome.clone(), Duration::ZERO, hits);
            assert_eq!(found, [expected]);
            assert_eq!(bench.counted("one"), (failures, in_a_row, 0, 0), "{outcome:?}");
        }
    }
}

#[test]
fn they_run_together_and_are_reported_in_their_order() {
    runtime().block_on(async {
        let bench = Bench::new(4);
        // None of them goes on until all four are here.
        let here = Arc::new(tokio::sync::Barrier::new(4));
        let meets = |name: &str| {
            let here = Arc::clone(&here);
            scripted(name, move |_, _, _| {
                let here = Arc::clone(&here);
                async move {
                    here.wait().await;
                    Ok(Vec::new())
                }
            })
        };
        let names = ["d", "a", "c", "b"];
        let strategies: Vec<_> = names.iter().map(|name| (meets(name), FOREVER)).collect();
        let found = bench
            .executor
            .run(&ask(3), &strategies, &Deadline::never(), &free())
            .await;
        let expected =
            names.map(|name| ran(name, StrategyOutcome::Ran { hits: 0 }, Duration::ZERO, Vec::new()));
        assert_eq!(found, expected);
    });
}

#[test]
fn an_open_circuit_is_not_asked_and_one_probe_closes_it() {
    runtime().block_on(async {
        let bench = Arc::new(Bench::new(4));
        let asked = Arc::new(AtomicUsize::new(0));
        let (go, is_well) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let strategy = {
            let (asked, go, is_well) = (Arc::clone(&asked), Arc::clone(&go), Arc::clone(&is_well));
            scripted("one", move |_, _, _| {
                let (asked, go, is_well) = (Arc::clone(&asked), Arc::clone(&go), Arc::clone(&is_well));
                async move {
                    asked.fetch_add(1, Ordering::SeqCst); // tidy: a test counts calls
                    if is_well.load(Ordering::SeqCst) == 0 {
                        return Err(StrategyError::Failed("ill".to_owned()));
                    }
                    go.notified().await;
                    Ok(Vec::new())
                }
            })
        };
        let run = || {
            let (bench, strategy) = (Arc::clone(&bench), Arc::clone(&strategy));
            async move {
                let scope = free();
                let found = bench
                    .executor
                    .run(&ask(3), &[(strategy, FOREVER)], &Deadline::never(), &scope)
                    .await;
                found.into_iter().map(|ran| ran.outcome).next().unwrap()
            }
        };
        for _ in 0..3 {
            assert_eq!(run().await, failed("ill"));
        }
        let open = StrategyOutcome::Open {
            retry_after: Some(Duration::from_secs(30)),
        };
        assert_eq!(run().await, open);
        assert_eq!(asked.load(Ordering::SeqCst), 3);
        bench.clock.advance(Duration::from_secs(30));
        is_well.store(1, Ordering::SeqCst); // tidy: a test heals it
        let callers: Vec<_> = (0..16).map(|_| tokio::spawn(run())).collect();
        // The others are told at once, while the probe is out.
        until("all but the probe are back", || {
            callers.iter().filter(|caller| caller.is_finished()).count() == 15
        })
        .await;
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        go.notify_one();
        let mut outcomes = Vec::new();
        for caller in callers {
            outcomes.push(caller.await.unwrap());
        }
        let ran = outcomes
            .iter()
            .filter(|outcome| **outcome == StrategyOutcome::Ran { hits: 0 })
            .count();
        assert_eq!(ran, 1);
        let circuit = bench.breakers.get("context/one").unwrap();
        assert_eq!((circuit.state, circuit.times_opened), (CircuitState::Closed, 1));
        bench.breakers.force_open("context/one");
        assert_eq!(run().await, StrategyOutcome::Open { retry_after: None });
    });
}

/// A call that was let through comes back after others have opened the circuit, either way.
#[test]
fn a_late_result_from_before_the_circuit_opened_changes_nothing() {
    runtime().block_on(async {
        for is_well in [true, false] {
            let bench = Bench::new(4);
            let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let slow = {
                let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                scripted("one", move |_, _, _| {
                    let (begun, go) = (Arc::clone(&begun), Arc::clone(&go));
                    async move {
                        begun.notify_one();
                        go.notified().await;
                        if is_well {
                            Ok(vec![hit("a", 1, 1.0)])
                        } else {
                            Err(StrategyError::Failed("ill".to_owned()))
                        }
                    }
                })
            };
            let ill = scripted("one", |_, _, _| {
                std::future::ready(Err(StrategyError::Failed("ill".to_owned())))
            });
            let (ask, scope) = (ask(3), free());
            let slow = [(slow, FOREVER)];
            let never = Deadline::never();
            let run = bench.executor.run(&ask, &slow, &never, &scope);
            let others = async {
                begun.notified().await;
                for _ in 0..3 {
                    let ill = [(Arc::clone(&ill), FOREVER)];
                    bench.executor.run(&ask, &ill, &Deadline::never(), &scope).await;
                }
                assert!(bench.breakers.is_open("context/one"));
                go.notify_one();
            };
            let (found, ()) = tokio::join!(run, others);
            // What it found is shown all the same: it was asked while it might be.
            assert_eq!(
                matches!(found[0].outcome, StrategyOutcome::Ran { hits: 1 }),
                is_well
            );
            assert!(bench.breakers.is_open("context/one"));
            assert_eq!(bench.counted("one"), (3, 0, 1, 0));
        }
    });
}
