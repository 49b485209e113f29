//! Reads the stream of a turn until the turn is over, across restarts of the daemon.

use std::io::{self, ErrorKind};

use daemon::{Liveness, read_owner};
use protocol::{CancelTurn, TurnEnd, TurnState};
use serde_json::Value;

use super::printer::Beginning;
use super::{path, turn_path};
use crate::client::{Client, ClientError, Ended, Follower, Interrupts, Revived};
use crate::context::Context;
use crate::error::{Exit, Failure, UNREACHABLE, chain};
use protocol::sse::ServerEvent;

#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) enum TurnMessage {
    Event(Value),
    Resync(Value),
    End(TurnEnd),
}

pub(in crate::commands) trait Listener {
    /// Handles a message. An error of the kind `BrokenPipe` stops following without a failure.
    fn hear(&mut self, said: &TurnMessage) -> io::Result<()>;

    fn flush(&mut self) -> io::Result<()>;

    /// Shows a note that is not part of the turn.
    fn note(&mut self, text: &str);
}

/// Follows a turn to its end. The first Ctrl-C cancels the turn, the second one detaches.
pub(in crate::commands) fn follow(
    client: &Client,
    session: &str,
    turn: &str,
    beginning: Beginning,
    interrupts: &mut Interrupts,
    listener: &mut impl Listener,
) -> Result<Ended<TurnState>, Failure> {
    // The position of an event that was shown takes precedence over the tail.
    let tail = match beginning {
        Beginning::Start => String::new(),
        Beginning::Tail(count) => format!("?tail={count}"),
    };
    let path = turn_path(session, turn, &format!("/events{tail}"));
    let mut following = Following {
        client,
        session,
        turn,
        listener,
        newest: None,
    };
    client.follow(&path, None, interrupts, &mut following)
}

struct Following<'a, L> {
    client: &'a Client,
    session: &'a str,
    turn: &'a str,
    listener: &'a mut L,
    /// The number of the last event that was shown, directly or in a snapshot.
    newest: Option<u64>,
}

impl<L: Listener> Follower for Following<'_, L> {
    type End = TurnState;

    fn hear(&mut self, event: &ServerEvent) -> io::Result<Option<TurnState>> {
        let Some((said, number)) = understand(event)? else {
            return Ok(None);
        };
        match &said {
            // It was shown before the connection broke.
            TurnMessage::Event(_) if number <= self.newest => return Ok(None),
            TurnMessage::Event(_) | TurnMessage::Resync(_) => self.newest = number,
            TurnMessage::End(_) => {}
        }
        self.listener.hear(&said)?;
        Ok(match said {
            TurnMessage::End(end) => Some(end.state),
            TurnMessage::Event(_) | TurnMessage::Resync(_) => None,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.listener.flush()
    }

    fn note(&mut self, text: &str) {
        self.listener.note(text);
    }

    fn revive(&mut self) -> Result<Revived, Failure> {
        if !has_crashed(&self.client.context) {
            return Ok(Revived::No);
        }
        // The daemon was not meant to end, so restart it: it knows what became of the turn.
        self.listener.note("the daemon has crashed; restarting it");
        self.client.fetch_patiently::<Value>(&path(self.session, ""))?;
        Ok(Revived::Yes)
    }

    fn cancel(&mut self) {
        let request = CancelTurn {
            turn: Some(self.turn.to_owned()),
            why: Some("Ctrl-C".to_owned()),
        };
        let path = path(self.session, "/cancel?wait_ms=0");
        // The end will show up in the stream.
        match self.client.post::<Value>(&path, Some(&request)) {
            Ok(_) => self.listener.note(
                "Cancelling the turn. Press Ctrl-C again to detach; it keeps running until it has stopped.",
            ),
            // It had already ended; the stream is about to report that.
            Err(ClientError::Refused(refusal)) if refusal.code == "turn_not_active" => {}
            Err(error) => self.listener.note(&format!(
                "Couldn't cancel the turn ({}). Press Ctrl-C again to detach; it keeps running.",
                chain(&error)
            )),
        }
    }

    fn lost(&self, error: Option<ClientError>) -> Option<Failure> {
        let why = error.map_or_else(|| "it doesn't accept requests".to_owned(), |error| chain(&error));
        let message = format!("lost the daemon before the turn ended: {why}");
        Some(
            Failure::new(Exit::Unreachable, UNREACHABLE, message).advise(format!(
                "`tidelock session show {}` starts a daemon and shows what happened to it",
                self.session
            )),
        )
    }

    fn failed(&self, error: ClientError) -> Failure {
        match error {
            ClientError::Output { source } if source.kind() == ErrorKind::InvalidData => {
                let message = format!(
                    "can't read what the daemon reports about the turn: {}",
                    chain(&source)
                );
                Failure::new(Exit::Unreachable, "answer_not_understood", message).advise(
                    "the daemon may be running another version; restart it: `tidelock down && tidelock up`",
                )
            }
            error => error.into(),
        }
    }
}

/// Whether the last daemon ended without being asked to.
pub(in crate::commands) fn has_crashed(context: &Context) -> bool {
    read_owner(&context.home)
        .is_some_and(|owner| owner.liveness() == Liveness::Gone && !owner.has_stopped_cleanly())
}

/// Parses an event and its number; `None` for one that only a newer version knows.
///
/// # Errors
/// We should understand this event, and don't. Skipping it would leave a silent gap.
fn understand(event: &ServerEvent) -> io::Result<Option<(TurnMessage, Option<u64>)>> {
    let garbled = |error| io::Error::new(ErrorKind::InvalidData, error);
    let data = event.data.as_str();
    Ok(match (event.kind.as_str(), event.id.as_deref()) {
        ("end", _) => Some((
            TurnMessage::End(serde_json::from_str(data).map_err(garbled)?),
            None,
        )),
        ("resync", _) => {
            let resync: Value = serde_json::from_str(data).map_err(garbled)?;
            let after = resync["after"].as_u64();
            Some((TurnMessage::Resync(resync), after))
        }
        (_, Some(_)) => {
            let event: Value = serde_json::from_str(data).map_err(garbled)?;
            let sequence = event["sequence"].as_u64();
            Some((TurnMessage::Event(event), sequence))
        }
        (_, None) => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_understood_and_what_is_garbled_is_not_passed_over() {
        let event = |kind: &str, id: Option<&str>, data: &str| ServerEvent {
            id: id.map(str::to_owned),
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        let text = json!({ "sequence": 3, "at_ms": 0, "data": { "kind": "text", "item": 0, "delta": "x" } });
        let resync = json!({ "after": 7, "snapshot": { "items": [] } });
        let end = TurnEnd {
            sequence: 9,
            state: TurnState::Done,
        };
        let cases = [
            (
                event("text", Some("3"), &text.to_string()),
                Some(Some((TurnMessage::Event(text), Some(3)))),
            ),
            (
                event("resync", Some("7"), &resync.to_string()),
                Some(Some((TurnMessage::Resync(resync), Some(7)))),
            ),
            (
                event("end", None, r#"{"sequence":9,"state":"done"}"#),
                Some(Some((TurnMessage::End(end), None))),
            ),
            // An event from a newer daemon.
            (event("weather", None, "{}"), Some(None)),
            (event("text", Some("3"), "{\"seq"), None),
            (event("resync", Some("7"), "{"), None),
            (event("end", None, "{}"), None),
        ];
        for (event, expected) in cases {
            assert_eq!(understand(&event).ok(), expected, "{event:?}");
        }
    }
}
