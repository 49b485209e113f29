//! `tidelock breaker history`: what was done to a breaker by hand, and what is done to it from now on.

use std::cell::Cell as Place;
use std::io;
use std::thread;
use std::time::Duration;

use hyper::header::{ACCEPT, HeaderName};
use protocol::{BreakerEvent, BreakerEventList, Resync};
use serde_json::json;

use crate::cli::HistoryArguments;
use crate::client::{Client, ClientError, path_segment};
use crate::commands::job::local;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{self, Cell, Format, Palette, Report, Tone, json_line, table};
use crate::sse::{EventReader, ServerEvent};
use crate::start::{Repeat, with_daemon};

/// How many events are asked for at a time.
const PAGE_EVENTS: usize = 1000;
/// A stream has a heartbeat every 15 seconds. After three that did not come, nobody is there.
const SILENCE: Duration = Duration::from_secs(45);
/// How long to wait before looking for the daemon again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// What is there.
pub(super) fn past(
    arguments: &HistoryArguments,
    palette: Palette,
    client: &Client,
) -> Result<Report, ClientError> {
    let list = all(client, &path(&arguments.name), arguments.after)?;
    Ok(report(palette, &arguments.name, &list))
}

/// What is there and what comes, until somebody ends the process or reads no more.
pub(super) fn follow(
    arguments: &HistoryArguments,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    let path = path(&arguments.name);
    // What is wrong with the name, or with the daemon, is said before the wait begins.
    let ask = |client: &Client| client.get::<BreakerEventList>(&format!("{path}?limit=1"));
    with_daemon(context, client, Repeat::Harmless, ask)?;
    tell(client, &path, arguments.after, format).map(|()| Report::already_told())
}

fn path(name: &str) -> String {
    format!("/v1/breakers/{}/events", path_segment(name))
}

/// All pages, as one list.
fn all(client: &Client, path: &str, after: u64) -> Result<BreakerEventList, ClientError> {
    let mut place = after;
    let mut events = Vec::new();
    loop {
        let page: BreakerEventList = client.get(&format!("{path}?after={place}&limit={PAGE_EVENTS}"))?;
        let is_last = page.events.len() < PAGE_EVENTS;
        place = page.events.last().map_or(place, |event| event.sequence);
        events.extend(page.events);
        if is_last {
            return Ok(BreakerEventList { events, ..page });
        }
    }
}

fn report(palette: Palette, name: &str, list: &BreakerEventList) -> Report {
    let text = if list.events.is_empty() {
        "Nobody has changed this breaker by hand.\n".to_owned()
    } else {
        let heading = ["NUMBER", "TIME", "WHAT", "REQUEST"];
        let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
        rows.extend(list.events.iter().map(|event| {
            vec![
                Cell::new(event.sequence.to_string()),
                Cell::new(local(&event.at)),
                Cell::new(words(&event.kind)),
                Cell::new(request(event)),
            ]
        }));
        table(palette, &rows)
    };
    let value = json!({ "id": name, "events": list.events, "first": list.first, "last": list.last });
    Report::success(value, text)
}

/// Tells events as they come. Whenever the stream ends, it goes on after the last one that was told.
fn tell(client: &Client, path: &str, after: u64, format: Format) -> Result<(), Failure> {
    let place = Place::new(after);
    let mut told_of_absence = false;
    loop {
        let mut reader = EventReader::default();
        let headers = [
            (ACCEPT, "text/event-stream".to_owned()),
            (HeaderName::from_static("last-event-id"), place.get().to_string()),
        ];
        let ended = client.download(path, &headers, SILENCE, |piece| {
            told_of_absence = false;
            reader.read(piece).iter().try_for_each(|event| {
                output::write(io::stdout(), &line(event, format))?;
                // Only what was told is not asked for again.
                if let Some(id) = event.id.as_deref().and_then(|id| id.parse().ok()) {
                    place.set(id);
                }
                Ok(())
            })
        });
        match ended {
            Ok(()) => {}
            // Whoever read it has seen enough.
            Err(ClientError::Output { source }) if source.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(ClientError::Refused(refusal)) if refusal.is_about_the_daemons_end() => {}
            Err(
                ClientError::Unreachable { .. } | ClientError::Broken { .. } | ClientError::Timeout { .. },
            ) => {
                if !told_of_absence && format == Format::Human {
                    drop(output::write(
                        io::stderr(),
                        "note: the daemon is gone; waiting for it to come back\n",
                    ));
                    told_of_absence = true;
                }
            }
            Err(error) => return Err(error.into()),
        }
        thread::sleep(LOOK_AGAIN_AFTER); // tidy: nobody tells when a daemon is started by somebody else
    }
}

/// One line for one event.
fn line(event: &ServerEvent, format: Format) -> String {
    if let Ok(Resync { after }) = serde_json::from_str(&event.data)
        && event.kind == "resync"
    {
        return match format {
            Format::Json => json_line(&json!({ "resync": { "after": after } })),
            Format::Human => format!("Events up to number {after} have expired and were deleted.\n"),
        };
    }
    match (serde_json::from_str::<BreakerEvent>(&event.data), format) {
        (Ok(event), Format::Human) => {
            let (number, time, what) = (event.sequence, local(&event.at), words(&event.kind));
            format!("{number}  {time}  {what}  {}\n", request(&event))
        }
        (Ok(event), Format::Json) => json_line(&event),
        // From a daemon of another version; what it says is still what happened.
        (Err(_), _) => format!("{}\n", event.data),
    }
}

fn request(event: &BreakerEvent) -> String {
    match &event.by {
        Some(by) => format!("{} over {}", by.request_id, by.transport),
        None => String::new(),
    }
}

fn words(kind: &str) -> String {
    kind.replace('_', " ")
}
