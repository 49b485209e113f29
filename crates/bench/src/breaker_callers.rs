//! A caller for each circuit breaker: what one thread holds, and how it makes a call that succeeds or fails.

use std::future::{poll_fn, ready};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use failsafe::CircuitBreaker as _;
use failsafe::backoff::Constant;
use failsafe::failure_policy::ConsecutiveFailures;
use kernel::{BreakerSettings, Circuit, CircuitBreaker, SystemClock};
use tower::util::service_fn;
use tower::{Layer as _, Service};
use tower_resilience_circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};

use crate::executor::Executor;

const NAME: &str = "peer";
const COOLDOWN: Duration = Duration::from_secs(30);
const THRESHOLD: u32 = 3;

/// How the protected call ends. It is opaque to the compiler.
type Ending = std::result::Result<u64, Failed>;

#[derive(Debug)]
pub(crate) struct Failed;

/// One thread's access to a breaker that it shares with the others.
pub(crate) trait Caller {
    fn succeed(&mut self);
    fn fail(&mut self);
}

pub(crate) trait Breaker: Sync {
    type Caller: Caller;
    fn caller(&self) -> Self::Caller;
}

fn success() -> Ending {
    Ok(black_box(1))
}

fn failure() -> Ending {
    Err(black_box(Failed))
}

pub(crate) struct ByHandle(pub(crate) Circuit);

pub(crate) struct ByName(pub(crate) CircuitBreaker);

pub(crate) fn ours() -> Result<CircuitBreaker> {
    let settings = BreakerSettings {
        failure_threshold: THRESHOLD,
        cooldown: COOLDOWN,
        ..Default::default()
    };
    Ok(CircuitBreaker::new(settings, SystemClock::shared())?)
}

pub(crate) fn handle(breaker: &CircuitBreaker) -> Circuit {
    breaker.circuit(NAME)
}

impl Breaker for ByHandle {
    type Caller = Circuit;

    fn caller(&self) -> Circuit {
        self.0.clone()
    }
}

impl Caller for Circuit {
    #[inline]
    fn succeed(&mut self) {
        if let Ok(permit) = black_box(&*self).acquire() {
            black_box(success()).ok();
            permit.success();
        }
    }

    #[inline]
    fn fail(&mut self) {
        if let Ok(permit) = black_box(&*self).acquire() {
            black_box(failure()).ok();
            permit.failure();
        }
    }
}

impl Breaker for ByName {
    type Caller = CircuitBreaker;

    fn caller(&self) -> CircuitBreaker {
        self.0.clone()
    }
}

impl Caller for CircuitBreaker {
    #[inline]
    fn succeed(&mut self) {
        if let Ok(permit) = self.acquire(black_box(NAME)) {
            black_box(success()).ok();
            permit.success();
        }
    }

    #[inline]
    fn fail(&mut self) {
        if let Ok(permit) = self.acquire(black_box(NAME)) {
            black_box(failure()).ok();
            permit.failure();
        }
    }
}

pub(crate) struct Recloser(Arc<recloser::Recloser>);

/// It has no threshold for consecutive failures, only a rate; at 1.0 only a ring full of failures opens it.
pub(crate) fn recloser() -> Recloser {
    Recloser(Arc::new(
        recloser::Recloser::custom()
            .error_rate(1.0)
            .open_wait(COOLDOWN)
            .build(),
    ))
}

impl Breaker for Recloser {
    type Caller = Self;

    fn caller(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Caller for Recloser {
    #[inline]
    fn succeed(&mut self) {
        black_box(black_box(&self.0).call(success)).ok();
    }

    #[inline]
    fn fail(&mut self) {
        black_box(black_box(&self.0).call(failure)).ok();
    }
}

pub(crate) struct Failsafe(failsafe::StateMachine<ConsecutiveFailures<Constant>, ()>);

pub(crate) fn failsafe() -> Failsafe {
    let policy =
        failsafe::failure_policy::consecutive_failures(THRESHOLD, failsafe::backoff::constant(COOLDOWN));
    Failsafe(failsafe::StateMachine::new(policy, ()))
}

impl Breaker for Failsafe {
    type Caller = Self;

    fn caller(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Caller for Failsafe {
    #[inline]
    fn succeed(&mut self) {
        black_box(black_box(&self.0).call(success)).ok();
    }

    #[inline]
    fn fail(&mut self) {
        black_box(black_box(&self.0).call(failure)).ok();
    }
}

/// The breaker of tower-resilience around a service that is always ready. The request decides how the call ends.
pub(crate) struct Tower<S>(S);

pub(crate) struct TowerCaller<S> {
    service: S,
    executor: Executor,
}

type Request = fn() -> Ending;

pub(crate) fn tower() -> Result<
    Tower<impl Service<Request, Response = u64, Error = CircuitBreakerError<Failed>> + Clone + Send + Sync>,
> {
    let layer = CircuitBreakerLayer::builder()
        .consecutive_failures(THRESHOLD as usize)
        .wait_duration_in_open(COOLDOWN)
        .permitted_calls_in_half_open(1)
        .build()?;
    Ok(Tower(layer.layer(service_fn(|ending: Request| ready(ending())))))
}

impl<S> Breaker for Tower<S>
where
    S: Service<Request, Response = u64, Error = CircuitBreakerError<Failed>> + Clone + Sync,
{
    type Caller = TowerCaller<S>;

    fn caller(&self) -> TowerCaller<S> {
        TowerCaller {
            service: self.0.clone(),
            executor: Executor::for_this_thread(),
        }
    }
}

impl<S> TowerCaller<S>
where
    S: Service<Request, Response = u64, Error = CircuitBreakerError<Failed>>,
{
    #[inline]
    fn call(&mut self, request: Request) {
        let called = self.executor.block_on(async {
            poll_fn(|context| self.service.poll_ready(context)).await?;
            self.service.call(request).await
        });
        black_box(called).ok();
    }
}

impl<S> Caller for TowerCaller<S>
where
    S: Service<Request, Response = u64, Error = CircuitBreakerError<Failed>>,
{
    #[inline]
    fn succeed(&mut self) {
        self.call(success);
    }

    #[inline]
    fn fail(&mut self) {
        self.call(failure);
    }
}
