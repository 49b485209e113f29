//! Reads the stream of a turn until the turn is over, also when the daemon is started afresh in between.
//!
//! Each event has a number. Whenever the stream ends before the turn does, it is asked for again from the last one that was
//! told, so that nothing is missed and nothing told twice. How long nobody may answer is bounded.

use std::io::ErrorKind;
use std::mem;
use std::time::{Duration, Instant};

use daemon::{Liveness, read_owner};
use hyper::header::{ACCEPT, HeaderName};
use protocol::{CancelTurn, TurnEnd, TurnState};
use serde_json::Value;

use super::tell::Beginning;
use super::{get, path, turn_path};
use crate::client::{Client, ClientError, Downloaded, Interrupts, Paused};
use crate::commands::job::Interrupted;
use crate::context::Context;
use crate::error::{Exit, Failure, UNREACHABLE, chain};
use crate::sse::{EventReader, ServerEvent};

/// A stream has a heartbeat every 15 seconds. After three that did not come, nobody is there.
const SILENCE: Duration = Duration::from_secs(45);
/// How long to wait before looking for the daemon again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How long nobody may answer: long enough for a daemon to end and another one to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest line that is kept: a snapshot of a long turn is one line.
const LINE_LIMIT_BYTES: usize = 256 << 20;

/// Something that the stream of a turn says.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::commands) enum Said {
    /// An event, as it came.
    Event(Value),
    /// A snapshot in the place of events.
    Resync(Value),
    End(TurnEnd),
}

/// Takes in what the stream of a turn says.
pub(in crate::commands) trait Listener {
    /// Takes something in. An error of the kind `BrokenPipe` ends the following, and is none.
    fn hear(&mut self, said: &Said) -> std::io::Result<()>;

    /// A piece of the stream has been taken in whole.
    fn flush(&mut self) -> std::io::Result<()>;

    /// Something that is not said by the turn, for people.
    fn note(&mut self, text: &str);
}

/// What Ctrl-C means.
#[derive(Debug)]
pub(in crate::commands) enum WhenInterrupted<'a> {
    /// The end of this process.
    EndTheProcess,
    /// The first one cancels the turn, the second one leaves it alone.
    CancelTheTurn(&'a mut Interrupts),
}

/// Why following ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Ended {
    /// The turn is over.
    Turn(TurnState),
    /// Somebody pressed Ctrl-C twice.
    LeftAlone,
    /// Nobody reads what is told.
    NobodyReads,
}

/// Follows a turn to its end.
pub(in crate::commands) fn follow(
    (context, client): (&Context, &Client),
    (session, turn): (&str, &str),
    beginning: Beginning,
    when_interrupted: WhenInterrupted<'_>,
    teller: &mut impl Listener,
) -> Result<Ended, Failure> {
    let mut none = Interrupts::default();
    let interrupts = match when_interrupted {
        WhenInterrupted::EndTheProcess => &mut none,
        WhenInterrupted::CancelTheTurn(interrupts) => interrupts,
    };
    let mut reading = Reading {
        path: turn_path(session, turn, "/events"),
        beginning,
        place: None,
        end: None,
        silent_since: None,
        is_absence_told: false,
    };
    let mut interrupted = Interrupted::No;
    loop {
        let ended = reading.read(client, interrupts, teller);
        if let Some(end) = reading.end.take() {
            return Ok(Ended::Turn(end.state));
        }
        let paused = match ended {
            Ok(Downloaded::UntilInterrupted) => Paused::UntilInterrupted,
            Err(ClientError::Output { source }) => match source.kind() {
                ErrorKind::BrokenPipe => return Ok(Ended::NobodyReads),
                ErrorKind::InvalidData => return Err(not_understood(&source)),
                _ => return Err(ClientError::Output { source }.into()),
            },
            other => {
                reading.endure(other, session, (context, client), teller)?;
                client.pause(LOOK_AGAIN_AFTER, interrupts)
            }
        };
        if paused == Paused::UntilInterrupted {
            if interrupted == Interrupted::Yes {
                return Ok(Ended::LeftAlone);
            }
            interrupted = Interrupted::Yes;
            cancel(client, session, turn, teller);
        }
    }
}

/// How far the reading is.
#[derive(Debug)]
struct Reading {
    path: String,
    beginning: Beginning,
    /// The last event that was told, or that is in a snapshot that was.
    place: Option<Place>,
    end: Option<TurnEnd>,
    /// Since when nothing has come from any daemon.
    silent_since: Option<Instant>,
    is_absence_told: bool,
}

/// The number of an event, and its id, to come back to.
#[derive(Clone, Debug)]
struct Place {
    number: u64,
    id: String,
}

impl Reading {
    fn read(
        &mut self,
        client: &Client,
        interrupts: &mut Interrupts,
        teller: &mut impl Listener,
    ) -> Result<Downloaded, ClientError> {
        let mut reader = EventReader::with_limit(LINE_LIMIT_BYTES);
        let mut headers = vec![(ACCEPT, "text/event-stream".to_owned())];
        let path = match (&self.place, self.beginning) {
            (Some(place), _) => {
                headers.push((HeaderName::from_static("last-event-id"), place.id.clone()));
                self.path.clone()
            }
            (None, Beginning::Start) => self.path.clone(),
            (None, Beginning::Tail(count)) => format!("{}?tail={count}", self.path),
        };
        client.download_until(&path, &headers, SILENCE, interrupts, |piece| {
            (self.silent_since, self.is_absence_told) = (None, false);
            // Only what was told is not asked for again.
            let mut place = self.place.clone();
            let mut end = None;
            for event in reader.read(piece) {
                let Some((said, number)) = understand(&event)? else {
                    continue;
                };
                match &said {
                    // It was told before the connection broke.
                    Said::Event(_) if number <= place.as_ref().map(|place| place.number) => continue,
                    Said::End(ended) => end = Some(ended.clone()),
                    Said::Event(_) | Said::Resync(_) => {
                        place = number
                            .zip(event.id.clone())
                            .map(|(number, id)| Place { number, id });
                    }
                }
                teller.hear(&said)?;
            }
            teller.flush()?;
            self.place = place;
            self.end = end.or(self.end.take());
            Ok(())
        })
    }

    /// The stream has ended before the turn. That is endured for a while, unless it cannot become better.
    fn endure(
        &mut self,
        ended: Result<Downloaded, ClientError>,
        session: &str,
        (context, client): (&Context, &Client),
        teller: &mut impl Listener,
    ) -> Result<(), Failure> {
        let error = match ended {
            // The daemon drains.
            Ok(_) => None,
            Err(ClientError::Refused(refusal)) if refusal.is_about_the_daemons_end() => None,
            Err(
                error @ (ClientError::Unreachable { .. }
                | ClientError::Broken { .. }
                | ClientError::Timeout { .. }),
            ) => Some(error),
            Err(error) => return Err(error.into()),
        };
        if error.is_some() && has_crashed(context) {
            // Nobody wanted it to end, so it is started again: it knows what has become of the turn.
            teller.note("the daemon has crashed; restarting it");
            get_patiently(&path(session, ""), context, client)?;
            return Ok(());
        }
        let since = *self.silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            // A stream that has only ended most likely goes on at once.
            if error.is_some() && !mem::replace(&mut self.is_absence_told, true) {
                teller.note("the daemon is gone; waiting for it to come back");
            }
            return Ok(());
        }
        let why = error.map_or_else(|| "it doesn't accept requests".to_owned(), |error| chain(&error));
        let message = format!("lost the daemon before the turn ended: {why}");
        Err(
            Failure::new(Exit::Unreachable, UNREACHABLE, message).advise(format!(
                "`tidelock session show {session}` starts a daemon and shows what happened to it"
            )),
        )
    }
}

/// Something that is only looked at, by somebody who stays: a daemon that ends while it answers, and the next one too, is
/// asked again for a while.
pub(super) fn get_patiently(path: &str, context: &Context, client: &Client) -> Result<Value, Failure> {
    let give_up_at = Instant::now() + PATIENCE;
    loop {
        match get(path, context, client) {
            Err(failure) if failure.code == UNREACHABLE && Instant::now() < give_up_at => {
                client.pause(LOOK_AGAIN_AFTER, &mut Interrupts::default());
            }
            answered => return answered,
        }
    }
}

fn not_understood(error: &std::io::Error) -> Failure {
    let message = format!(
        "can't read what the daemon reports about the turn: {}",
        chain(error)
    );
    Failure::new(Exit::Unreachable, "answer_not_understood", message)
        .advise("the daemon may be running another version; restart it: `tidelock down && tidelock up`")
}

/// Whether the daemon that was here last ended without being told to.
pub(in crate::commands) fn has_crashed(context: &Context) -> bool {
    read_owner(&context.home)
        .is_some_and(|owner| owner.liveness() == Liveness::Gone && !owner.has_stopped_cleanly())
}

fn cancel(client: &Client, session: &str, turn: &str, teller: &mut impl Listener) {
    let request = CancelTurn {
        turn: Some(turn.to_owned()),
        why: Some("Ctrl-C".to_owned()),
    };
    // The end is seen in the stream.
    match client.post::<Value>(&path(session, "/cancel?wait_ms=0"), Some(&request)) {
        Ok(_) => teller.note(
            "Cancelling the turn. Press Ctrl-C again to detach; it keeps running until it has stopped.",
        ),
        // It was faster; its end is about to be told.
        Err(ClientError::Refused(refusal)) if refusal.code == "turn_not_active" => {}
        Err(error) => teller.note(&format!(
            "Couldn't cancel the turn ({}). Press Ctrl-C again to detach; it keeps running.",
            chain(&error)
        )),
    }
}

/// An event in our words with its number, and nothing if a newer daemon says something that we have not heard of.
///
/// # Errors
/// It is something that we should understand. To pass over it would be a silent gap.
fn understand(event: &ServerEvent) -> std::io::Result<Option<(Said, Option<u64>)>> {
    let garbled = |error| std::io::Error::new(ErrorKind::InvalidData, error);
    let data = event.data.as_str();
    Ok(match (event.kind.as_str(), event.id.as_deref()) {
        ("end", _) => Some((Said::End(serde_json::from_str(data).map_err(garbled)?), None)),
        ("resync", _) => {
            let resync: Value = serde_json::from_str(data).map_err(garbled)?;
            let after = resync["after"].as_u64();
            Some((Said::Resync(resync), after))
        }
        (_, Some(_)) => {
            let event: Value = serde_json::from_str(data).map_err(garbled)?;
            let sequence = event["sequence"].as_u64();
            Some((Said::Event(event), sequence))
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
                Some(Some((Said::Event(text), Some(3)))),
            ),
            (
                event("resync", Some("7"), &resync.to_string()),
                Some(Some((Said::Resync(resync), Some(7)))),
            ),
            (
                event("end", None, r#"{"sequence":9,"state":"done"}"#),
                Some(Some((Said::End(end), None))),
            ),
            // What a newer daemon says besides.
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
