//! What a breaker must guarantee while it is fast: one probe at a time, and no influence for a call from before it
//! opened.

use std::future::{poll_fn, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use failsafe::CircuitBreaker as _;
use kernel::{BreakerSettings, Circuit, CircuitBreaker, SystemClock};
use tower::util::BoxCloneSyncService;
use tower::{Layer as _, Service as _, service_fn};

use crate::executor::Executor;
use crate::report::{BarVerdict, Table};

const CALLERS: usize = 64;
const THRESHOLD: u32 = 3;
/// Long enough for a check right after opening, short enough to wait for.
const COOLDOWN: Duration = Duration::from_millis(500);
/// How long an admitted caller waits for the others before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The protected call. It succeeds or fails.
type Work = Box<dyn FnOnce() -> Result<(), Failed> + Send>;

#[derive(Debug)]
struct Failed;

type Make = fn() -> Result<Arc<dyn Subject>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    LetThrough,
    Refused,
}

trait Subject: Send + Sync {
    fn call(&self, work: Work) -> Answer;
}

struct Ours(Circuit);
struct Recloser(recloser::Recloser);
struct Failsafe(failsafe::StateMachine<FailsafePolicy, ()>);
struct Tower {
    service: BoxCloneSyncService<Work, (), tower_resilience_circuitbreaker::CircuitBreakerError<Failed>>,
    /// Unless it is closed, it waits for its lock with tokio's timer.
    timer: tokio::runtime::Runtime,
}

type FailsafePolicy = failsafe::failure_policy::ConsecutiveFailures<failsafe::backoff::Constant>;

impl Subject for Ours {
    fn call(&self, work: Work) -> Answer {
        let Ok(permit) = self.0.acquire() else {
            return Answer::Refused;
        };
        match work() {
            Ok(()) => permit.success(),
            Err(Failed) => permit.failure(),
        }
        Answer::LetThrough
    }
}

impl Subject for Recloser {
    fn call(&self, work: Work) -> Answer {
        match self.0.call(work) {
            Err(recloser::Error::Rejected) => Answer::Refused,
            Ok(()) | Err(recloser::Error::Inner(Failed)) => Answer::LetThrough,
        }
    }
}

impl Subject for Failsafe {
    fn call(&self, work: Work) -> Answer {
        match self.0.call(work) {
            Err(failsafe::Error::Rejected) => Answer::Refused,
            Ok(()) | Err(failsafe::Error::Inner(Failed)) => Answer::LetThrough,
        }
    }
}

impl Subject for Tower {
    fn call(&self, work: Work) -> Answer {
        let mut service = self.service.clone();
        let _timer = self.timer.enter();
        let called = Executor::for_this_thread().block_on(async {
            poll_fn(|context| service.poll_ready(context)).await?;
            service.call(work).await
        });
        match called {
            Err(tower_resilience_circuitbreaker::CircuitBreakerError::OpenCircuit) => Answer::Refused,
            Ok(()) | Err(_) => Answer::LetThrough,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    let_into_half_open: usize,
    late_success_closes_it_when_open: bool,
    late_success_closes_it_during_a_probe: bool,
}

pub(crate) fn measure() -> Result<Table> {
    let makes: [Make; 4] = [ours, recloser, failsafe, tower];
    let seen = makes.into_iter().map(look_at).collect::<Result<Vec<Seen>>>()?;
    let mut table = Table::with_columns(
        "Circuit breaker: what it keeps",
        "64 threads meet at a barrier and call a breaker whose cooldown has just ended; whoever is let through \
         stays inside until all have had their answer. A late success: a call begins, others fail and open the \
         breaker, then that first call succeeds, either at once or when the cooldown is over and a probe is \
         running. In the second case the probe then fails, and a breaker that still lets calls through was closed \
         by the late success.",
        &[
            "question",
            "tidelock",
            "recloser",
            "failsafe",
            "tower-resilience",
            "bar",
            "met",
        ],
    );
    question(&mut table, "let into half-open, of 64", &seen, "1", |seen| {
        seen.let_into_half_open.to_string()
    });
    let yes_or_no = |is_so| if is_so { "yes" } else { "no" }.to_owned();
    question(
        &mut table,
        "a late success closes it: just opened",
        &seen,
        "no",
        |seen| yes_or_no(seen.late_success_closes_it_when_open),
    );
    question(
        &mut table,
        "a late success closes it: during a probe",
        &seen,
        "no",
        |seen| yes_or_no(seen.late_success_closes_it_during_a_probe),
    );
    Ok(table)
}

/// One row. The first breaker is ours and has to give the answer that the bar demands.
fn question(table: &mut Table, question: &str, seen: &[Seen], bar: &str, answer: impl Fn(&Seen) -> String) {
    let answers: Vec<String> = seen.iter().map(answer).collect();
    let verdict = BarVerdict::from(answers[0] == bar);
    let ends = [bar.to_owned(), verdict.to_string()];
    table.row(
        [question.to_owned()]
            .into_iter()
            .chain(answers)
            .chain(ends)
            .collect(),
    );
    table.judge(verdict);
}

fn look_at(make: Make) -> Result<Seen> {
    Ok(Seen {
        let_into_half_open: race_into_half_open(&make()?)?,
        late_success_closes_it_when_open: late_success_when_open(&make()?)?,
        late_success_closes_it_during_a_probe: late_success_during_a_probe(&make()?)?,
    })
}

/// Opens the breaker, lets the cooldown pass, and counts the admitted callers.
fn race_into_half_open(subject: &Arc<dyn Subject>) -> Result<usize> {
    open(subject.as_ref());
    ensure!(
        subject.call(Box::new(|| Ok(()))) == Answer::Refused,
        "an open breaker let a call through"
    );
    thread::sleep(COOLDOWN + COOLDOWN / 10);
    let barrier = Barrier::new(CALLERS);
    let answered = Arc::new(AtomicUsize::new(0));
    let answers: Vec<Answer> = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| {
                    let inside = Arc::clone(&answered);
                    barrier.wait();
                    let answer = subject.call(Box::new(move || {
                        inside.fetch_add(1, Ordering::AcqRel);
                        wait_for_all(&inside)
                    }));
                    if answer == Answer::Refused {
                        answered.fetch_add(1, Ordering::AcqRel);
                    }
                    answer
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap_or(Answer::Refused))
            .collect()
    });
    ensure!(answered.load(Ordering::Acquire) == CALLERS, "a caller was lost");
    Ok(answers
        .into_iter()
        .filter(|answer| *answer == Answer::LetThrough)
        .count())
}

fn wait_for_all(answered: &AtomicUsize) -> Result<(), Failed> {
    let given_up = Instant::now() + PATIENCE;
    while answered.load(Ordering::Acquire) < CALLERS {
        if Instant::now() > given_up {
            return Err(Failed);
        }
        thread::yield_now();
    }
    Ok(())
}

/// A call succeeds after others have opened the breaker. Is the breaker closed then?
fn late_success_when_open(subject: &Arc<dyn Subject>) -> Result<bool> {
    let others = Arc::clone(subject);
    let answer = subject.call(Box::new(move || {
        open(others.as_ref());
        Ok(())
    }));
    ensure!(answer == Answer::LetThrough, "a closed breaker refused a call");
    Ok(subject.call(Box::new(|| Ok(()))) == Answer::LetThrough)
}

/// Like the above, but the success arrives while a probe is running, and then the probe fails. Is the breaker closed?
fn late_success_during_a_probe(subject: &Arc<dyn Subject>) -> Result<bool> {
    let (probe_is_inside, inside) = mpsc::sync_channel(1);
    let (let_probe_fail, may_fail) = mpsc::sync_channel::<()>(1);
    let others = Arc::clone(subject);
    let probe = Arc::new(Mutex::new(None));
    let started = Arc::clone(&probe);
    let answer = subject.call(Box::new(move || {
        open(others.as_ref());
        thread::sleep(COOLDOWN + COOLDOWN / 10);
        let handle = thread::spawn(move || {
            others.call(Box::new(move || {
                // The other end waits for this, or has given up; either way the probe goes on to fail.
                probe_is_inside.send(()).ok();
                may_fail.recv_timeout(PATIENCE).ok();
                Err(Failed)
            }))
        });
        inside.recv_timeout(PATIENCE).ok();
        started
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(handle);
        Ok(())
    }));
    ensure!(answer == Answer::LetThrough, "a closed breaker refused a call");
    let_probe_fail.send(()).context("the probe is gone")?;
    let handle = probe.lock().unwrap_or_else(PoisonError::into_inner).take();
    let probed = handle.context("the probe was never started")?.join();
    ensure!(
        matches!(probed, Ok(Answer::LetThrough)),
        "the probe was refused: {probed:?}"
    );
    Ok(subject.call(Box::new(|| Ok(()))) == Answer::LetThrough)
}

/// Fails until the breaker refuses.
fn open(subject: &dyn Subject) {
    // One call more than the threshold, since recloser judges only once its ring is full.
    for _ in 0..=THRESHOLD {
        subject.call(Box::new(|| Err(Failed)));
    }
}

fn ours() -> Result<Arc<dyn Subject>> {
    let settings = BreakerSettings {
        failure_threshold: THRESHOLD,
        cooldown: COOLDOWN,
        jitter: 0.0,
        ..Default::default()
    };
    let registry = CircuitBreaker::new(settings, SystemClock::shared())?;
    Ok(Arc::new(Ours(registry.circuit("peer"))))
}

fn recloser() -> Result<Arc<dyn Subject>> {
    let recloser = recloser::Recloser::custom()
        .closed_len(THRESHOLD as usize)
        .half_open_len(1)
        .open_wait(COOLDOWN)
        .build();
    Ok(Arc::new(Recloser(recloser)))
}

fn failsafe() -> Result<Arc<dyn Subject>> {
    let policy =
        failsafe::failure_policy::consecutive_failures(THRESHOLD, failsafe::backoff::constant(COOLDOWN));
    Ok(Arc::new(Failsafe(failsafe::StateMachine::new(policy, ()))))
}

fn tower() -> Result<Arc<dyn Subject>> {
    let layer = tower_resilience_circuitbreaker::CircuitBreakerLayer::builder()
        .consecutive_failures(THRESHOLD as usize)
        .wait_duration_in_open(COOLDOWN)
        .permitted_calls_in_half_open(1)
        .build()?;
    let service = layer.layer(service_fn(|work: Work| ready(work())));
    let timer = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()?;
    Ok(Arc::new(Tower {
        service: BoxCloneSyncService::new(service),
        timer,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A breaker with both faults: every caller is a probe, and any success closes it.
    struct Faulty(Mutex<(u32, Option<Instant>)>);

    impl Subject for Faulty {
        fn call(&self, work: Work) -> Answer {
            if self
                .0
                .lock()
                .unwrap()
                .1
                .is_some_and(|until| Instant::now() < until)
            {
                return Answer::Refused;
            }
            let ended = work();
            let mut state = self.0.lock().unwrap();
            match ended {
                Ok(()) => *state = (0, None),
                Err(Failed) => state.0 += 1,
            }
            if state.0 >= THRESHOLD {
                state.1 = Some(Instant::now() + COOLDOWN);
            }
            Answer::LetThrough
        }
    }

    #[test]
    fn the_questions_tell_a_faulty_breaker_from_ours() {
        let faulty: Make = || Ok(Arc::new(Faulty(Mutex::new((0, None)))));
        let expected = Seen {
            let_into_half_open: CALLERS,
            late_success_closes_it_when_open: true,
            late_success_closes_it_during_a_probe: true,
        };
        assert_eq!(look_at(faulty).unwrap(), expected);
        let expected = Seen {
            let_into_half_open: 1,
            late_success_closes_it_when_open: false,
            late_success_closes_it_during_a_probe: false,
        };
        assert_eq!(look_at(ours).unwrap(), expected);
    }
}
