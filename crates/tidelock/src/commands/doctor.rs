//! `tidelock doctor`: checks what a daemon needs on this machine, one by one. It changes nothing.

mod agents;
mod clients;
mod configuration;
mod directories;
mod durable;
mod languages;
mod mcp_answer;
mod running;
mod sandboxes;
mod system;
mod workspaces;

use serde::Serialize;
use serde_json::json;

use crate::cli::Depth;
use crate::client::Client;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, table};

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Check {
    id: &'static str,
    state: State,
    detail: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Warning,
    Failed,
}

impl Check {
    fn ok(id: &'static str, detail: impl Into<String>) -> Check {
        Check {
            id,
            state: State::Ok,
            detail: detail.into(),
            advice: None,
        }
    }

    fn warning(id: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        Check {
            id,
            state: State::Warning,
            detail: detail.into(),
            advice: Some(advice.into()),
        }
    }

    fn failed(id: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Check {
        Check {
            id,
            state: State::Failed,
            detail: detail.into(),
            advice: Some(advice.into()),
        }
    }
}

pub(super) fn run(depth: Depth, client: &Client) -> Result<Report, Failure> {
    let mut checks = directories::check(&client.context);
    checks.extend(configuration::check(&client.context));
    checks.extend(running::check(client));
    checks.extend(durable::check(depth, client));
    checks.extend(system::check(&client.context));
    checks.extend(sandboxes::check(client));
    checks.extend(workspaces::check(client));
    checks.extend(agents::check(client));
    checks.extend(clients::check(client));
    let languages = languages::look(client.palette(), client);
    checks.push(languages.check);
    let mut report = report(client.palette(), &checks);
    report.text.push_str(&languages.text);
    report.value["language_servers"] = languages.value;
    Ok(report)
}

fn report(palette: Palette, checks: &[Check]) -> Report {
    let worst = checks.iter().map(|check| check.state).max().unwrap_or(State::Ok);
    let mut rows = Vec::new();
    for check in checks {
        let (word, tone) = match check.state {
            State::Ok => ("ok", Tone::Good),
            State::Warning => ("warning", Tone::Warning),
            State::Failed => ("failed", Tone::Bad),
        };
        rows.push(vec![
            Cell::toned(word, tone),
            Cell::new(check.id),
            Cell::new(&check.detail),
        ]);
        if let Some(advice) = &check.advice {
            rows.push(vec![
                Cell::new(""),
                Cell::new(""),
                Cell::toned(format!("hint: {advice}"), Tone::Quiet),
            ]);
        }
    }
    let exit = match worst {
        State::Ok | State::Warning => Exit::Success,
        State::Failed => Exit::Failed,
    };
    Report {
        value: json!({ "state": worst, "checks": checks }),
        text: table(palette, &rows),
        notes: Vec::new(),
        exit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_check_decides_and_advice_stands_below_its_check() {
        let checks = [Check::ok("a", "fine"), Check::warning("bb", "odd", "mend it")];
        let found = report(Palette::Plain, &checks);
        assert_eq!(
            found.text,
            "ok       a   fine\nwarning  bb  odd\n             hint: mend it\n"
        );
        assert_eq!(found.exit, Exit::Success);
        assert_eq!(
            found.value,
            json!({ "state": "warning", "checks": [
                { "id": "a", "state": "ok", "detail": "fine", "advice": null },
                { "id": "bb", "state": "warning", "detail": "odd", "advice": "mend it" },
            ]})
        );
        let found = report(
            Palette::Plain,
            &[Check::failed("c", "gone", "find it"), Check::ok("a", "fine")],
        );
        assert_eq!(
            (found.exit, &found.value["state"]),
            (Exit::Failed, &json!("failed"))
        );
    }
}
