//! Turns in the words of the interface.

use machines::Machines;
use sessions::{Accepted, Sessions, Started, Turn, TurnError, Usage};

use super::words::turn_state_to_wire;
use super::{choice_to_wire, shown, written};

/// A turn.
pub(crate) fn turn_to_wire(turn: &Turn) -> protocol::Turn {
    let record = &turn.record;
    let attachments = record.prompt.attachments.iter();
    protocol::Turn {
        id: turn.id.to_string(),
        state: turn_state_to_wire(record.state),
        session: record.session.to_string(),
        number: record.number,
        prompt: record.prompt.text.clone(),
        attachments: attachments
            .map(|attachment| protocol::Attachment {
                name: attachment.name.clone(),
                media_type: attachment.media_type.clone(),
                size_bytes: attachment.size_bytes,
            })
            .collect(),
        agent: choice_to_wire(&record.agent),
        by: record.by.to_string(),
        accepted_at: written(record.accepted_at),
        started_at: record.started_at.map(written),
        ended_at: record.ended_at.map(written),
        plan: record.plan.map(|plan| plan.to_string()),
        usage: usage_to_wire(record.usage),
        error: record.error.as_ref().map(error_to_wire),
        last_sequence: turn.last_sequence.get(),
    }
}

pub(crate) fn accepted_to_wire(
    sessions: &Sessions,
    machines: &Machines,
    accepted: &Accepted,
) -> protocol::TurnAccepted {
    protocol::TurnAccepted {
        session: shown(sessions, machines, &accepted.session),
        turn: turn_to_wire(&accepted.turn),
        new: accepted.started == Started::New,
    }
}

fn usage_to_wire(usage: Usage) -> protocol::Usage {
    protocol::Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        requests: usage.requests,
        cost_micros: usage.cost_micros,
    }
}

fn error_to_wire(error: &TurnError) -> protocol::TurnError {
    protocol::TurnError {
        code: error.code.clone(),
        text: error.text.clone(),
    }
}
