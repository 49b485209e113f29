//! A handler that does what it is told, and a board on which everything stands that it was asked to do.

use std::{
    sync::{Arc, Mutex, mpsc as blocking},
    time::Duration,
};

use async_trait::async_trait;
use jobs::{AttemptOutcome, AttemptVerdict, Handler, Output, Work};
use kernel::{CancellationToken, Deadline, Scope, Slot, SystemClock};
use protocol::{JobId, JobProgress};
use serde_json::Value;
use tokio::sync::mpsc;

/// Far more than any step takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The name of the handler.
pub(crate) const HANDLER: &str = "scripted";
/// How many orders may wait for one run. A test gives a few.
const ORDERS: usize = 16;

/// What a job does; it is its payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Script {
    /// It is done at once.
    Succeed,
    /// It fails at once.
    Fail,
    /// It fails at once, and says that there is no hope.
    GiveUp,
    /// It panics at once.
    Panic,
    /// It waits until it is told to stop, and stops.
    UntilStopped,
    /// It does what the test orders, and nothing else: not even stop.
    Ordered,
    /// Its first attempt holds the thread of its daemon, and so the whole daemon, until the test lets it go. The next
    /// ones do what the test orders.
    Stall,
}

impl Script {
    const ALL: [(Self, &str); 7] = [
        (Self::Succeed, "\"succeed\""),
        (Self::Fail, "\"fail\""),
        (Self::GiveUp, "\"give up\""),
        (Self::Panic, "\"panic\""),
        (Self::UntilStopped, "\"until stopped\""),
        (Self::Ordered, "\"ordered\""),
        (Self::Stall, "\"stall\""),
    ];

    pub(crate) fn payload(self) -> Vec<u8> {
        let (_, text) = Self::ALL.iter().find(|(script, _)| *script == self).unwrap();
        text.as_bytes().to_vec()
    }

    pub(crate) fn of(payload: &[u8]) -> Self {
        let known = Self::ALL.iter().find(|(_, text)| text.as_bytes() == payload);
        known.expect("a payload of these tests").0
    }
}

/// What a run is told to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// To end like this.
    End(AttemptVerdict),
    /// To wait until it is told to stop, and to stop then.
    ObeyStop,
}

/// One run of the handler.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// On which daemon.
    pub(crate) daemon: Arc<str>,
    pub(crate) job: JobId,
    pub(crate) title: String,
    /// What tells it to stop.
    pub(crate) scope: Scope,
    /// Where it says how far it is; also after its end, when nobody listens.
    pub(crate) output: Option<Output>,
    orders: mpsc::Sender<Order>,
    release: blocking::SyncSender<AttemptVerdict>,
}

impl Run {
    pub(crate) fn order(&self, order: Order) {
        self.orders.try_send(order).expect("the run takes orders");
    }

    /// Lets a stalled daemon go on; its handler has ended like this.
    pub(crate) fn release(&self, verdict: AttemptVerdict) {
        self.release.try_send(verdict).expect("the run is stalled");
    }
}

/// What was run, in the order of the starts, and how many run at this moment.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    shown: Slot<Shown>,
    /// Guards the one who writes; held only while a run is entered or left.
    writing: Arc<Mutex<()>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) runs: Vec<Arc<Run>>,
    /// How many are under way.
    pub(crate) busy: usize,
    /// The most that were under way at once.
    pub(crate) peak: usize,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            shown: Slot::new(Shown::default()),
            writing: Arc::default(),
        }
    }
}

impl Board {
    pub(crate) fn handler(&self, daemon: &str) -> Arc<dyn Handler> {
        Arc::new(Scripted {
            daemon: Arc::from(daemon),
            board: self.clone(),
        })
    }

    pub(crate) fn shown(&self) -> Arc<Shown> {
        self.shown.read().state
    }

    /// The runs of one job.
    pub(crate) fn runs_of(&self, job: JobId) -> Vec<Arc<Run>> {
        let shown = self.shown();
        shown.runs.iter().filter(|run| run.job == job).cloned().collect()
    }

    /// Waits for the how-manieth run of a job, from 1.
    pub(crate) async fn run(&self, job: JobId, number: usize) -> Arc<Run> {
        let has_begun = |shown: &Shown| shown.runs.iter().filter(|run| run.job == job).count() >= number;
        self.until("a run begins", has_begun).await;
        self.runs_of(job).remove(number - 1)
    }

    /// Waits until the board is as wanted.
    pub(crate) async fn until(&self, what: &str, is_as_wanted: impl Fn(&Shown) -> bool + Unpin) {
        let deadline = Deadline::after(&SystemClock::shared(), PATIENCE);
        let scope = CancellationToken::new().scope();
        let waited = self.shown.wait_until(is_as_wanted, deadline, &scope).await;
        assert!(
            waited.is_ok(),
            "{what}: this has not happened; {:?}",
            self.shown()
        );
    }

    /// Plays the script of a job, on behalf of a daemon.
    pub(crate) async fn play(&self, daemon: &Arc<str>, part: Part) -> AttemptOutcome {
        let (orders, mut ordered) = mpsc::channel(ORDERS);
        let (release, released) = blocking::sync_channel(1);
        let run = Run {
            daemon: Arc::clone(daemon),
            job: part.job,
            title: part.title,
            scope: part.scope.clone(),
            output: part.output.clone(),
            orders,
            release,
        };
        self.change(|shown| {
            shown.runs.push(Arc::new(run));
            shown.busy += 1;
            shown.peak = shown.peak.max(shown.busy);
        });
        // Also when the daemon is killed: then this is dropped half-way.
        let _busy = Busy(self);
        let verdict = match part.script {
            Script::Succeed => AttemptVerdict::Succeeded,
            Script::Fail => AttemptVerdict::Failed,
            Script::GiveUp => AttemptVerdict::FailedPermanently,
            Script::Panic => panic!("as it was told"),
            Script::Stall if part.attempt == 1 => released.recv().unwrap_or(AttemptVerdict::Stopped),
            Script::UntilStopped => stopped(&part.scope).await,
            Script::Ordered | Script::Stall => match ordered.recv().await {
                Some(Order::End(verdict)) => verdict,
                Some(Order::ObeyStop) | None => stopped(&part.scope).await,
            },
        };
        AttemptOutcome {
            verdict,
            text: format!("{verdict:?} on {daemon}"),
            result: Value::Null,
        }
    }

    /// Forgets where earlier runs said something: as long as that is known, their log is open.
    pub(crate) fn forget_outputs(&self) {
        self.change(|shown| {
            for run in &mut shown.runs {
                Arc::make_mut(run).output = None;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Shown)) {
        let _writing = self.writing.lock().unwrap();
        let seen = self.shown.read();
        let mut next = (*seen.state).clone();
        change(&mut next);
        self.shown.transition(seen.generation, next).unwrap();
    }
}

/// What a run has to do, and with what.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) title: String,
    pub(crate) script: Script,
    pub(crate) scope: Scope,
    pub(crate) output: Option<Output>,
}

pub(crate) fn progress(done: u64) -> JobProgress {
    JobProgress {
        done,
        total: None,
        text: String::new(),
    }
}

async fn stopped(scope: &Scope) -> AttemptVerdict {
    scope.wait().await;
    AttemptVerdict::Stopped
}

/// A run that is under way.
struct Busy<'a>(&'a Board);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.change(|shown| shown.busy -= 1);
    }
}

#[derive(Debug)]
struct Scripted {
    daemon: Arc<str>,
    board: Board,
}

#[async_trait]
impl Handler for Scripted {
    async fn run(&self, work: Work) -> AttemptOutcome {
        let part = Part {
            job: work.job,
            attempt: work.attempt,
            title: work.title,
            script: Script::of(&work.payload),
            scope: work.scope,
            output: Some(work.output),
        };
        self.board.play(&self.daemon, part).await
    }
}
