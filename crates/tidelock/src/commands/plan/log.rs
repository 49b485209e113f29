//! A plan's history, past and new.

use std::io;

use protocol::{PlanHistory, PlanMoment, Resync};
use serde_json::{Value, json};

use super::{get, path};
use crate::cli::{LogArguments, Reach};
use crate::client::{Client, ClientError, Follower, Interrupts};
use crate::commands::ids::PLAN;
use crate::commands::job::local;
use crate::error::{Exit, Failure, UNREACHABLE};
use crate::output::{self, Cell, Format, Palette, Report, Tone, json_line, table};
use crate::printable::{cut, one_line, printable};
use protocol::sse::ServerEvent;

const PAGE_MOMENTS: usize = 1000;
const TEXT_CHARACTERS: usize = 200;

pub(super) fn run(arguments: &LogArguments, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(&arguments.plan.plan, client)?;
    match arguments.reach() {
        Reach::Past => {
            let value = json!({ "id": id, "moments": past(&id, client)? });
            let history: PlanHistory = printable(&value)?;
            Ok(Report::success(value, rows(client.palette(), &history.moments)))
        }
        Reach::Follow => {
            // Report a missing plan or daemon before the wait begins.
            get(&id, "", client)?;
            let mut telling = LogPrinter {
                palette: client.palette(),
                format: client.format(),
            };
            let place = Some("0".to_owned());
            // Ctrl-C ends the process.
            let interrupts = &mut Interrupts::default();
            client.follow(&path(&id, "/events"), place, interrupts, &mut telling)?;
            Ok(Report::already_told())
        }
    }
}

fn past(id: &str, client: &Client) -> Result<Vec<Value>, Failure> {
    let mut moments: Vec<Value> = Vec::new();
    let mut after = 0;
    loop {
        let rest = format!("/history?after={after}&limit={PAGE_MOMENTS}");
        let Value::Array(page) = get(id, &rest, client)?["moments"].take() else {
            return Ok(moments);
        };
        let is_last = page.len() < PAGE_MOMENTS;
        let last = page.last().and_then(|moment| moment["sequence"].as_u64());
        moments.extend(page);
        match last {
            // Without this check, a position that does not advance would loop forever.
            Some(place) if !is_last && place > after => after = place,
            _ => return Ok(moments),
        }
    }
}

struct LogPrinter {
    palette: Palette,
    format: Format,
}

impl Follower for LogPrinter {
    type End = ();

    fn hear(&mut self, event: &ServerEvent) -> io::Result<Option<()>> {
        let told = understand(event);
        output::write(io::stdout(), &line(self.palette, self.format, &told))?;
        Ok(is_last(&told).then_some(()))
    }

    fn lost(&self, error: Option<ClientError>) -> Option<Failure> {
        Some(error.map_or_else(
            || {
                let message = "lost the daemon before the plan ended";
                Failure::new(Exit::Unreachable, UNREACHABLE, message).advise("start it with `tidelock up`")
            },
            Failure::from,
        ))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LogItem {
    Moment(PlanMoment),
    Resync(u64),
    /// An unknown event, or a heartbeat.
    Other,
}

fn understand(event: &ServerEvent) -> LogItem {
    if event.kind == "resync" {
        return serde_json::from_str::<Resync>(&event.data)
            .map_or(LogItem::Other, |resync| LogItem::Resync(resync.after));
    }
    serde_json::from_str(&event.data).map_or(LogItem::Other, LogItem::Moment)
}

/// Nothing more happens to a discarded plan. An applied one can be undone.
fn is_last(told: &LogItem) -> bool {
    matches!(told, LogItem::Moment(moment) if moment.event == "discarded")
}

fn line(palette: Palette, format: Format, told: &LogItem) -> String {
    match (told, format) {
        (LogItem::Moment(moment), Format::Json) => json_line(moment),
        (LogItem::Resync(after), Format::Json) => json_line(&json!({ "resync": { "after": after } })),
        (LogItem::Moment(moment), Format::Human) => {
            let shown = printable(&json!(moment)).unwrap_or_else(|_| moment.clone());
            table(palette, &[row(&shown)])
        }
        (LogItem::Resync(after), Format::Human) => {
            format!("Events up to number {after} have expired and were deleted.\n")
        }
        (LogItem::Other, _) => String::new(),
    }
}

fn rows(palette: Palette, moments: &[PlanMoment]) -> String {
    let rows: Vec<Vec<Cell>> = moments.iter().map(row).collect();
    table(palette, &rows)
}

fn row(moment: &PlanMoment) -> Vec<Cell> {
    let tone = match moment.event.as_str() {
        "applied" | "child_merged" => Tone::Good,
        "refused" => Tone::Bad,
        "overlapped" | "undone" | "discarded" => Tone::Warning,
        _ => Tone::Plain,
    };
    vec![
        Cell::toned(one_line(&local(&moment.at)), Tone::Quiet),
        Cell::toned(moment.event.replace('_', " "), tone),
        Cell::new(cut(&moment.actor, TEXT_CHARACTERS)),
        Cell::new(cut(&moment.text, TEXT_CHARACTERS)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(sequence: u64, event: &str, text: &str) -> PlanMoment {
        PlanMoment {
            sequence,
            at: format!("2026-01-31T09:30:0{sequence}.000Z"),
            event: event.to_owned(),
            actor: "me".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn moments_are_lines() {
        let moments = [
            moment(1, "opened", "mend the parser"),
            moment(2, "command_started", "cargo fmt"),
            moment(3, "changed", "3 files"),
            moment(4, "overlapped", "with another, in src/lib.rs"),
            moment(5, "refused", "1 conflict"),
            moment(6, "applied", ""),
        ];
        insta::assert_snapshot!(rows(Palette::Plain, &moments));
        assert_eq!(
            line(
                Palette::Plain,
                Format::Human,
                &LogItem::Moment(moment(7, "sealed", "\u{1b}[1m"))
            ),
            "2026-01-31 09:30:07.000  sealed  me  \u{fffd}[1m\n"
        );
        assert_eq!(
            line(Palette::Plain, Format::Json, &LogItem::Resync(4)),
            "{\"resync\":{\"after\":4}}\n"
        );
    }

    #[test]
    fn only_a_discarded_plan_is_over_for_good() {
        for (event, expected) in [("discarded", true), ("applied", false), ("undone", false)] {
            assert_eq!(
                is_last(&LogItem::Moment(moment(1, event, ""))),
                expected,
                "{event}"
            );
        }
    }

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
            (event("sealed", &data), LogItem::Moment(moment.clone())),
            (event("moment", &data), LogItem::Moment(moment.clone())),
            (event("resync", r#"{"after":7}"#), LogItem::Resync(7)),
            (event("resync", "?"), LogItem::Other),
            (event("new", "{}"), LogItem::Other),
        ] {
            assert_eq!(understand(&event), expected, "{event:?}");
        }
    }
}
