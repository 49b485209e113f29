//! Plans, one a line.

use protocol::{Plan, PlanList};
use serde_json::{Value, json};

use super::pick::PAGE_PLANS;
use super::words::{checks, overlaps, state};
use super::{PLANS, ask, pick};
use crate::cli::PlanListArguments;
use crate::client::Client;
use crate::commands::job::age;
use crate::commands::lsp::paths;
use crate::commands::lsp::printable::{cut, printable};
use crate::commands::machine::with_machines;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::start::Repeat;
use crate::units::{format_count, format_duration};

/// How much of a title is shown.
const TITLE_CHARACTERS: usize = 50;
/// How many actors are named.
const NAMED_ACTORS: usize = 2;

pub(super) fn list(
    arguments: &PlanListArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    let workspace = match &arguments.workspace {
        Some(directory) => Some(paths::directory(directory)?),
        None => None,
    };
    let mut query = match arguments.states() {
        [] => String::new(),
        states => format!("&state={}", states.join(",")),
    };
    if let Some(directory) = &workspace {
        match pick::workspace_of(directory.as_ref(), context, client)? {
            Some(found) => query.push_str(&format!("&workspace={}", found.id)),
            // What was never a workspace has no plans.
            None => {
                return Ok(Report::success(
                    json!({ "plans": [] }),
                    rows(context.palette, &[]),
                ));
            }
        }
    }
    let plans = all(&query, context, client)?;
    let value = json!({ "plans": plans });
    let shown: PlanList = printable(&value)?;
    Ok(Report::success(value, rows(context.palette, &shown.plans)))
}

/// All pages, as one list.
fn all(query: &str, context: &Context, client: &Client) -> Result<Vec<Value>, Failure> {
    let mut plans: Vec<Value> = Vec::new();
    let mut before: Option<String> = None;
    loop {
        let mut path = format!("{PLANS}?limit={PAGE_PLANS}{query}");
        if let Some(before) = &before {
            path.push_str(&format!("&before={before}"));
        }
        let mut answer = ask(context, client, Repeat::Harmless, |client| client.get(&path))?;
        if let Value::Array(page) = answer["plans"].take() {
            plans.extend(page);
        }
        before = answer["next_before"].as_str().map(str::to_owned);
        if before.is_none() {
            return Ok(plans);
        }
    }
}

fn rows(palette: Palette, plans: &[Plan]) -> String {
    if plans.is_empty() {
        return "No plans found. `tidelock exec -- COMMAND` opens one, and --all includes finished plans.\n"
            .to_owned();
    }
    let heading = [
        "ID", "STATE", "AGE", "TITLE", "FILES", "RUNNING", "CHECKS", "OVERLAPS", "",
    ];
    let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
    rows.extend(plans.iter().map(|plan| {
        vec![
            Cell::new(&plan.id),
            state(plan.state),
            Cell::new(age(&plan.opened_at).map_or_else(|| "-".to_owned(), format_duration)),
            Cell::new(cut(&plan.title, TITLE_CHARACTERS)),
            Cell::new(plan.summary.files.to_string()),
            running(plan),
            checks(plan),
            overlaps(plan),
            note(plan),
        ]
    }));
    let machines: Vec<_> = plans.iter().map(|plan| plan.machine.as_ref()).collect();
    with_machines(&mut rows, 2, &machines, "-");
    table(palette, &rows)
}

fn running(plan: &Plan) -> Cell {
    if plan.running.is_empty() {
        return Cell::toned("-", Tone::Quiet);
    }
    let mut names: Vec<&str> = plan
        .running
        .iter()
        .map(|command| command.actor.as_str())
        .take(NAMED_ACTORS)
        .collect();
    if plan.running.len() > NAMED_ACTORS {
        names.push("…");
    }
    Cell::toned(cut(&names.join(", "), TITLE_CHARACTERS), Tone::Warning)
}

/// What there is to say besides.
fn note(plan: &Plan) -> Cell {
    if let Some(notice) = &plan.notice {
        return Cell::toned(cut(notice, TITLE_CHARACTERS), Tone::Warning);
    }
    let Some(refused) = &plan.refused else {
        return Cell::new("");
    };
    let conflicts = format_count(refused.conflicts.len() as u64, "conflict");
    Cell::toned(format!("{} refused: {conflicts}", refused.what), Tone::Bad)
}

#[cfg(test)]
mod tests {
    use protocol::{DiffSummary, PlanState};

    use super::super::samples::{busy_plan, overlap, plan};
    use super::*;

    #[test]
    fn a_list_tells_how_each_is() {
        let crowded = Plan {
            running: ["one", "two", "three"]
                .map(|actor| protocol::PlanCommand {
                    job: "job_1".to_owned(),
                    actor: actor.to_owned(),
                    since: String::new(),
                })
                .to_vec(),
            overlaps: vec![overlap(false), overlap(true)],
            title: "a title that is much longer than anybody would want to read in a table".to_owned(),
            ..plan(PlanState::Open)
        };
        let over = Plan {
            summary: DiffSummary::default(),
            checks: Vec::new(),
            ..plan(PlanState::Discarded)
        };
        let refused = Plan {
            notice: None,
            ..busy_plan()
        };
        let plans = [
            crowded,
            busy_plan(),
            refused,
            plan(PlanState::Sealed),
            plan(PlanState::Applied),
            over,
        ];
        insta::assert_snapshot!(rows(Palette::Plain, &plans));
        insta::assert_snapshot!(rows(Palette::Plain, &[]));
    }
}
