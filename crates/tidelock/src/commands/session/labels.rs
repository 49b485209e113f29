//! The wording for sessions and turns.

use protocol::{AwaitedMachine, Session, SessionState, Turn, TurnState, Usage};

use crate::output::{Cell, Tone};
use crate::units::format_count;

pub(super) fn state(state: SessionState) -> Cell {
    let tone = match state {
        SessionState::Idle => Tone::Plain,
        SessionState::Waiting | SessionState::Asking | SessionState::Stopping => Tone::Warning,
        SessionState::Running => Tone::Good,
        SessionState::Archived => Tone::Quiet,
    };
    Cell::toned(state.name(), tone)
}

/// What prompts for another machine are waiting for.
pub(super) fn waits_for(machine: &AwaitedMachine) -> String {
    let name = &machine.name;
    match machine.running {
        true => format!("waits for the daemon on {name}"),
        false => format!("waits for the daemon on {name}, which isn't running"),
    }
}

pub(super) fn turn_state(state: TurnState) -> Cell {
    let tone = match state {
        TurnState::Queued | TurnState::Cancelled | TurnState::Interrupted => Tone::Warning,
        TurnState::Running | TurnState::Done => Tone::Good,
        TurnState::Failed => Tone::Bad,
    };
    Cell::toned(state.name(), tone)
}

pub(in crate::commands) fn agent_state(state: &str) -> Cell {
    let tone = if state == "ready" {
        Tone::Good
    } else {
        Tone::Warning
    };
    Cell::toned(state, tone)
}

pub(super) fn agent(session: &Session) -> String {
    match &session.agent.model {
        Some(model) => format!("{} ({model})", session.agent.name),
        None => session.agent.name.clone(),
    }
}

/// Why a turn did not succeed; empty if it did.
pub(super) fn why(turn: &Turn) -> String {
    let because = turn.error.as_ref();
    because.map_or_else(String::new, |error| format!("{} ({})", error.text, error.code))
}

/// What was used, if anything was.
pub(super) fn usage(usage: &Usage) -> Option<String> {
    if usage.requests == 0 {
        return None;
    }
    let Usage {
        input_tokens,
        output_tokens,
        requests,
        cost_micros,
    } = usage;
    let requests = format_count(*requests, "request");
    let mut text = format!("{input_tokens} tokens read, {output_tokens} written, {requests}");
    if *cost_micros > 0 {
        let (whole, rest) = (cost_micros / 1_000_000, cost_micros % 1_000_000 / 100);
        text.push_str(&format!(", cost {whole}.{rest:04}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_told_with_its_price_if_there_is_one() {
        let used = |requests, cost_micros| Usage {
            input_tokens: 10,
            output_tokens: 2,
            requests,
            cost_micros,
        };
        for (used, expected) in [
            (Usage::default(), None),
            (used(1, 0), Some("10 tokens read, 2 written, 1 request")),
            (
                used(3, 2_001_500),
                Some("10 tokens read, 2 written, 3 requests, cost 2.0015"),
            ),
        ] {
            assert_eq!(usage(&used).as_deref(), expected);
        }
    }
}
