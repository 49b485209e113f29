//! What happens to a session, in the words of the interface.

use eventlog::Event;
use sessions::Happening;

use crate::times::rfc3339_ms;

/// Something that happened to a session. What cannot be read still has its place, its time and its name.
pub(crate) fn moment_to_wire(event: &Event) -> protocol::SessionMoment {
    let happening: Option<Happening> = serde_json::from_slice(&event.body).ok();
    let (actor, turn, text) = happening
        .map(|happening| (happening.actor, happening.turn, happening.text))
        .unwrap_or_default();
    protocol::SessionMoment {
        sequence: event.sequence.get(),
        at: rfc3339_ms(event.at_ms),
        event: event.kind.to_string(),
        actor,
        turn: turn.map(|turn| turn.to_string()),
        text,
    }
}
