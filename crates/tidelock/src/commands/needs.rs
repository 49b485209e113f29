//! `tidelock needs`: what is waiting for a person, and how to start on each item.

use protocol::{Need, NeedKind, NeedList};
use serde_json::json;

use super::machine::elsewhere;
use super::shell::quoted;
use crate::client::Client;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};

pub(super) fn run(client: &Client) -> Result<Report, Failure> {
    let list: NeedList = client.fetch("/v1/needs")?;
    Ok(report(client.palette(), &list))
}

fn report(palette: Palette, list: &NeedList) -> Report {
    let text = match list.needs.is_empty() {
        true => "Nothing needs you: no question, no plan to review, nothing broken.\n".to_owned(),
        false => table(palette, &list.needs.iter().flat_map(rows).collect::<Vec<_>>()),
    };
    let notes = match list.is_partial {
        true => vec!["the log could not be read, so there may be more".to_owned()],
        false => Vec::new(),
    };
    Report::success(
        json!({ "needs": list.needs, "is_partial": list.is_partial }),
        text,
    )
    .with_notes(notes)
}

fn rows(need: &Need) -> [Vec<Cell>; 3] {
    let (word, tone) = word(need.kind);
    let title = match need.title.trim() {
        "" => &need.id,
        title => title,
    };
    let text = match elsewhere(need.machine.as_ref()) {
        Some(machine) => format!("{} · on {machine}", need.text),
        None => need.text.clone(),
    };
    [
        vec![Cell::toned(word, tone), Cell::new(title)],
        vec![Cell::new(""), Cell::new(text)],
        vec![Cell::new(""), Cell::toned(command(need), Tone::Quiet)],
    ]
}

fn word(kind: NeedKind) -> (&'static str, Tone) {
    match kind {
        NeedKind::Permission => ("asks you", Tone::Warning),
        NeedKind::Stuck => ("stuck", Tone::Bad),
        NeedKind::Rescued => ("rescued", Tone::Warning),
        NeedKind::NotRecorded => ("not recorded", Tone::Bad),
        NeedKind::NotCarried => ("not carried", Tone::Warning),
        NeedKind::Conflict => ("conflict", Tone::Bad),
        NeedKind::CheckFailed => ("check failed", Tone::Bad),
        NeedKind::ChecksMissing => ("checks missing", Tone::Warning),
        NeedKind::Review => ("review", Tone::Warning),
        NeedKind::Overlap => ("overlap", Tone::Warning),
        NeedKind::Server => ("server failed", Tone::Bad),
        NeedKind::Waiting => ("prompt waits", Tone::Warning),
        NeedKind::Interrupted => ("interrupted", Tone::Bad),
        NeedKind::Job => ("job failed", Tone::Bad),
        NeedKind::Breaker => ("breaker open", Tone::Bad),
    }
}

fn command(need: &Need) -> String {
    let id = quoted(&need.id);
    match need.kind {
        NeedKind::Permission => {
            let permission = need.other.as_deref().unwrap_or_default();
            format!("tidelock session answer {id} {} allow", quoted(permission))
        }
        NeedKind::Stuck => format!("tidelock workspace repair {id}"),
        NeedKind::Rescued => format!("tidelock workspace rescued restore {id}"),
        NeedKind::NotRecorded => format!("tidelock plan seal {id}"),
        NeedKind::Conflict | NeedKind::CheckFailed | NeedKind::Overlap | NeedKind::NotCarried => {
            format!("tidelock plan show {id}")
        }
        NeedKind::ChecksMissing => format!("tidelock plan check {id}"),
        NeedKind::Review => format!("tidelock plan diff {id}"),
        NeedKind::Server => format!("tidelock lsp log {id}"),
        NeedKind::Waiting => format!("tidelock session queue {id} here"),
        NeedKind::Interrupted => format!("tidelock session send {id} 'go on'"),
        NeedKind::Job => format!("tidelock job logs {id}"),
        NeedKind::Breaker => format!("tidelock breaker history {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(kind: NeedKind, id: &str, title: &str, text: &str) -> Need {
        Need {
            kind,
            id: id.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            other: Some("permission_1".to_owned()),
            machine: None,
        }
    }

    #[test]
    fn each_need_says_what_it_is_and_what_to_type() {
        let list = NeedList {
            needs: vec![
                need(
                    NeedKind::Permission,
                    "session_1",
                    "Mend it",
                    "model wants to use shell: rm\u{1b}[2J",
                ),
                need(NeedKind::Review, "plan_1", "", "waits to be applied · 2 files"),
                need(NeedKind::Breaker, "model/it's", " ", "calls to it are refused"),
            ],
            is_partial: true,
        };
        let report = report(Palette::Plain, &list);
        let expected = "\
asks you      Mend it
              model wants to use shell: rm\u{fffd}[2J
              tidelock session answer session_1 permission_1 allow
review        plan_1
              waits to be applied · 2 files
              tidelock plan diff plan_1
breaker open  model/it's
              calls to it are refused
              tidelock breaker history 'model/it'\\''s'
";
        assert_eq!(report.text, expected);
        assert_eq!(report.notes, ["the log could not be read, so there may be more"]);
    }

    #[test]
    fn nothing_is_a_good_answer() {
        let list = NeedList {
            needs: Vec::new(),
            is_partial: false,
        };
        let report = report(Palette::Plain, &list);
        assert!(report.text.starts_with("Nothing needs you"), "{}", report.text);
        assert_eq!(report.value, json!({ "needs": [], "is_partial": false }));
    }
}
