//! `tidelock activity`: what happened lately, across all kinds of entities.

use protocol::{Activity, ActivityKind, ActivityList};
use serde_json::json;

use crate::cli::{ActivityArguments, ActivityOf};
use crate::client::Client;
use crate::commands::job::local;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, list};
use crate::printable::shortened;

/// How much of a title or a text is shown in a row. The page and `--json` have all of it.
const SHOWN_CHARS: usize = 60;

pub(super) fn run(arguments: &ActivityArguments, client: &Client) -> Result<Report, Failure> {
    let path = path(arguments);
    let events: ActivityList = client.fetch(&path)?;
    Ok(report(client.palette(), &events))
}

fn path(arguments: &ActivityArguments) -> String {
    let limit = arguments.limit;
    match arguments.of {
        None => format!("/v1/activity?limit={limit}"),
        Some(of) => format!("/v1/activity?limit={limit}&kind={}", name(kind(of))),
    }
}

fn kind(of: ActivityOf) -> ActivityKind {
    match of {
        ActivityOf::Sessions => ActivityKind::Session,
        ActivityOf::Plans => ActivityKind::Plan,
        ActivityOf::Jobs => ActivityKind::Job,
        ActivityOf::Servers => ActivityKind::Server,
        ActivityOf::Breakers => ActivityKind::Breaker,
        ActivityOf::Daemon => ActivityKind::Daemon,
    }
}

fn name(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::Session => "session",
        ActivityKind::Plan => "plan",
        ActivityKind::Job => "job",
        ActivityKind::Server => "server",
        ActivityKind::Breaker => "breaker",
        ActivityKind::Daemon => "daemon",
    }
}

fn report(palette: Palette, events: &ActivityList) -> Report {
    let text = list(
        palette,
        &["TIME", "WHAT", "EVENT", "TITLE", "BY", "MORE"],
        events.activity.iter().map(row).collect(),
        "Nothing has happened yet.",
    );
    Report::success(json!({ "activity": events.activity }), text)
}

fn row(event: &Activity) -> Vec<Cell> {
    let title = match event.title.trim() {
        "" => &event.id,
        title => title,
    };
    let more = match event.count {
        0 | 1 => event.text.clone(),
        count => format!("{count} times, the last one: {}", event.text),
    };
    vec![
        Cell::toned(local(&event.at), Tone::Quiet),
        Cell::new(name(event.kind)),
        Cell::toned(event.event.replace('_', " "), tone(&event.event)),
        Cell::new(shortened(title, SHOWN_CHARS)),
        Cell::new(shortened(&event.actor, SHOWN_CHARS)),
        Cell::new(shortened(&more, SHOWN_CHARS)),
    ]
}

fn tone(event: &str) -> Tone {
    match event {
        "failed" | "crashed" | "refused" | "interrupted" | "forced_open" => Tone::Bad,
        "applied" | "succeeded" | "ready" | "child_merged" => Tone::Good,
        "sealed" | "overlapped" | "asked" | "undone" | "retrying" | "restarting" => Tone::Warning,
        _ => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_one_line() {
        let event = |event: &str, title: &str, count| Activity {
            at: "2026-01-31T09:30:00.125Z".to_owned(),
            kind: ActivityKind::Plan,
            id: "plan_1".to_owned(),
            title: title.to_owned(),
            event: event.to_owned(),
            actor: "claude".to_owned(),
            text: "1 change".to_owned(),
            count,
        };
        let list = ActivityList {
            activity: vec![event("changed", "Fix it", 3), event("changeset_started", " ", 1)],
        };
        let expected = "\
TIME                     WHAT  EVENT              TITLE   BY      MORE
2026-01-31 09:30:00.125  plan  changed            Fix it  claude  3 times, the last one: 1 change
2026-01-31 09:30:00.125  plan  changeset started  plan_1  claude  1 change
";
        assert_eq!(report(Palette::Plain, &list).text, expected);
        let nothing = ActivityList { activity: Vec::new() };
        assert_eq!(
            report(Palette::Plain, &nothing).text,
            "Nothing has happened yet.\n"
        );
    }

    #[test]
    fn one_kind_can_be_asked_for() {
        let asked = |of| path(&ActivityArguments { of, limit: 7 });
        assert_eq!(asked(None), "/v1/activity?limit=7");
        assert_eq!(asked(Some(ActivityOf::Jobs)), "/v1/activity?limit=7&kind=job");
    }
}
