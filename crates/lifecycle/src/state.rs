//! The state of one server, and what can happen to it. Pure: no clock, no task, no process.
//!
//! Invariants, kept by `transitions.rs`, `wishes.rs` and `reports.rs`:
//!
//! 1. A process is launched only from a phase without one, and a phase without one is reached only when the
//!    launch has failed or the stop has finished. So at most one process of a key is alive.
//! 2. The generation goes up by one with each launch, and every report names the generation it is about. A report
//!    about another one changes nothing but a count.
//! 3. An *episode* is one attempt to bring a server up, from the first wish to its outcome. Each phase that is on
//!    its way up carries its episode, and an episode is settled in the very step that leaves the way up. So
//!    whoever joined one learns its outcome, and nobody is left behind.
//! 4. A stop by request is taken back by a later start or restart only; a stop by idleness by any wish.
//!    A restart that names the process it saw is not meant for one that was stopped since.
//! 5. Leases are counted in the same step that looks at the phase, and no other step touches the count.
//! 6. A wish that names the process it saw is held against the newest one in the step that takes it in, and changes
//!    nothing if it is another one.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use crate::{Failure, LifecycleSettings, Seen, ServerGeneration, ServerState, StoppedBy};

/// How many outcomes are remembered. A waiter that sleeps through more episodes than this is told the state of the
/// day instead; the size only has to cover what can happen between a wake-up and the moment the waiter runs.
pub(crate) const REMEMBERED_OUTCOMES: usize = 8;

/// All that is known about one server. `S` leads to the running process; it is carried along and not looked into.
#[derive(Clone, Debug)]
pub(crate) struct Entry<S> {
    pub(crate) phase: Phase<S>,
    /// Since when the server is in its state, as people see it.
    pub(crate) since: Option<Instant>,
    /// The newest process that was launched.
    pub(crate) generation: ServerGeneration,
    pub(crate) leases: usize,
    /// The number of the newest episode.
    pub(crate) episodes: u64,
    /// Shared, since an entry is copied with each lease and these change far less often.
    pub(crate) outcomes: Arc<VecDeque<(EpisodeNumber, Outcome)>>,
    /// When it failed of late, oldest first.
    pub(crate) failures: Arc<VecDeque<Instant>>,
    pub(crate) failed_probes: u32,
    pub(crate) last_error: Option<Arc<Failure>>,
    pub(crate) restarts: u64,
    pub(crate) crashes: u64,
    pub(crate) late_events: u64,
}

/// Where a server is in its life.
#[derive(Clone, Debug)]
pub(crate) enum Phase<S> {
    /// A process is on its way up.
    Launching {
        generation: ServerGeneration,
        episode: Episode,
    },
    /// It is up.
    Ready {
        generation: ServerGeneration,
        server: S,
        /// Since when nobody holds a lease.
        idle_since: Option<Instant>,
    },
    /// A process is on its way out, and nothing else may begin before it is gone.
    Ending {
        generation: ServerGeneration,
        what: Leaving,
        then: Then,
    },
    /// No process; the next one is launched when the pause is over.
    Pausing { until: Instant, episode: Episode },
    /// No process.
    Stopped { by: StoppedBy },
    /// No process.
    Failed(Defeat),
}

/// What is on its way out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leaving {
    /// A launch that nobody wants any more. It may still hand out a server.
    Launch,
    /// A server that was told to stop.
    Server,
}

/// What comes after the end of a process.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    /// The next process, not before that time.
    Launch { episode: Episode, not_before: Instant },
    /// Giving up.
    GiveUp { episode: Episode, defeat: Defeat },
    /// Nothing.
    Rest { by: StoppedBy },
}

/// One attempt to bring a server up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Episode {
    pub(crate) number: EpisodeNumber,
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
    /// How often it failed since it began, however long ago: one that fails slowly is given up too.
    pub(crate) failures: usize,
}

/// Names an episode to those who wait for its outcome.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct EpisodeNumber(pub(super) u64);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// There was no process.
    Start,
    /// One process replaces another.
    Restart,
}

/// Who began an episode, which decides what a failure means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// Somebody asks for the server and is told when it fails.
    Wish,
    /// A crash. Failures are retried until there are too many.
    Crash,
}

/// How an episode ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    Ready(ServerGeneration),
    Failed(Defeat),
    Stopped,
}

/// A server that did not come up or did not stay.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Defeat {
    pub(crate) reason: Arc<Failure>,
    pub(crate) attempts: usize,
    pub(crate) retry_at: Instant,
}

/// What became of an episode.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    UnderWay,
    Settled(Outcome),
    /// So much has happened since that its outcome is no longer known.
    Forgotten,
}

/// What can happen to a server.
#[derive(Clone, Debug)]
pub(crate) enum Event<S> {
    /// Somebody asks for a start.
    Start {
        seen: Seen,
    },
    /// Somebody asks for a new process.
    Restart {
        seen: Seen,
    },
    /// Somebody asks for a stop.
    Stop {
        seen: Seen,
    },
    /// Somebody has no more use for the server: it need not wait to be idle for long enough.
    Rest,
    /// Somebody wants to use the server, and takes a lease.
    Lease,
    /// A lease is given back.
    LeaseReturned,
    /// Somebody who has a lease wants to use the server.
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
    /// The pause of that episode may be over.
    PauseOver {
        episode: EpisodeNumber,
    },
    /// That process may have been idle for long enough.
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

/// What is to be done once a step has been taken. Each is one task, which looks at the state to learn that it is
/// no longer wanted.
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

/// What whoever brought the event is told.
#[derive(Clone, Debug)]
pub(crate) enum Answer<S> {
    /// Taken in.
    Done,
    /// It was about a process or a pause that is no longer the current one.
    Late,
    /// The server is up.
    Ready { generation: ServerGeneration, server: S },
    /// It is on its way up.
    Join(EpisodeNumber),
    /// It cannot be had.
    Refused(Refusal),
    /// A stop was taken in; the process to wait for, if there is one.
    Leaving(Option<ServerGeneration>),
    /// It is not the process that the caller saw, and nothing was changed. This is how it stands.
    Moved {
        seen: ServerGeneration,
        current: Box<Entry<S>>,
    },
}

/// Why a server cannot be had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    Stopped,
    Failed(Defeat),
}

/// What a decision depends on besides the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now<'a> {
    pub(crate) time: Instant,
    pub(crate) settings: &'a LifecycleSettings,
    /// The draw of the jitter: at least 0 and below 1.
    pub(crate) fraction: f64,
}

/// A step: what the state becomes, what is to be done, and what is answered.
#[derive(Debug)]
pub(crate) struct Step<S> {
    /// `None` if nothing changes.
    pub(crate) next: Option<Entry<S>>,
    pub(crate) effects: Vec<Effect<S>>,
    pub(crate) answer: Answer<S>,
}

impl<S> Entry<S> {
    /// A server that nobody has wanted yet. Its processes are numbered from there on.
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

    /// The state as people see it.
    pub(crate) fn state(&self) -> ServerState {
        match &self.phase {
            Phase::Launching { episode, .. } => match episode.kind {
                Kind::Start => ServerState::Starting,
                Kind::Restart => ServerState::Restarting,
            },
            Phase::Ready { .. } => ServerState::Ready,
            Phase::Pausing { .. }
            | Phase::Ending {
                then: Then::Launch { .. },
                ..
            } => ServerState::Restarting,
            Phase::Ending { .. } => ServerState::Stopping,
            Phase::Stopped { by } => ServerState::Stopped { by: *by },
            Phase::Failed(defeat) => ServerState::Failed {
                reason: Arc::clone(&defeat.reason),
                attempts: defeat.attempts,
                retry_at: defeat.retry_at,
            },
        }
    }

    /// The process that is alive, or may be.
    pub(crate) fn live(&self) -> Option<ServerGeneration> {
        match &self.phase {
            Phase::Launching { generation, .. }
            | Phase::Ready { generation, .. }
            | Phase::Ending { generation, .. } => Some(*generation),
            Phase::Pausing { .. } | Phase::Stopped { .. } | Phase::Failed(_) => None,
        }
    }

    /// The episode that is under way.
    pub(crate) fn episode(&self) -> Option<Episode> {
        match &self.phase {
            Phase::Launching { episode, .. }
            | Phase::Pausing { episode, .. }
            | Phase::Ending {
                then: Then::Launch { episode, .. } | Then::GiveUp { episode, .. },
                ..
            } => Some(*episode),
            _ => None,
        }
    }

    /// What became of an episode.
    pub(crate) fn verdict(&self, number: EpisodeNumber) -> Verdict {
        if self.episode().is_some_and(|episode| episode.number == number) {
            return Verdict::UnderWay;
        }
        let found = self.outcomes.iter().find(|(settled, _)| *settled == number);
        found.map_or(Verdict::Forgotten, |(_, outcome)| {
            Verdict::Settled(outcome.clone())
        })
    }

    /// Whether that launch is still wanted.
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

    /// Whether that process is the one that is up.
    pub(crate) fn is_ready(&self, wanted: ServerGeneration) -> bool {
        matches!(&self.phase, Phase::Ready { generation, .. } if *generation == wanted)
    }

    /// Whether little would be lost if the entry were forgotten. A stop by request would be taken back by it.
    pub(crate) fn is_forgettable(&self) -> bool {
        let rests = matches!(
            self.phase,
            Phase::Stopped {
                by: StoppedBy::NeverStarted | StoppedBy::Idleness
            } | Phase::Failed(_)
        );
        rests && self.leases == 0
    }
}
