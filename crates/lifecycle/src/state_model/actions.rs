//! What can happen in a history.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{ExpectedProcess, ServerGeneration};

/// One thing that happens in a history.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Start(Saw),
    Restart(Saw),
    Stop(Saw),
    StopIfUnused,
    Lease,
    ReturnLease,
    Want,
    /// The launch that is under way succeeds or fails.
    Launched,
    LaunchFails,
    /// The server that is up ends, or answers no probe.
    Crash,
    ProbeFails,
    ProbeAnswers,
    /// The stop that is under way finishes.
    StopFinishes,
    Pass(Duration),
    IdleTime,
    /// The end of the pause is reported too early.
    EarlyPauseOver,
    /// A report about a process that is not the current one, so many back.
    Late(LateKind, u64),
}

/// Which process somebody saw who wants something: none in particular, the newest, or one so many back or ahead.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saw {
    Any,
    Newest,
    Back(u64),
    Ahead,
}

impl Saw {
    pub(super) fn of(self, newest: ServerGeneration) -> ExpectedProcess {
        let number = match self {
            Self::Any => return ExpectedProcess::Any,
            Self::Newest => newest.get(),
            Self::Back(back) => newest.get().saturating_sub(back),
            Self::Ahead => newest.get() + 1,
        };
        ExpectedProcess::Exactly(ServerGeneration::from_u64(number))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum LateKind {
    LaunchFailed,
    Ended,
    StopFinished,
    PauseOver,
    IdleTime,
    ProbeFailed,
}

/// Histories to try.
pub(super) fn actions() -> impl Strategy<Value = Vec<Action>> {
    let late = prop_oneof![
        Just(LateKind::LaunchFailed),
        Just(LateKind::Ended),
        Just(LateKind::StopFinished),
        Just(LateKind::PauseOver),
        Just(LateKind::IdleTime),
        Just(LateKind::ProbeFailed),
    ];
    let saw = prop_oneof![
        3 => Just(Saw::Any),
        2 => Just(Saw::Newest),
        1 => (1_u64..3).prop_map(Saw::Back),
        1 => Just(Saw::Ahead),
    ];
    let action = prop_oneof![
        3 => saw.clone().prop_map(Action::Start),
        4 => saw.clone().prop_map(Action::Restart),
        3 => saw.prop_map(Action::Stop),
        2 => Just(Action::StopIfUnused),
        4 => Just(Action::Lease),
        4 => Just(Action::ReturnLease),
        2 => Just(Action::Want),
        12 => Just(Action::Launched),
        4 => Just(Action::LaunchFails),
        8 => Just(Action::Crash),
        1 => Just(Action::ProbeFails),
        1 => Just(Action::ProbeAnswers),
        12 => Just(Action::StopFinishes),
        4 => (1_u64..2_000).prop_map(|ms| Action::Pass(Duration::from_millis(ms))),
        1 => (30_u64..400).prop_map(|seconds| Action::Pass(Duration::from_secs(seconds))),
        3 => Just(Action::IdleTime),
        2 => Just(Action::EarlyPauseOver),
        3 => (late, 1_u64..3).prop_map(|(kind, back)| Action::Late(kind, back)),
    ];
    prop::collection::vec(action, 1..150)
}
