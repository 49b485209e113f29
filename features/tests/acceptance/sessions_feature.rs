//! How `sessions.feature` is run: on the real service, and on the algorithms of the reports.

use std::{fmt, sync::Arc, time::Duration};

use cucumber::World;
use eventlog::Log;
use sessions::Sharing;

use crate::{
    engines::{Database, postgres_is_here},
    plans_kit::{Running, Site},
    runner::{Tally, Which, run},
    sessions_faulty::{Fault, Faulty},
    sessions_runtime::{Ours, Reader, Runtime},
};

#[test]
fn sessions() {
    let tally = run::<SessionsWorld>("sessions.feature", Which::AllBut("two-daemons"), |world| {
        world.fault = None;
    });
    assert_eq!(
        tally,
        Tally {
            passed: 12 * engines(),
            failed: 0
        }
    );
}

#[test]
fn two_daemons_on_one_database() {
    let tally = run::<SessionsWorld>("sessions.feature", Which::Those("two-daemons"), |world| {
        world.fault = None;
    });
    let passed = if postgres_is_here() { 4 } else { 0 };
    assert_eq!(tally, Tally { passed, failed: 0 });
}

#[test]
fn the_clear_of_the_report_is_caught() {
    caught("decide-then-write", 3, |world| {
        world.fault = Some(Fault::DecideThenWrite)
    });
}

#[test]
fn the_repair_that_the_report_proposes_is_caught() {
    caught("look-again", 2, |world| world.fault = Some(Fault::LookAgain));
}

#[test]
fn the_thirty_seconds_of_the_repair_that_was_built_are_caught() {
    caught("thirty-seconds", 1, |world| {
        world.fault = Some(Fault::ThirtySeconds)
    });
}

#[test]
fn a_check_and_then_a_start_are_caught() {
    caught("check-then-start", 2, |world| {
        world.fault = Some(Fault::CheckThenStart)
    });
}

#[test]
fn a_partial_copy_that_is_saved_is_caught() {
    caught("partial-save", 1, |world| world.fault = Some(Fault::PartialSave));
}

#[test]
fn a_stop_that_keeps_the_claim_is_caught() {
    caught("stop-keeps-the-claim", 1, |world| {
        world.fault = Some(Fault::StopKeepsTheClaim);
    });
}

#[test]
fn a_stop_that_frees_at_once_is_caught() {
    caught("stop-frees-at-once", 1, |world| {
        world.fault = Some(Fault::StopFreesAtOnce)
    });
}

#[test]
fn a_queue_that_drops_is_caught() {
    caught("drop-when-full", 1, |world| {
        world.fault = Some(Fault::DropWhenFull)
    });
}

#[test]
fn a_stream_without_an_end_is_caught() {
    caught("no-end", 1, |world| world.fault = Some(Fault::NoEnd));
}

fn caught(fault: &'static str, scenarios: usize, set_up: fn(&mut SessionsWorld)) {
    let tally = run::<SessionsWorld>("sessions.feature", Which::WhatCatchesThe(fault), set_up);
    assert_eq!(
        tally,
        Tally {
            passed: 0,
            failed: scenarios * engines()
        }
    );
}

fn engines() -> usize {
    if postgres_is_here() { 2 } else { 1 }
}

/// A turn that was started, and its session.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    pub(crate) session: String,
    pub(crate) turn: String,
}

#[derive(Default, World)]
pub(crate) struct SessionsWorld {
    /// Which algorithm of the reports is looked at; ours if none.
    pub(crate) fault: Option<Fault>,
    database: Option<Database>,
    site: Option<Arc<Site>>,
    plans: Option<Running>,
    pub(crate) runtime: Option<Arc<dyn Runtime>>,
    /// Another daemon on the same log.
    pub(crate) other: Option<Arc<dyn Runtime>>,
    /// The life before, which was killed.
    pub(crate) dead: Option<Arc<dyn Runtime>>,
    /// What was started, one for each point.
    pub(crate) begun: Vec<Begun>,
    /// What two starts came to, one for each point.
    pub(crate) both: Vec<[Result<String, String>; 2]>,
    pub(crate) session: String,
    pub(crate) turns: Vec<String>,
    pub(crate) reader: Option<Box<dyn Reader>>,
}

impl fmt::Debug for SessionsWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SessionsWorld")
            .field("fault", &self.fault)
            .field("begun", &self.begun)
            .field("both", &self.both)
            .finish_non_exhaustive()
    }
}

impl SessionsWorld {
    pub(crate) async fn open(&mut self, engine: &str) {
        let database = Database::open(engine).await;
        if let Some(fault) = self.fault {
            self.runtime = Some(Arc::new(Faulty::new(fault, &database.log)));
        } else {
            let site = Arc::new(Site::of("echo hello > README.md"));
            let plans = site.open_on(database.log.clone()).await;
            let sharing = match engine {
                "Postgres" => Sharing::WithOthers,
                _ => Sharing::Alone,
            };
            let ours = Ours::open_again(&database.log, &plans.plans, &site, sharing).await;
            self.runtime = Some(Arc::new(ours));
            self.site = Some(site);
            self.plans = Some(plans);
        }
        self.database = Some(database);
    }

    /// Starts daemons of two homes on one log.
    pub(crate) async fn open_two(&mut self, engine: &str) {
        self.open(engine).await;
        let first = self.another(&self.database().log).await;
        let other = self.another(&self.database().other).await;
        (self.runtime, self.other) = (Some(first), Some(other));
    }

    /// A daemon of another home, on the same log.
    pub(crate) async fn another(&self, log: &Log) -> Arc<dyn Runtime> {
        let (Some(site), Some(plans)) = (&self.site, &self.plans) else {
            panic!("a step before has opened the first")
        };
        Arc::new(Ours::open(log, &plans.plans, site, Sharing::WithOthers).await)
    }

    /// A daemon that was killed and started again, and whose lease of before runs out in so long.
    pub(crate) async fn after_kill(&self, lease: Duration) -> Arc<dyn Runtime> {
        let (Some(site), Some(plans)) = (&self.site, &self.plans) else {
            panic!("a step before has opened the first")
        };
        let log = &self.database().log;
        Arc::new(Ours::open_after_kill(log, &plans.plans, site, lease).await)
    }

    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().expect("a step before has opened it")
    }

    pub(crate) fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(self.runtime.as_ref().expect("a step before has opened it"))
    }

    pub(crate) fn other(&self) -> Arc<dyn Runtime> {
        Arc::clone(self.other.as_ref().expect("a step before has opened it"))
    }

    /// How long something is waited for. What takes milliseconds here never comes with a fault.
    pub(crate) fn patience(&self) -> Duration {
        match self.fault {
            None => Duration::from_secs(30),
            Some(_) => Duration::from_millis(500),
        }
    }

    /// Waits for something with a bound.
    pub(crate) async fn within<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        match tokio::time::timeout(self.patience(), work).await {
            Ok(done) => done,
            Err(_) => panic!("{what}: it has not come to that"),
        }
    }
}
