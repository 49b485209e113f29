//! Shows one session in full.

use protocol::{Session, Turn, TurnList};
use serde_json::json;

use super::labels::{agent, state, turn_state, waits_for, why};
use super::path;
use crate::client::Client;
use crate::commands::ids::SESSION;
use crate::commands::job::{age, between, with_age};
use crate::commands::machine::elsewhere;
use crate::commands::plan::short;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, fields, table};
use crate::printable::{cut, printable};
use crate::units::format_duration;

/// How many turns are shown. An export has the rest.
const SHOWN_TURNS: usize = 10;
const PROMPT_CHARACTERS: usize = 70;

pub(super) fn show(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = SESSION.find(wanted, client)?;
    let mut value = client.fetch(&path(&id, ""))?;
    let waiting = client.fetch(&path(&id, "/queue"))?;
    let turns = client.fetch(&path(&id, &format!("/turns?limit={SHOWN_TURNS}")))?;
    let session: Session = printable(&value)?;
    let text = text(
        client.palette(),
        &session,
        &printable::<TurnList>(&waiting)?.turns,
        &printable::<TurnList>(&turns)?.turns,
    );
    value["waiting"] = waiting["turns"].clone();
    value["turns"] = json!(turns["turns"]);
    Ok(Report::success(value, text))
}

fn text(palette: Palette, session: &Session, waiting: &[Turn], turns: &[Turn]) -> String {
    let mut rows = vec![
        ("session", Cell::new(&session.id)),
        ("state", state(session.state)),
        ("title", Cell::new(cut(&session.title, PROMPT_CHARACTERS))),
        ("directory", Cell::new(&session.directory)),
        ("agent", Cell::new(agent(session))),
        (
            "opened",
            Cell::new(format!(
                "{} by {}",
                with_age(&session.opened_at),
                session.opened_by
            )),
        ),
    ];
    if let Some(machine) = elsewhere(session.machine.as_ref()) {
        rows.push(("machine", Cell::new(machine)));
    }
    if let Some(machine) = &session.waits_for {
        let text = format!(
            "{} ({}); to run its prompts here: tidelock session queue {} here",
            waits_for(machine),
            machine.home,
            short(&session.id)
        );
        rows.push(("waiting", Cell::toned(text, Tone::Warning)));
    }
    if let Some(plan) = &session.plan {
        rows.push(("plan", Cell::new(plan)));
    }
    if let Some(fork) = &session.forked_from {
        let from = fork.session.as_deref().unwrap_or("a deleted session");
        rows.push(("forked from", Cell::new(from)));
    }
    if session.forks > 0 {
        rows.push(("forks", Cell::new(session.forks.to_string())));
    }
    for rule in &session.rules {
        let pattern = rule.pattern.as_deref().unwrap_or("*");
        let said = match rule.permission {
            protocol::RulePermission::Allow => "allow",
            protocol::RulePermission::Ask => "ask",
            protocol::RulePermission::Deny => "deny",
        };
        rows.push(("rule", Cell::new(format!("{said} {} {pattern}", rule.tool))));
    }
    if let Some(active) = &session.active {
        let prompt = cut(&active.prompt, PROMPT_CHARACTERS);
        let since =
            age(&active.started_at).map_or_else(String::new, |age| format!(" for {}", format_duration(age)));
        let text = format!("{} running{since}: {prompt}", short(&active.turn));
        rows.push(("turn", Cell::toned(text, Tone::Good)));
        if let Some(stop) = &active.stop {
            let because = match stop.why.as_str() {
                "" => String::new(),
                why => format!(": {why}"),
            };
            let text = format!("requested by {}{because}", stop.by);
            rows.push(("stop", Cell::toned(text, Tone::Warning)));
        }
        for question in &active.asking {
            let id = short(&question.permission);
            let subject = cut(&question.subject, PROMPT_CHARACTERS);
            let text = match question.tool.as_str() {
                "ask" => format!("{id}: {subject}"),
                tool => format!("{id}: {tool} wants to do this: {subject}"),
            };
            rows.push(("asks", Cell::toned(text, Tone::Warning)));
        }
    }
    let mut text = fields(palette, rows);
    if !waiting.is_empty() {
        text.push_str("\nWaiting:\n");
        text.push_str(&turn_rows(palette, waiting));
    }
    if !turns.is_empty() {
        text.push_str("\nTurns, newest first:\n");
        text.push_str(&turn_rows(palette, turns));
    }
    text
}

pub(super) fn turn_rows(palette: Palette, turns: &[Turn]) -> String {
    let rows: Vec<Vec<Cell>> = turns
        .iter()
        .map(|turn| {
            let took = turn.started_at.as_deref().zip(turn.ended_at.as_deref());
            let took = took.and_then(|(from, to)| between(from, to));
            vec![
                Cell::new(format!("{:>4}", turn.number)),
                Cell::new(&turn.id),
                turn_state(turn.state),
                Cell::or_dash(took.map(format_duration)),
                Cell::new(cut(&turn.prompt, PROMPT_CHARACTERS)),
                Cell::toned(why(turn), Tone::Warning),
            ]
        })
        .collect();
    table(palette, &rows)
}

#[cfg(test)]
mod tests {
    use protocol::{PermissionRule, RulePermission, StopRequest, TurnState};

    use super::super::samples::{asking, session, turn};
    use super::*;

    #[test]
    fn everything_that_is_known_is_told() {
        let mut shown = asking(session(), &["permission_01JCZ8T6V8Y3N5K2M4Q7R9Q1TX"]);
        shown.rules.push(PermissionRule {
            tool: "shell".to_owned(),
            pattern: None,
            permission: RulePermission::Ask,
        });
        if let Some(active) = &mut shown.active {
            active.stop = Some(StopRequest {
                by: "somebody".to_owned(),
                why: "enough".to_owned(),
                at: String::new(),
            });
        }
        let waiting = [turn(TurnState::Queued)];
        let turns = [TurnState::Interrupted, TurnState::Failed, TurnState::Done].map(turn);
        insta::assert_snapshot!(text(Palette::Plain, &shown, &waiting, &turns));
        let untouched = Session {
            plan: None,
            forked_from: None,
            forks: 0,
            ..session()
        };
        insta::assert_snapshot!(text(Palette::Plain, &untouched, &[], &[]));
    }
}
