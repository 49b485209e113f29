//! Moments of a plan as they come, over restarts of the daemon.

use std::io;
use std::time::Duration;

use hyper::header::{ACCEPT, HeaderName};
use protocol::{PlanMoment, Resync};

use super::path;
use crate::client::{Client, ClientError, Downloaded, Interrupts};
use crate::sse::{EventReader, ServerEvent};

/// A stream has a heartbeat every 15 seconds. After three that did not come, nobody is there.
const SILENCE: Duration = Duration::from_secs(45);

/// Something that was said about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Moment(PlanMoment),
    /// What came up to here was dropped after its time.
    Resync(u64),
    /// Something that we have not heard of, or a sign of life.
    Other,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hear {
    More,
    Enough,
}

/// Reads moments after a place, and moves the place on. It returns when the stream ends, when somebody presses Ctrl-C,
/// or when enough was heard.
pub(super) fn read(
    client: &Client,
    id: &str,
    place: &mut u64,
    interrupts: &mut Interrupts,
    mut hear: impl FnMut(&Told) -> io::Result<Hear>,
) -> Result<Downloaded, ClientError> {
    let mut reader = EventReader::default();
    let headers = [
        (ACCEPT, "text/event-stream".to_owned()),
        (HeaderName::from_static("last-event-id"), place.to_string()),
    ];
    let mut enough = false;
    let ended = client.download_until(&path(id, "/events"), &headers, SILENCE, interrupts, |piece| {
        let events = reader.read(piece);
        if events.is_empty() && hear(&Told::Other)? == Hear::Enough {
            enough = true;
            return Err(io::ErrorKind::Interrupted.into());
        }
        for event in events {
            let wanted = hear(&understand(&event))?;
            // Only what was told is not asked for again.
            if let Some(id) = event.id.as_deref().and_then(|id| id.parse().ok()) {
                *place = id;
            }
            if wanted == Hear::Enough {
                enough = true;
                // The only way to leave a stream that goes on.
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    });
    match ended {
        Err(ClientError::Output { .. }) if enough => Ok(Downloaded::Whole),
        ended => ended,
    }
}

fn understand(event: &ServerEvent) -> Told {
    if event.kind == "resync" {
        return serde_json::from_str::<Resync>(&event.data)
            .map_or(Told::Other, |resync| Told::Resync(resync.after));
    }
    serde_json::from_str(&event.data).map_or(Told::Other, Told::Moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_understood_whatever_they_are_called() {
        let event = |kind: &str, data: &str| ServerEvent {
            id: None,
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        let moment = PlanMoment {
            sequence: 3,
            at: "then".to_owned(),
            event: "sealed".to_owned(),
            actor: "me".to_owned(),
            text: String::new(),
        };
        let data = serde_json::to_string(&moment).unwrap();
        for (event, expected) in [
            (event("sealed", &data), Told::Moment(moment.clone())),
            (event("moment", &data), Told::Moment(moment.clone())),
            (event("resync", r#"{"after":7}"#), Told::Resync(7)),
            (event("resync", "?"), Told::Other),
            (event("new", "{}"), Told::Other),
        ] {
            assert_eq!(understand(&event), expected, "{event:?}");
        }
    }
}
