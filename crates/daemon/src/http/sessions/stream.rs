//! A turn as a stream of server-sent events: first what has happened, then what happens live, until the turn ends.
//!
//! The data of an event is copied unchanged from the log. Events that arrive together are sent together, and are
//! rendered once for all live readers, so another reader costs only a write.

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use eventlog::Event;
use http::HeaderMap;
use kernel::{Clock, Deadline};
use protocol::{ErrorCode, SessionId, TurnEnd, TurnId, TurnTranscript};
use serde::{Deserialize, Serialize};
use sessions::{FollowEnd, FollowFrom, FollowItem, TurnFollow};

use super::turns::find;
use crate::app::App;
use crate::http::events::{bookmark, last_event_id};
use crate::http::ids::Ids;
use crate::http::pieces::{Piece, Source};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::sse::{HEARTBEAT, NOTHING_NEW, named, numbered, stream_of, take_place};

/// The key under which all readers of a turn share the rendered events.
const FORM: &str = "server-sent events of a turn";
/// The approximate size of an event without its data.
const AROUND_BODY_BYTES: usize = 128;

/// Where a reader starts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowParameters {
    after: Option<String>,
    tail: Option<u64>,
}

/// Responds with the events of a turn, as a stream that ends with the turn. It is documented at its path, together with
/// the paged response.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    turn: Ids<SessionId, TurnId>,
    Query(parameters): Query<FollowParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = parameters
        .after
        .map(|after| bookmark("after", &after))
        .transpose()?;
    let from = match (last_event_id(&headers)?, after, parameters.tail) {
        (Some(place), _, _) | (None, Some(place), None) => FollowFrom::After(place),
        (None, None, Some(events)) => FollowFrom::Last(events),
        (None, None, None) => FollowFrom::Start,
        (None, Some(_), Some(_)) => {
            let detail = "`after` and `tail` are two places to begin at, and there can be one.";
            return Err(Problem::new(ErrorCode::InvalidQuery, detail).in_field("tail"));
        }
    };
    let place = take_place(&app)?;
    let scope = app.life.scope();
    let found = find(&app, turn).await?;
    let follow = app.sessions.follow_turn(found.id, from, &scope).await?;
    let clock = Arc::clone(&app.clock);
    Ok(stream_of(place, Following { follow, clock }))
}

/// The source of the stream.
struct Following {
    follow: TurnFollow,
    clock: Arc<dyn Clock>,
}

impl Source for Following {
    async fn next(mut self) -> Piece<Self> {
        let silence = Deadline::after(&self.clock, HEARTBEAT).passed();
        let bytes = tokio::select! {
            biased;
            item = self.follow.next() => match item {
                Ok(Some(item)) => describe(&item),
                // The daemon is draining, and the end of the stream makes the reader reconnect to the next
                // one. Or there is nothing left to send.
                Ok(None) | Err(FollowEnd::Cancelled(_) | FollowEnd::Removed) => return None,
                Err(FollowEnd::Failed(error)) => {
                    tracing::warn!(%error, "a stream ends because the turn cannot be read");
                    return Some((self, Err(io::Error::other(error))));
                }
            },
            () = silence => Bytes::from_static(NOTHING_NEW.as_bytes()),
        };
        Some((self, Ok(bytes)))
    }
}

/// An item as one or more server-sent events.
fn describe(item: &FollowItem) -> Bytes {
    match item {
        FollowItem::Events(batch) => batch.rendered(FORM, render),
        FollowItem::Resync { after, snapshot } => {
            let after = after.get();
            Bytes::from(numbered(after, "resync", &Resync { after, snapshot }))
        }
        FollowItem::End { sequence, state } => {
            let end = TurnEnd {
                sequence: sequence.get(),
                state: *state,
            };
            Bytes::from(named("end", &end))
        }
    }
}

/// The data of the `resync` event, with the same shape as `protocol::TurnResync`. It borrows the transcript, which can
/// be large.
#[derive(Serialize)]
struct Resync<'a> {
    after: u64,
    snapshot: &'a TurnTranscript,
}

/// Renders events in the form that all readers share.
fn render(events: &[Arc<Event>]) -> Bytes {
    let bodies: usize = events.iter().map(|event| event.body.len()).sum();
    let mut bytes = Vec::with_capacity(bodies + events.len() * AROUND_BODY_BYTES);
    for event in events {
        let (sequence, at_ms, kind) = (event.sequence, event.at_ms, &event.kind);
        // Writing to memory can't fail.
        drop(write!(
            bytes,
            "id: {sequence}-{at_ms}\nevent: {kind}\ndata: {{\"sequence\":{sequence},\"at_ms\":{at_ms},\"data\":"
        ));
        let start = bytes.len();
        bytes.extend_from_slice(&event.body);
        // In JSON, a newline can only occur between tokens. Here it would end the data.
        for byte in &mut bytes[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        bytes.extend_from_slice(b"}\n\n");
    }
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use eventlog::Sequence;

    use super::*;

    fn event(sequence: u64, kind: &str, body: &str) -> Arc<Event> {
        Arc::new(Event {
            sequence: Sequence::from_u64(sequence),
            at_ms: 17,
            kind: kind.into(),
            body: body.as_bytes().into(),
        })
    }

    #[test]
    fn an_event_is_what_the_log_has_in_one_line() {
        let events = [
            event(7, "text", r#"{"kind":"text","item":0,"delta":"a\nb"}"#),
            event(8, "state", "{\"kind\":\"state\",\n\r\"state\":\"done\"}"),
        ];
        let expected = concat!(
            "id: 7-17\nevent: text\ndata: {\"sequence\":7,\"at_ms\":17,\"data\":",
            r#"{"kind":"text","item":0,"delta":"a\nb"}"#,
            "}\n\n",
            "id: 8-17\nevent: state\ndata: {\"sequence\":8,\"at_ms\":17,\"data\":",
            r#"{"kind":"state",  "state":"done"}"#,
            "}\n\n",
        );
        assert_eq!(String::from_utf8(render(&events).to_vec()).unwrap(), expected);
        for data in expected.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let read: protocol::TurnEvent = serde_json::from_str(data).unwrap();
            assert_ne!(read.data, protocol::TurnEventBody::Unknown);
        }
    }
}
