//! The state of one server, and the events that change it. Pure: no clock, no task, no process.
//!
//! Invariants, kept by `transitions.rs`, `requests.rs` and `reports.rs`:
//!
//! 1. A process is launched only from a phase without a process, and such a phase is reached only when a launch
//!    has failed or a stop has finished. So at most one process of a key is alive.
//! 2. The generation goes up by one with each launch, and every report names the generation it is about. A report
//!    about another generation only increments a count.
//! 3. An *episode* is one attempt to bring a server up, from the first request to its outcome. Each phase on the
//!    way up carries its episode, and the step that leaves the way up also settles the episode. So every caller
//!    that joined it learns the outcome, and nobody is left behind.
//! 4. A stop by request is undone only by a later start or restart; a stop for idleness is undone by any request.
//!    A restart that names the process it saw doesn't undo a stop that came later.
//! 5. Leases are counted in the same step that looks at the phase, and no other step changes the count.
//! 6. A request that names the process it saw is compared with the newest process in the step that handles it,
//!    and changes nothing if they differ.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use crate::{ExpectedProcess, Failure, LifecycleSettings, ServerGeneration, ServerState, StoppedBy};

/// How many outcomes are remembered. A waiter that sleeps through more episodes than this gets the current state
/// instead. The size only has to cover what can happen between a wake-up and the moment the waiter runs.
pub(crate) const REMEMBERED_OUTCOMES: usize = 8;

/// Everything known about one server. `S` is a handle to the running process, which is only passed along.
#[derive(Clone, Debug)]
pub(crate) struct Entry<S> {
    pub(crate) phase: Phase<S>,
    /// When the server entered its current [`ServerState`].
    pub(crate) since: Option<Instant>,
    /// The newest process that was launched.
    pub(crate) generation: ServerGeneration,
    pub(crate) leases: usize,
    /// The number of the newest episode.
    pub(crate) episodes: u64,
    /// Shared, because an entry is copied with each lease and these change far less often.
    pub(crate) outcomes: Arc<VecDeque<(EpisodeNumber, EpisodeOutcome)>>,
    /// The times of recent failures, oldest first.
    pub(crate) failures: Arc<VecDeque<Instant>>,
    pub(crate) failed_probes: u32,
    pub(crate) last_error: Option<Arc<Failure>>,
    pub(crate) restarts: u64,
    pub(crate) crashes: u64,
    pub(crate) late_events: u64,
}

/// The phase of a server's life.
#[derive(Clone, Debug)]
pub(crate) enum Phase<S> {
    /// A process is starting.
    Launching {
        generation: ServerGeneration,
        episode: Episode,
    },
    /// The server is up.
    Ready {
        generation: ServerGeneration,
        server: S,
        /// Since when there are no leases.
        idle_since: Option<Instant>,
    },
    /// A process is ending, and nothing else may begin before it is gone.
    Ending {
        generation: ServerGeneration,
        what: Leaving,
        then: AfterEnd,
    },
    /// There is no process; the next one is launched after the pause.
    Pausing {
        until: Instant,
        episode: Episode,
    },
    Stopped {
        by: StoppedBy,
    },
    Failed(FailedServer),
}

/// What is ending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leaving {
    /// A launch that nobody wants anymore. It may still produce a server.
    Launch,
    /// A server that was told to stop.
    Server,
}

/// What follows the end of a process.
#[derive(Clone, Debug)]
pub(crate) enum AfterEnd {
    /// Launch the next process, but not before this time.
    Launch { episode: Episode, not_before: Instant },
    /// Fail.
    GiveUp { episode: Episode, failed: FailedServer },
    /// Stay stopped.
    Stopped { by: StoppedBy },
}

/// One attempt to bring a server up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Episode {
    pub(crate) number: EpisodeNumber,
    pub(crate) kind: EpisodeKind,
    pub(crate) origin: EpisodeOrigin,
    /// How many times it has failed since it began, however long ago. This gives up a server that fails slowly,
    /// too.
    pub(crate) failures: usize,
}

/// Identifies an episode to the callers that wait for its outcome.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct EpisodeNumber(pub(super) u64);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EpisodeKind {
    /// There was no process.
    Start,
    /// One process replaces another.
    Restart,
}

/// Who began an episode. This decides what a failure means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum EpisodeOrigin {
    /// A caller asked for the server and is told when it fails.
    Request,
    /// The server crashed. Failures are retried until there are too many.
    Crash,
}

/// How an episode ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum EpisodeOutcome {
    Ready(ServerGeneration),
    Failed(FailedServer),
    Stopped,
}

/// A server that did not come up or did not stay up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FailedServer {
    pub(crate) reason: Arc<Failure>,
    pub(crate) attempts: usize,
    pub(crate) retry_at: Instant,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum EpisodeProgress {
    UnderWay,
    Settled(EpisodeOutcome),
    /// The outcome is no longer remembered.
    Forgotten,
}

/// What can happen to a server.
#[derive(Clone, Debug)]
pub(crate) enum Event<S> {
    /// A caller asks for a start.
    Start {
        seen: ExpectedProcess,
    },
    /// A caller asks for a new process.
    Restart {
        seen: ExpectedProcess,
    },
    /// A caller asks for a stop.
    Stop {
        seen: ExpectedProcess,
    },
    /// A caller no longer needs the server: if it has no leases, it is stopped without waiting for the idle time.
    StopIfUnused,
    /// A caller wants to use the server and takes a lease.
    Lease,
    /// A lease is returned.
    LeaseReturned,
    /// A caller that has a lease wants to use the server.
    Want,
    Launched {
        generation: ServerGeneration,
        server: S,
    },
    LaunchFailed {
        generation: ServerGeneration,
        reason: Arc<Failure>,
    },
    /// The server ended without being asked to.
    Ended {
        generation: ServerGeneration,
        reason: Arc<Failure>,
    },
    StopFinished {
        generation: ServerGeneration,
    },
    /// The pause of this episode may be over.
    PauseOver {
        episode: EpisodeNumber,
    },
    /// This process may have been idle for long enough.
    IdleTime {
        generation: ServerGeneration,
    },
    ProbeAnswered {
        generation: ServerGeneration,
    },
    ProbeFailed {
        generation: ServerGeneration,
        reason: Arc<Failure>,
    },
}

/// What to do after a step. Each effect is one task, which watches the state to learn whether it is still wanted.
#[derive(Clone, Debug)]
pub(crate) enum Effect<S> {
    Launch {
        generation: ServerGeneration,
    },
    /// Watch for its end and for idleness.
    Watch {
        generation: ServerGeneration,
        server: S,
    },
    Stop {
        generation: ServerGeneration,
        server: S,
    },
    Pause {
        episode: EpisodeNumber,
        until: Instant,
    },
}

/// The answer to whoever caused the event.
#[derive(Clone, Debug)]
pub(crate) enum Answer<S> {
    /// The event was handled.
    Done,
    /// The event was about a process or a pause that is no longer the current one.
    Late,
    /// The server is up.
    Ready { generation: ServerGeneration, server: S },
    /// The server is on its way up.
    Join(EpisodeNumber),
    /// The server isn't available.
    Refused(Refusal),
    /// The stop was accepted. Names the process to wait for, if there is one.
    Leaving(Option<ServerGeneration>),
    /// The caller saw another process than the current one, and nothing was changed.
    Moved {
        seen: ServerGeneration,
        current: Box<Entry<S>>,
    },
}

/// Why a server isn't available.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    Stopped,
    Failed(FailedServer),
}

/// What a decision depends on besides the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now<'a> {
    pub(crate) time: Instant,
    pub(crate) settings: &'a LifecycleSettings,
    /// The jitter drawn for this decision: at least 0 and below 1.
    pub(crate) fraction: f64,
}

/// A step: the next state, the effects, and the answer.
#[derive(Debug)]
pub(crate) struct Step<S> {
    /// `None` if nothing changes.
    pub(crate) next: Option<Entry<S>>,
    pub(crate) effects: Vec<Effect<S>>,
    pub(crate) answer: Answer<S>,
}

impl<S> Entry<S> {
    /// A server that nobody has asked for yet. Its processes are numbered from `generation` on.
    pub(crate) fn new(generation: ServerGeneration) -> Self {
        Self {
            phase: Phase::Stopped {
                by: StoppedBy::NeverStarted,
            },
            since: None,
            generation,
            leases: 0,
            episodes: 0,
            outcomes: Arc::default(),
            failures: Arc::default(),
            failed_probes: 0,
            last_error: None,
            restarts: 0,
            crashes: 0,
            late_events: 0,
        }
    }

    /// The state as users see it.
    pub(crate) fn state(&self) -> ServerState {
        match &self.phase {
            Phase::Launching { episode, .. } => match episode.kind {
                EpisodeKind::Start => ServerState::Starting,
                EpisodeKind::Restart => ServerState::Restarting,
            },
            Phase::Ready { .. } => ServerState::Ready,
            Phase::Pausing { .. }
            | Phase::Ending {
                then: AfterEnd::Launch { .. },
                ..
            } => ServerState::Restarting,
            Phase::Ending { .. } => ServerState::Stopping,
            Phase::Stopped { by } => ServerState::Stopped { by: *by },
            Phase::Failed(failed) => ServerState::Failed {
                reason: Arc::clone(&failed.reason),
                attempts: failed.attempts,
                retry_at: failed.retry_at,
            },
        }
    }

    /// The process that is, or may be, alive.
    pub(crate) fn live(&self) -> Option<ServerGeneration> {
        match &self.phase {
            Phase::Launching { generation, .. }
            | Phase::Ready { generation, .. }
            | Phase::Ending { generation, .. } => Some(*generation),
            Phase::Pausing { .. } | Phase::Stopped { .. } | Phase::Failed(_) => None,
        }
    }

    pub(crate) fn episode(&self) -> Option<Episode> {
        match &self.phase {
            Phase::Launching { episode, .. }
            | Phase::Pausing { episode, .. }
            | Phase::Ending {
                then: AfterEnd::Launch { episode, .. } | AfterEnd::GiveUp { episode, .. },
                ..
            } => Some(*episode),
            _ => None,
        }
    }

    pub(crate) fn progress(&self, number: EpisodeNumber) -> EpisodeProgress {
        if self.episode().is_some_and(|episode| episode.number == number) {
            return EpisodeProgress::UnderWay;
        }
        let found = self.outcomes.iter().find(|(settled, _)| *settled == number);
        found.map_or(EpisodeProgress::Forgotten, |(_, outcome)| {
            EpisodeProgress::Settled(outcome.clone())
        })
    }

    pub(crate) fn wants_launch(&self, wanted: ServerGeneration) -> bool {
        matches!(&self.phase, Phase::Launching { generation, .. } if *generation == wanted)
    }

    /// The server, if it is up.
    pub(crate) fn ready(&self) -> Option<(ServerGeneration, &S)> {
        match &self.phase {
            Phase::Ready {
                generation, server, ..
            } => Some((*generation, server)),
            _ => None,
        }
    }

    /// Whether this process is the one that is up.
    pub(crate) fn is_ready(&self, wanted: ServerGeneration) -> bool {
        matches!(&self.phase, Phase::Ready { generation, .. } if *generation == wanted)
    }

    /// Whether the entry may be removed. A stop by request must be remembered.
    pub(crate) fn is_forgettable(&self) -> bool {
        let is_stopped = matches!(
            self.phase,
            Phase::Stopped {
                by: StoppedBy::NeverStarted | StoppedBy::Idleness
            } | Phase::Failed(_)
        );
        is_stopped && self.leases == 0
    }
}
