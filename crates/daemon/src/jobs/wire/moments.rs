//! The history of a job, with one line for each event.

use jobs::{Ending, FailReason, Happening, Job, Moment};

use super::{moment_to_wire, spoken};
use crate::times::written;

/// All events of a job, in order, so that the texts can include the number of attempts.
pub(crate) fn moments_to_wire(job: &Job, moments: &[Moment]) -> Vec<protocol::JobMoment> {
    let attempts = u32::from(job.record.facts.retry.max_retries) + 1;
    let mut failed = 0;
    moments
        .iter()
        .map(|moment| match &moment.happening {
            Happening::Retrying { ending, .. } => {
                failed += 1;
                // Interrupted and returned attempts have numbers too, but don't use up a retry.
                told(moment, (ending.attempt == failed).then_some(attempts))
            }
            _ => moment_to_wire(moment),
        })
        .collect()
}

/// An event; `of` is the total number of attempts, if it is about one of them.
pub(super) fn told(moment: &Moment, of: Option<u32>) -> protocol::JobMoment {
    let (event, text) = match &moment.happening {
        Happening::Submitted { by } => ("submitted", format!("by {by}")),
        Happening::Claimed { attempt, home } => ("claimed", format!("attempt {attempt}, by {home}")),
        Happening::Released { attempt } => (
            "released",
            format!("attempt {attempt} was released before it started"),
        ),
        Happening::CancelRequested { by, why } if why.is_empty() => ("cancel_requested", format!("by {by}")),
        Happening::CancelRequested { by, why } => ("cancel_requested", format!("by {by}: {why}")),
        Happening::Retrying {
            ending,
            reason,
            not_before,
        } => {
            let of = of.map_or_else(String::new, |of| format!(" of {of}"));
            let pause = spoken(not_before.since(moment.at));
            let ended = how_it_failed(*reason, ending);
            (
                "retrying",
                format!("attempt {}{of} {ended}; the next one in {pause}", ending.attempt),
            )
        }
        Happening::Interrupted { attempt, text } if text.is_empty() => {
            ("interrupted", format!("attempt {attempt} lost its worker"))
        }
        Happening::Interrupted { attempt, text } => ("interrupted", format!("attempt {attempt}: {text}")),
        Happening::Succeeded { ending } => ("succeeded", with_text(&ran(ending), &ending.text)),
        Happening::Failed { reason, ending } => {
            let why = reason_text(*reason);
            let text = match ending {
                Some(ending) if !ending.text.is_empty() && *reason == FailReason::AttemptFailed => {
                    ending.text.clone()
                }
                Some(ending) => with_text(why, &ending.text),
                None => why.to_owned(),
            };
            ("failed", text)
        }
        Happening::Cancelled { ending } => {
            let text = match ending {
                Some(ending) => with_text("nothing of it runs any more", &ending.text),
                None => "before it ran".to_owned(),
            };
            ("cancelled", text)
        }
    };
    protocol::JobMoment {
        sequence: moment.sequence.get(),
        at: written(moment.at),
        event: event.to_owned(),
        text,
    }
}

fn how_it_failed(reason: FailReason, ending: &Ending) -> String {
    match reason {
        FailReason::TimedOut => with_text("took too long", &ending.text),
        _ => with_text("failed", &ending.text),
    }
}

fn ran(ending: &Ending) -> String {
    let time = spoken(ending.ended_at.since(ending.started_at));
    format!("attempt {}, in {time}", ending.attempt)
}

/// Why a job failed for good, as text.
fn reason_text(reason: FailReason) -> &'static str {
    match reason {
        FailReason::AttemptFailed => "the last attempt failed",
        FailReason::TimedOut => "the last attempt took too long",
        FailReason::DeadlinePassed => "its deadline has passed",
        FailReason::Interrupted => "it was interrupted and won't run again",
        FailReason::DependencyFailed => "a job it depends on didn't succeed",
        FailReason::NoHandler => "no handler for it on this machine",
    }
}

fn with_text(beginning: &str, text: &str) -> String {
    if text.is_empty() {
        beginning.to_owned()
    } else {
        format!("{beginning}: {text}")
    }
}
