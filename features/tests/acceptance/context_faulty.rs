//! The algorithms of the report and of its siblings, in the place of the executor.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use context::{Ask, Execute, Ran, Strategy, StrategyError, StrategyOutcome};
use kernel::{Clock, Deadline, Scope, SystemClock};

use crate::{
    context_kit::MOODY,
    subjects::breaker::{Breaker as _, Unlocked},
};

/// Which fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The count of failures and the set of disabled strategies have no lock, and what is disabled stays so.
    Unlocked,
    /// A strategy that does not answer takes the findings of all others with it, and nobody is told.
    Silent,
    /// Strategies look one after the other.
    OneByOne,
}

/// How long the algorithms that wait for each strategy in turn wait for it. They have no time-out in the reports; without
/// one their scenarios would fail by never ending.
const WAIT: Duration = Duration::from_millis(200);

/// Runs strategies as the reports say.
pub(crate) struct Faulty {
    fault: Fault,
    /// The circuit of `moody`; nothing else fails.
    circuit: Unlocked,
    clock: Arc<dyn Clock>,
}

impl Faulty {
    pub(crate) fn new(fault: Fault, circuit: Unlocked) -> Self {
        Self {
            fault,
            circuit,
            clock: SystemClock::shared(),
        }
    }

    async fn look(&self, strategy: &Arc<dyn Strategy>, ask: &Arc<Ask>, scope: &Scope) -> Ran {
        let name = strategy.name();
        let has_circuit = name.as_str() == MOODY;
        let ran = |outcome, hits| Ran {
            strategy: name.clone(),
            outcome,
            took: Duration::ZERO,
            hits,
        };
        if has_circuit && self.circuit.is_open() {
            return ran(StrategyOutcome::Open { retry_after: None }, Vec::new());
        }
        let limit = Deadline::never();
        // What panics ends its task, and is heard of as an error.
        let find = {
            let (strategy, ask, scope) = (Arc::clone(strategy), Arc::clone(ask), scope.clone());
            tokio::spawn(async move { strategy.find(ask, scope, limit).await })
        };
        let abort = find.abort_handle();
        let found = tokio::select! {
            found = find => {
                found.unwrap_or_else(|_| Err(StrategyError::Failed("it panicked".to_owned())))
            }
            () = Deadline::after(&self.clock, WAIT).passed(), if self.fault != Fault::Unlocked => {
                abort.abort();
                Err(StrategyError::Cancelled)
            }
        };
        match found {
            Ok(hits) => {
                if has_circuit {
                    self.circuit.record_success();
                }
                ran(StrategyOutcome::Ran { hits: hits.len() }, hits)
            }
            Err(error) => {
                if has_circuit {
                    self.circuit.record_failure();
                }
                let why = error.to_string();
                ran(StrategyOutcome::Failed { why }, Vec::new())
            }
        }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Faulty({:?})", self.fault)
    }
}

#[async_trait]
impl Execute for Faulty {
    async fn run(
        &self,
        ask: &Arc<Ask>,
        strategies: &[(Arc<dyn Strategy>, Duration)],
        _: &Deadline,
        scope: &Scope,
    ) -> Vec<Ran> {
        let mut all = Vec::new();
        for (strategy, _) in strategies {
            all.push(self.look(strategy, ask, scope).await);
        }
        let is_found = |ran: &Ran| matches!(ran.outcome, StrategyOutcome::Ran { .. });
        if self.fault == Fault::Silent && !all.iter().all(is_found) {
            for ran in &mut all {
                ran.hits.clear();
                ran.outcome = StrategyOutcome::Ran { hits: 0 };
            }
        }
        all
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}
