//! `tidelock breaker`: inspect circuit breakers and change them by hand.

use std::time::Duration;

use protocol::{Breaker, BreakerList, BreakerState};
use serde_json::json;

use super::history;
use crate::cli::{BreakerCommand, CallOutcome, ForcedState, Reach, RecordArguments, ResetArguments};
use crate::client::{Client, ClientError, path_segment, whole_ms};
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, fields, list as list_of};
use crate::start::Repeat;
use crate::units::{format_count, format_duration};

pub(super) fn run(command: &BreakerCommand, client: &Client) -> Result<Report, Failure> {
    if let BreakerCommand::History(arguments) = command
        && arguments.reach() == Reach::Follow
    {
        return history::follow(arguments, client);
    }
    // Report invalid arguments before starting a daemon.
    if let BreakerCommand::Record(RecordArguments {
        outcome: CallOutcome::Success,
        retry_after: Some(_),
        ..
    }) = command
    {
        return Err(
            Failure::new(Exit::Usage, "usage", "--retry-after only works with a failure")
                .advise("leave it out, or record a failure"),
        );
    }
    let repeat = match command {
        // Recording a failure twice would count it twice.
        BreakerCommand::Record(_) => Repeat::Harmful,
        BreakerCommand::List | BreakerCommand::Show { .. } | BreakerCommand::History(_) => Repeat::Harmless,
        // A repeat leaves the breaker in the same state, but its history would list the change twice.
        BreakerCommand::Reset(_) | BreakerCommand::Force { .. } => Repeat::Harmless,
    };
    let ask = |client: &Client| send(command, client.palette(), client);
    client.ask(repeat, ask)
}

fn send(command: &BreakerCommand, palette: Palette, client: &Client) -> Result<Report, ClientError> {
    match command {
        BreakerCommand::List => Ok(list(palette, &client.get("/v1/breakers")?)),
        BreakerCommand::Show { name } => Ok(one(palette, &client.get(&path(name, ""))?)),
        BreakerCommand::History(arguments) => history::past(arguments, palette, client),
        BreakerCommand::Reset(arguments) => reset(arguments, palette, client),
        BreakerCommand::Force { name, state } => {
            let state = match state {
                ForcedState::Open => protocol::ForcedState::Open,
                ForcedState::Closed => protocol::ForcedState::Closed,
            };
            let body = protocol::ForceBreaker { state };
            Ok(one(palette, &client.post(&path(name, "/force"), Some(&body))?))
        }
        BreakerCommand::Record(arguments) => {
            let outcome = match arguments.outcome {
                CallOutcome::Success => protocol::Outcome::Success,
                CallOutcome::Failure => protocol::Outcome::Failure,
            };
            let body = protocol::RecordOutcome {
                outcome,
                retry_after_ms: arguments.retry_after.map(whole_ms),
            };
            Ok(one(
                palette,
                &client.post(&path(&arguments.name, "/record"), Some(&body))?,
            ))
        }
    }
}

fn reset(arguments: &ResetArguments, palette: Palette, client: &Client) -> Result<Report, ClientError> {
    match &arguments.name {
        Some(name) => {
            let body = protocol::ResetBreaker {
                generation: arguments.generation,
            };
            Ok(one(palette, &client.post(&path(name, "/reset"), Some(&body))?))
        }
        None => {
            let answer: protocol::ResetBreakers = client.post("/v1/breakers/reset", None::<&()>)?;
            let text = match answer.reset {
                0 => "No breakers to reset.\n".to_owned(),
                1 => "1 breaker was reset.\n".to_owned(),
                count => format!("{count} breakers were reset.\n"),
            };
            Ok(Report::success(json!(answer), text))
        }
    }
}

fn path(name: &str, action: &str) -> String {
    format!("/v1/breakers/{}{action}", path_segment(name))
}

fn list(palette: Palette, list: &BreakerList) -> Report {
    let row = |breaker: &Breaker| {
        vec![
            Cell::new(&breaker.id),
            state(breaker),
            Cell::new(breaker.generation.to_string()),
            Cell::new(breaker.failures.to_string()),
            Cell::new(breaker.refused.to_string()),
            Cell::new(breaker.times_opened.to_string()),
        ]
    };
    let mut text = list_of(
        palette,
        &["NAME", "STATE", "GENERATION", "FAILURES", "REFUSED", "OPENED"],
        list.breakers.iter().map(row).collect(),
        "No breakers are known. One appears when the first call is recorded under its name.",
    );
    if list.untracked > 0 {
        let note = format!(
            "Not in the table for lack of room: {}.\n",
            format_count(list.untracked, "call")
        );
        text.push_str(&note);
    }
    Report::success(json!(list), text)
}

fn one(palette: Palette, breaker: &Breaker) -> Report {
    let failures = match breaker.state {
        // Consecutive failures matter only while the breaker can still open.
        BreakerState::Closed => format!("{}, {} in a row", breaker.failures, breaker.consecutive_failures),
        _ => breaker.failures.to_string(),
    };
    let text = fields(
        palette,
        vec![
            ("breaker", Cell::new(&breaker.id)),
            ("state", state(breaker)),
            ("generation", Cell::new(breaker.generation.to_string())),
            ("failures", Cell::new(failures)),
            ("refused", Cell::new(format_count(breaker.refused, "call"))),
            ("late", Cell::new(format_count(breaker.late_reports, "report"))),
            ("opened", Cell::new(format_count(breaker.times_opened, "time"))),
        ],
    );
    Report::success(json!(breaker), text)
}

fn state(breaker: &Breaker) -> Cell {
    match breaker.state {
        BreakerState::Closed => Cell::toned("closed", Tone::Good),
        BreakerState::Open => match breaker.retry_after_ms {
            Some(ms) => Cell::toned(
                format!("open, probe in {}", format_duration(Duration::from_millis(ms))),
                Tone::Bad,
            ),
            None => Cell::toned("open", Tone::Bad),
        },
        BreakerState::HalfOpen if breaker.probing => Cell::toned("half open, probing", Tone::Warning),
        BreakerState::HalfOpen => Cell::toned("half open", Tone::Warning),
        BreakerState::ForcedOpen => Cell::toned("forced open", Tone::Bad),
        BreakerState::ForcedClosed => Cell::toned("forced closed", Tone::Warning),
    }
}
