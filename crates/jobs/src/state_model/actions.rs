//! What can happen in a history.

use proptest::prelude::*;
use protocol::JobIfInterrupted;

use crate::{
    job::{Facts, NewJob, RetryPolicy},
    state::{End, StopCause},
};
use eventlog::UnixMs;

pub(super) const START_MS: u64 = 1_000_000;

/// One thing that happens in a history. `back` selects the claim it refers to: 0 is the newest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Claim {
        worker: usize,
    },
    Cancel,
    Finish {
        back: usize,
        by: Speaker,
        end: End,
        jitter: f64,
    },
    Interrupt {
        back: usize,
        jitter: f64,
    },
    Release {
        back: usize,
    },
    Expire,
    DependencyFailed,
    NoHandler,
    Pass {
        ms: u64,
    },
}

/// Who reports on a claim.
#[derive(Clone, Copy, Debug)]
pub(super) enum Speaker {
    WhoeverMadeIt,
    Worker(usize),
}

/// A job's facts, and its delay.
pub(super) fn facts() -> impl Strategy<Value = (Facts, u64)> {
    let delay_ms = prop_oneof![Just(0), 1_u64..3_000];
    let deadline_ms = prop_oneof![3 => Just(None), 1 => (1_u64..30_000).prop_map(Some)];
    let repeat = prop_oneof![Just(JobIfInterrupted::Repeat), Just(JobIfInterrupted::Fail)];
    (
        0_u16..4,
        1_u64..4_000,
        1_u64..8_000,
        delay_ms,
        deadline_ms,
        repeat,
    )
        .prop_map(
            |(max_retries, first_pause_ms, longest_pause_ms, delay_ms, deadline_ms, if_interrupted)| {
                let mut facts = NewJob::new("command", "test", Vec::new(), "me").facts;
                facts.retry = RetryPolicy {
                    max_retries,
                    first_pause_ms,
                    longest_pause_ms,
                };
                facts.deadline = deadline_ms.map(|ms| UnixMs(START_MS + ms));
                facts.if_interrupted = if_interrupted;
                (facts, delay_ms)
            },
        )
}

pub(super) fn action() -> impl Strategy<Value = Action> {
    let back = || prop_oneof![4 => Just(0_usize), 1 => 1_usize..4];
    let jitter = || 0.0..1.0;
    let end = prop_oneof![
        1 => Just(End::Succeeded),
        8 => Just(End::Failed),
        1 => Just(End::FailedPermanently),
        1 => Just(End::Stopped(StopCause::Cancelled)),
        3 => Just(End::Stopped(StopCause::TimeLimit)),
        1 => Just(End::Stopped(StopCause::Deadline)),
        4 => Just(End::Stopped(StopCause::Draining)),
    ];
    let by = prop_oneof![4 => Just(Speaker::WhoeverMadeIt), 1 => (0_usize..3).prop_map(Speaker::Worker)];
    prop_oneof![
        20 => (0_usize..3).prop_map(|worker| Action::Claim { worker }),
        1 => Just(Action::Cancel),
        12 => (back(), by, end, jitter())
            .prop_map(|(back, by, end, jitter)| Action::Finish { back, by, end, jitter }),
        4 => (back(), jitter()).prop_map(|(back, jitter)| Action::Interrupt { back, jitter }),
        4 => back().prop_map(|back| Action::Release { back }),
        1 => Just(Action::Expire),
        1 => prop_oneof![Just(Action::DependencyFailed), Just(Action::NoHandler)],
        12 => (1_u64..6_000).prop_map(|ms| Action::Pass { ms }),
    ]
}
