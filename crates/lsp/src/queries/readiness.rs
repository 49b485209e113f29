//! Whether a server has read its workspace.
//!
//! The rules:
//!
//! 1. A server that reports its status (`experimental/serverStatus`) is ready when it reports that it is quiescent.
//!    Nothing else counts for it.
//! 2. Otherwise its work in progress decides. Until it was ready for the first time, any work counts. Afterwards, only
//!    work that has lasted for [`SETTLING`] does, so that a short check after an edit doesn't make it flap.
//! 3. When the last work that counted has ended, the server is ready [`SETTLING`] later, if no other work has begun. So
//!    a burst of short pieces counts as one.
//! 4. A server that is known to report its work has [`FIRST_WORK`] to begin. Any other server is ready at once.
//! 5. Work without a report for [`SILENCE`] no longer counts: a server may forget to end it.
//!
//! Time comes in as a parameter; [`Readiness::next_look`] says when time alone may change the state.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long a server must be quiet before it counts as ready.
const SETTLING: Duration = Duration::from_millis(500);
/// How long a server that reports its work may take to begin.
const FIRST_WORK: Duration = Duration::from_secs(3);
/// How long work counts without a report.
const SILENCE: Duration = Duration::from_secs(600);
/// How many pieces of work are tracked. Beyond that, the one that has been silent longest is dropped.
const MAX_WORK: usize = 256;
/// How much of a server's title or message is kept.
const MAX_TEXT_BYTES: usize = 512;

/// Whether a server is known to report its work after the start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expectation {
    Work,
    Nothing,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerHealth {
    Ok,
    Warning,
    /// It does not work.
    Error,
}

/// Whether answers can be trusted to be complete.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ReadyState {
    Ready,
    /// A later search may find more.
    Indexing {
        title: String,
        message: Option<String>,
        percentage: Option<u32>,
    },
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Deserialize)]
#[serde(untagged)]
enum Token {
    Number(i64),
    Text(String),
}

#[derive(Clone, Debug)]
struct Work {
    title: String,
    message: Option<String>,
    percentage: Option<u32>,
    begun: Instant,
    heard: Instant,
}

#[derive(Clone, Debug, Deserialize)]
struct WireProgress {
    token: Token,
    value: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum WireWork {
    Begin {
        title: String,
        message: Option<String>,
        percentage: Option<f64>,
    },
    Report {
        message: Option<String>,
        percentage: Option<f64>,
    },
    End {},
}

#[derive(Clone, Debug, Deserialize)]
struct Status {
    health: Option<ServerHealth>,
    quiescent: bool,
    message: Option<String>,
}

/// The readiness of one generation of a server.
#[derive(Clone, Debug)]
pub struct Readiness {
    expectation: Expectation,
    started: Instant,
    status: Option<Status>,
    work: BTreeMap<Token, Work>,
    /// When the last relevant work ended, and its title.
    ended: Option<(Instant, String)>,
    was_ready: bool,
}

impl Readiness {
    pub fn new(expectation: Expectation, now: Instant) -> Self {
        Self {
            expectation,
            started: now,
            status: None,
            work: BTreeMap::new(),
            ended: None,
            was_ready: false,
        }
    }

    /// The handshake is over: wait for the first work from now on. Earlier reports stay.
    pub(crate) fn initialized(&mut self, now: Instant) {
        self.started = now;
    }

    /// A notification `$/progress`. Other kinds of progress are ignored.
    pub fn progress(&mut self, params: &Value, now: Instant) {
        let Ok(progress) = serde_json::from_value::<WireProgress>(params.clone()) else {
            return;
        };
        let Ok(work) = serde_json::from_value::<WireWork>(progress.value) else {
            return;
        };
        self.remember(now);
        match work {
            WireWork::Begin {
                title,
                message,
                percentage,
            } => self.begin(progress.token, title, message, percentage, now),
            WireWork::Report { message, percentage } => {
                if let Some(work) = self.work.get_mut(&progress.token) {
                    work.heard = now;
                    work.message = message.map(short).or(work.message.take());
                    work.percentage = percentage.map(percent).or(work.percentage);
                }
            }
            WireWork::End {} => {
                if let Some(work) = self.work.remove(&progress.token)
                    && self.counts(&work, now)
                {
                    self.ended = Some((now, work.title));
                }
            }
        }
    }

    fn begin(
        &mut self,
        token: Token,
        title: String,
        message: Option<String>,
        percentage: Option<f64>,
        now: Instant,
    ) {
        if self.work.len() >= MAX_WORK && !self.work.contains_key(&token) {
            let silent = self.work.iter().min_by_key(|(_, work)| work.heard);
            if let Some(token) = silent.map(|(token, _)| token.clone()) {
                self.work.remove(&token);
            }
        }
        let work = Work {
            title: short(title),
            message: message.map(short),
            percentage: percentage.map(percent),
            begun: now,
            heard: now,
        };
        self.work.insert(token, work);
    }

    /// A notification `experimental/serverStatus`.
    pub fn server_status(&mut self, params: &Value, now: Instant) {
        if let Ok(status) = serde_json::from_value::<Status>(params.clone()) {
            self.remember(now);
            self.status = Some(status);
        }
    }

    /// The health that the server reports, and why.
    pub fn health(&self) -> Option<(ServerHealth, Option<&str>)> {
        let status = self.status.as_ref()?;
        Some((status.health?, status.message.as_deref()))
    }

    pub fn state(&self, now: Instant) -> ReadyState {
        if let Some(status) = &self.status {
            return match status.quiescent {
                true => ReadyState::Ready,
                false => self.busy(now).unwrap_or_else(|| ReadyState::Indexing {
                    title: "loading the workspace".to_owned(),
                    message: status.message.clone().map(short),
                    percentage: None,
                }),
            };
        }
        if let Some(busy) = self.busy(now) {
            return busy;
        }
        let settling = self
            .ended
            .as_ref()
            .filter(|(at, _)| now.saturating_duration_since(*at) < SETTLING);
        match settling {
            Some((_, title)) => ReadyState::Indexing {
                title: title.clone(),
                message: None,
                percentage: None,
            },
            None if self.awaits_first_work(now) => ReadyState::Indexing {
                title: "starting".to_owned(),
                message: None,
                percentage: None,
            },
            None => ReadyState::Ready,
        }
    }

    /// When the state may change without a report.
    pub fn next_look(&self, now: Instant) -> Option<Instant> {
        let settled = self.ended.iter().map(|(at, _)| *at + SETTLING);
        let counted = self
            .work
            .values()
            .flat_map(|work| [work.begun + SETTLING, work.heard + SILENCE]);
        let begun = (self.expectation == Expectation::Work).then(|| self.started + FIRST_WORK);
        settled.chain(counted).chain(begun).filter(|at| *at > now).min()
    }

    /// Of the work that counts, the piece that began first.
    fn busy(&self, now: Instant) -> Option<ReadyState> {
        let counting = self.work.values().filter(|work| self.counts(work, now));
        let work = counting.min_by_key(|work| work.begun)?;
        Some(ReadyState::Indexing {
            title: work.title.clone(),
            message: work.message.clone(),
            percentage: work.percentage,
        })
    }

    fn counts(&self, work: &Work, now: Instant) -> bool {
        let lasted = now.saturating_duration_since(work.begun);
        let silent = now.saturating_duration_since(work.heard);
        silent < SILENCE && (!self.was_ready || lasted >= SETTLING)
    }

    fn awaits_first_work(&self, now: Instant) -> bool {
        self.expectation == Expectation::Work
            && self.ended.is_none()
            && !self.was_ready
            && now.saturating_duration_since(self.started) < FIRST_WORK
    }

    /// Remembers that it was ready, before a change. The startup phase doesn't end at once: an unknown server has as
    /// long to begin its work as any pause within it may take.
    fn remember(&mut self, now: Instant) {
        let starting = now.saturating_duration_since(self.started) < SETTLING;
        if !starting && self.state(now) == ReadyState::Ready {
            self.was_ready = true;
        }
    }
}

fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

fn percent(percentage: f64) -> u32 {
    // A cast of a float saturates, so that nonsense becomes 0 or 100.
    (percentage as u32).min(100)
}
