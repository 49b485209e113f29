//! How `jobs.feature` is run: on the real service, and on the algorithms of the reports.

use std::{fmt, sync::Arc, time::Duration};

use cucumber::World;
use eventlog::{Lease, Version};
use jobs::{Job, Jobs, NewJob, Sharing, State};
use kernel::{Clock, ManualClock};
use protocol::JobState;
use protocol::{HomeId, JobId};
use tokio::task::JoinHandle;

use crate::{
    engines::{Database, postgres_is_here},
    job_subjects::{
        board::{Board, Script},
        daemon::{Daemon, LEASE, Setting, attempt, get, submit},
    },
    jobs_faulty::{Faulty, Row},
    runner::{Tally, Which, run},
};

#[test]
fn jobs() {
    let tally = run::<JobWorld>("jobs.feature", Which::All, |world| world.subject = Subject::Ours);
    assert_eq!(
        tally,
        Tally {
            passed: 18 * engines(),
            failed: 0
        }
    );
}

#[test]
fn the_poll_then_mark_of_the_report_is_caught() {
    caught("poll-then-mark", 2, |world| world.subject = Subject::PollThenMark);
}

#[test]
fn the_whole_row_heartbeat_of_the_report_is_caught() {
    caught("whole-row-heartbeat", 2, |world| {
        world.subject = Subject::WholeRowHeartbeat
    });
}

#[test]
fn a_reset_and_a_late_end_that_nothing_fences_are_caught() {
    caught("unfenced-reset", 5, |world| {
        world.subject = Subject::UnfencedReset
    });
}

fn caught(fault: &'static str, scenarios: usize, set_up: fn(&mut JobWorld)) {
    let tally = run::<JobWorld>("jobs.feature", Which::WhatCatchesThe(fault), set_up);
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

/// Who has the jobs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Subject {
    #[default]
    Ours,
    /// Workers look for queued jobs, and mark what they have found.
    PollThenMark,
    /// A heartbeat writes the row back that it has read.
    WholeRowHeartbeat,
    /// Who starts puts everything back that is said to run, and who ends writes over whatever there is.
    UnfencedReset,
}

/// The names of the two daemons.
pub(crate) const FIRST: &str = "the first";
pub(crate) const OTHER: &str = "the other";
/// How long a job is delayed that two shall see.
pub(crate) const DELAY: Duration = Duration::from_secs(1);

#[derive(World)]
#[world(init = Self::new)]
pub(crate) struct JobWorld {
    pub(crate) subject: Subject,
    pub(crate) engine: String,
    pub(crate) database: Option<Database>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) board: Board,
    homes: [HomeId; 2],
    pub(crate) first: Option<Daemon>,
    pub(crate) other: Option<Daemon>,
    pub(crate) job: Option<JobId>,
    pub(crate) script: Script,
    /// The first claim, as the log had it.
    pub(crate) claimed: Option<Job>,
    /// What the workers of the reports have read or claimed.
    pub(crate) rows: Vec<(Faulty, Row)>,
    pub(crate) heartbeat: Option<Row>,
    pub(crate) draining: Option<JoinHandle<()>>,
}

impl fmt::Debug for JobWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("JobWorld")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

impl JobWorld {
    fn new() -> Self {
        Self {
            subject: Subject::Ours,
            engine: String::new(),
            database: None,
            clock: ManualClock::new(),
            board: Board::default(),
            homes: [HomeId::generate(), HomeId::generate()],
            first: None,
            other: None,
            job: None,
            script: Script::Ordered,
            claimed: None,
            rows: Vec::new(),
            heartbeat: None,
            draining: None,
        }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.subject == Subject::Ours
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    pub(crate) fn database(&self) -> &Database {
        self.database.as_ref().expect("a step before has opened a log")
    }

    pub(crate) fn id(&self) -> JobId {
        self.job.expect("a step before has submitted a job")
    }

    /// The service that a test asks: the other one, if there is one, since the first may be stalled or dead.
    pub(crate) fn jobs(&self) -> &Jobs {
        let daemon = self.other.as_ref().or(self.first.as_ref());
        &daemon.expect("a step before has started a daemon").jobs
    }

    pub(crate) async fn now(&self) -> Job {
        get(self.jobs(), self.id()).await
    }

    pub(crate) async fn open(&mut self, engine: &str) {
        self.engine = engine.to_owned();
        self.database = Some(Database::open_at(engine, self.clock()).await);
        self.start_first().await;
    }

    pub(crate) async fn start_first(&mut self) {
        let setting = self.setting(FIRST, self.homes[0]);
        self.first = Some(Daemon::start(&setting).await);
    }

    pub(crate) async fn start_other(&mut self) {
        // Beside the workers of the reports there is one service that claims nothing; it is enough to look.
        if self.is_ours() {
            let setting = self.setting(OTHER, self.homes[1]);
            self.other = Some(Daemon::start(&setting).await);
        }
    }

    fn setting(&self, name: &'static str, home: HomeId) -> Setting {
        let log = match name {
            FIRST => &self.database().log,
            _ => &self.database().other,
        };
        let (sharing, max_workers) = match self.subject {
            Subject::Ours => (Sharing::WithOthers, 1),
            _ => (Sharing::Alone, 0),
        };
        Setting {
            name,
            log: log.clone(),
            sharing,
            home,
            max_workers,
            lease: LEASE,
            clock: self.clock(),
            board: self.board.clone(),
        }
    }

    pub(crate) fn faulty(&self, name: &str) -> Faulty {
        Faulty {
            name: Arc::from(name),
            log: self.database().log.clone(),
            board: self.board.clone(),
        }
    }

    /// Submits a job, and waits until the first daemon runs it.
    pub(crate) async fn run_first(&mut self, new: NewJob) {
        self.script = Script::of(&new.payload);
        let id = submit(self.jobs(), new).await;
        self.job = Some(id);
        if !self.is_ours() {
            let worker = self.faulty(FIRST);
            let row = worker.mark(&worker.poll(id).await).await;
            self.rows.push((worker, row));
        }
        self.board.run(id, 1).await;
        self.claimed = Some(self.now().await);
    }

    /// Lets the lease of the first daemon run out: by its clock, or by hand where the clock is that of a server.
    pub(crate) async fn end_lease(&self) {
        let claimed = self.claimed.as_ref().expect("a step before has run a job");
        let worker = &attempt(claimed).worker;
        if self.engine == "Postgres" {
            let lease = Lease {
                key: Arc::clone(&worker.lease_key),
                owner: Arc::clone(&worker.home),
                token: Version::from_u64(worker.lease_token),
            };
            // Not by the handle of the first one, which may be stalled.
            self.database().other.release(&lease).await.unwrap();
        }
        self.clock.advance(LEASE + Duration::from_secs(1));
    }

    /// Lets time pass until the job is as wanted.
    pub(crate) async fn comes_to(&self, what: &str, is_as_wanted: impl Fn(&Job) -> bool) {
        let look = || async { is_as_wanted(&self.now().await) };
        self.passing(Duration::from_secs(1), what, look).await;
    }

    /// Lets time pass, step by step, until it is as wanted. Between two steps there is so much real time that nobody
    /// loses a lease who is only slow.
    pub(crate) async fn passing<F: Future<Output = bool>>(
        &self,
        step: Duration,
        what: &str,
        look: impl Fn() -> F,
    ) {
        for _ in 0..100 {
            for _ in 0..100 {
                if look().await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.clock.advance(step);
        }
        panic!("{what}: it has not come to that; {:?}", self.now().await);
    }
}

/// Whether a job runs as such an attempt.
pub(crate) fn runs_as(job: &Job, number: u32) -> bool {
    matches!(&job.record.state, State::Running { attempt } if attempt.number == number)
}

pub(crate) fn is_in(state: &str) -> impl Fn(&Job) -> bool + '_ {
    move |job| job.record.state.name().as_str() == state
}

pub(crate) fn name(job: &Job) -> JobState {
    job.record.state.name()
}
