//! Two processes on one database, one of which is killed.

use std::{
    fs::OpenOptions,
    io::Write as _,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use eventlog::{Log, PostgresOptions};
use jobs::{AttemptVerdict, Sharing};
use kernel::SystemClock;
use protocol::{HomeId, JobIfInterrupted, JobState};

use crate::subjects::{
    board::{Board, Order, Script},
    daemon::{Daemon, LEASE, Setting, ended, history, in_state, job, job_with, submit},
};

/// Says where the test server is; `cargo xtask test` starts one.
const POSTGRES_URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// Says where to report a skip.
const SKIP_REPORT_VARIABLE: &str = "TIDELOCK_SKIP_REPORT";
/// Says in which schema the worker shall work that is to be killed.
const SCHEMA_VARIABLE: &str = "TIDELOCK_TEST_WORKER_SCHEMA";
/// The lease of the worker that is killed. It is short, because it has to run out in real time.
const SHORT_LEASE: Duration = Duration::from_secs(2);

async fn setting(schema: &str, max_workers: usize, lease: Duration) -> Option<Setting> {
    let Ok(url) = std::env::var(POSTGRES_URL_VARIABLE) else {
        let reason = format!("SKIPPED: two processes, because {POSTGRES_URL_VARIABLE} is not set\n");
        print!("{reason}");
        if let Some(report) = std::env::var_os(SKIP_REPORT_VARIABLE) {
            let mut report = OpenOptions::new().append(true).create(true).open(report).unwrap();
            report.write_all(reason.as_bytes()).unwrap();
        }
        return None;
    };
    let options = PostgresOptions {
        schema: schema.to_owned(),
        ..PostgresOptions::new(url)
    };
    Some(Setting {
        name: "a process",
        log: Log::open_postgres(&options).await.unwrap(),
        sharing: Sharing::WithOthers,
        home: HomeId::generate(),
        max_workers,
        lease,
        clock: SystemClock::shared(),
        board: Board::default(),
    })
}

/// The other process, killed when the test ends, however it ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn what_a_killed_process_had_is_taken_over_by_another_one() {
    let schema = format!("jobs_processes_{}", std::process::id());
    let Some(setting) = setting(&schema, 0, LEASE).await else {
        return;
    };
    let daemon = Daemon::start(&setting).await;
    let jobs = &daemon.jobs;
    let once = submit(jobs, job("once", Script::Ordered)).await;
    let again = job_with("again", Script::Ordered, |facts| {
        facts.if_interrupted = JobIfInterrupted::Repeat;
    });
    let again = submit(jobs, again).await;
    let worker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "service_processes::the_worker_that_is_killed"])
        .env(SCHEMA_VARIABLE, &schema)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let worker = Process(worker);
    for id in [once, again] {
        in_state(jobs, id, JobState::Running).await;
    }
    drop(worker);
    jobs.set_max_workers(1).await;
    let failed = ended(jobs, once).await;
    assert_eq!(failed.record.state.name(), JobState::Failed);
    setting
        .board
        .run(again, 1)
        .await
        .order(Order::End(AttemptVerdict::Succeeded));
    ended(jobs, again).await;
    assert_eq!(
        history(jobs, once).await,
        ["submitted", "claimed", "interrupted", "failed"]
    );
    assert_eq!(
        history(jobs, again).await,
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"]
    );
}

/// What the other process does. Nobody has asked for it when all tests are run.
#[tokio::test]
async fn the_worker_that_is_killed() {
    let Ok(schema) = std::env::var(SCHEMA_VARIABLE) else {
        return;
    };
    let setting = setting(&schema, 2, SHORT_LEASE).await.unwrap();
    let _daemon = Daemon::start(&setting).await;
    let forever: Arc<tokio::sync::Notify> = Arc::default();
    forever.notified().await;
}
