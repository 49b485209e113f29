//! What has happened to a plan, and what happens to it from now on.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use protocol::{PlanHistory, PlanMoment};
use serde_json::{Value, json};

use super::moments::{Hear, Told, read};
use super::{find, get};
use crate::cli::{LogArguments, Reach};
use crate::client::{Client, ClientError, Interrupts};
use crate::commands::job::local;
use crate::commands::lsp::printable::{cut, one_line, printable};
use crate::context::Context;
use crate::error::{Exit, Failure, UNREACHABLE};
use crate::output::{self, Cell, Format, Palette, Report, Tone, json_line, table};

/// How long to wait before looking for the daemon again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How long nobody may answer: long enough for a daemon to end and another one to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many moments are asked for at a time.
const PAGE_MOMENTS: usize = 1000;
/// How much of a text is shown.
const TEXT_CHARACTERS: usize = 200;

pub(super) fn run(
    arguments: &LogArguments,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    let id = find(&arguments.plan.plan, context, client)?;
    match arguments.reach() {
        Reach::Past => {
            let value = json!({ "id": id, "moments": past(&id, context, client)? });
            let history: PlanHistory = printable(&value)?;
            Ok(Report::success(value, rows(context.palette, &history.moments)))
        }
        Reach::Follow => {
            // Whether there is such a plan, or a daemon, is said before the wait begins.
            get(&id, "", context, client)?;
            follow(&id, context.palette, format, client).map(|()| Report::already_told())
        }
    }
}

/// All pages, as one list.
fn past(id: &str, context: &Context, client: &Client) -> Result<Vec<Value>, Failure> {
    let mut moments: Vec<Value> = Vec::new();
    let mut after = 0;
    loop {
        let rest = format!("/history?after={after}&limit={PAGE_MOMENTS}");
        let Value::Array(page) = get(id, &rest, context, client)?["moments"].take() else {
            return Ok(moments);
        };
        let is_last = page.len() < PAGE_MOMENTS;
        let last = page.last().and_then(|moment| moment["sequence"].as_u64());
        moments.extend(page);
        match last {
            // A place that does not move on would be asked for for ever.
            Some(place) if !is_last && place > after => after = place,
            _ => return Ok(moments),
        }
    }
}

fn follow(id: &str, palette: Palette, format: Format, client: &Client) -> Result<(), Failure> {
    let mut place = 0;
    let mut over = false;
    let mut silent_since: Option<Instant> = None;
    loop {
        // Ctrl-C ends the process.
        let ended = read(client, id, &mut place, &mut Interrupts::default(), |told| {
            silent_since = None;
            over = over || is_last(told);
            output::write(io::stdout(), &line(palette, format, told))?;
            Ok(if over { Hear::Enough } else { Hear::More })
        });
        match ended {
            _ if over => return Ok(()),
            Ok(_) => {}
            // A reader who has seen enough.
            Err(ClientError::Output { source }) if source.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(
                error @ (ClientError::Unreachable { .. }
                | ClientError::Broken { .. }
                | ClientError::Timeout { .. }),
            ) => {
                let since = *silent_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= PATIENCE {
                    return Err(error.into());
                }
            }
            Err(ClientError::Refused(refusal)) if refusal.is_about_the_daemons_end() => {}
            Err(error) => return Err(error.into()),
        }
        let since = *silent_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= PATIENCE {
            let message = "lost the daemon before the plan ended";
            return Err(
                Failure::new(Exit::Unreachable, UNREACHABLE, message).advise("start it with `tidelock up`")
            );
        }
        client.pause(LOOK_AGAIN_AFTER, &mut Interrupts::default());
    }
}

/// Nothing more happens to a plan that was discarded. One that was applied can be taken back.
fn is_last(told: &Told) -> bool {
    matches!(told, Told::Moment(moment) if moment.event == "discarded")
}

fn line(palette: Palette, format: Format, told: &Told) -> String {
    match (told, format) {
        (Told::Moment(moment), Format::Json) => json_line(moment),
        (Told::Resync(after), Format::Json) => json_line(&json!({ "resync": { "after": after } })),
        (Told::Moment(moment), Format::Human) => {
            let shown = printable(&json!(moment)).unwrap_or_else(|_| moment.clone());
            table(palette, &[row(&shown)])
        }
        (Told::Resync(after), Format::Human) => {
            format!("Events up to number {after} have expired and were deleted.\n")
        }
        (Told::Other, _) => String::new(),
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
                &Told::Moment(moment(7, "sealed", "\u{1b}[1m"))
            ),
            "2026-01-31 09:30:07.000  sealed  me  \u{fffd}[1m\n"
        );
        assert_eq!(
            line(Palette::Plain, Format::Json, &Told::Resync(4)),
            "{\"resync\":{\"after\":4}}\n"
        );
    }

    #[test]
    fn only_a_discarded_plan_is_over_for_good() {
        for (event, expected) in [("discarded", true), ("applied", false), ("undone", false)] {
            assert_eq!(is_last(&Told::Moment(moment(1, event, ""))), expected, "{event}");
        }
    }
}
