//! `tidelock breaker history`: manual changes to a breaker, past and upcoming.

use std::convert::Infallible;
use std::io;

use protocol::{BreakerEvent, BreakerEventList, Resync};
use serde_json::json;

use crate::cli::HistoryArguments;
use crate::client::{Client, ClientError, Follower, Interrupts, path_segment};
use crate::commands::job::local;
use crate::error::Failure;
use crate::output::{self, Cell, Format, Palette, Report, json_line, list};
use protocol::sse::ServerEvent;

const PAGE_EVENTS: usize = 1000;

pub(super) fn past(
    arguments: &HistoryArguments,
    palette: Palette,
    client: &Client,
) -> Result<Report, ClientError> {
    let list = all(client, &path(&arguments.name), arguments.after)?;
    Ok(report(palette, &arguments.name, &list))
}

/// Shows past and new events, until the process is ended or its output is closed.
pub(super) fn follow(arguments: &HistoryArguments, client: &Client) -> Result<Report, Failure> {
    let path = path(&arguments.name);
    // Report a wrong name or a problem with the daemon before the wait begins.
    client.fetch::<BreakerEventList>(&format!("{path}?limit=1"))?;
    let place = Some(arguments.after.to_string());
    client.follow(
        &path,
        place,
        &mut Interrupts::default(),
        &mut Telling {
            format: client.format(),
        },
    )?;
    Ok(Report::already_told())
}

fn path(name: &str) -> String {
    format!("/v1/breakers/{}/events", path_segment(name))
}

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

fn report(palette: Palette, name: &str, events: &BreakerEventList) -> Report {
    let row = |event: &BreakerEvent| {
        vec![
            Cell::new(event.sequence.to_string()),
            Cell::new(local(&event.at)),
            Cell::new(words(&event.kind)),
            Cell::new(request(event)),
        ]
    };
    let text = list(
        palette,
        &["NUMBER", "TIME", "WHAT", "REQUEST"],
        events.events.iter().map(row).collect(),
        "This breaker has never been changed manually.",
    );
    let value = json!({ "id": name, "events": events.events, "first": events.first, "last": events.last });
    Report::success(value, text)
}

/// Prints events as they arrive, however long there is no daemon.
struct Telling {
    format: Format,
}

impl Follower for Telling {
    type End = Infallible;

    fn hear(&mut self, event: &ServerEvent) -> io::Result<Option<Infallible>> {
        output::write(io::stdout(), &line(event, self.format))?;
        Ok(None)
    }

    fn note(&mut self, text: &str) {
        if self.format == Format::Human {
            drop(output::write(io::stderr(), &format!("note: {text}\n")));
        }
    }

    fn lost(&self, _: Option<ClientError>) -> Option<Failure> {
        None
    }
}

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
        // From a daemon of another version; print it as it is.
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
