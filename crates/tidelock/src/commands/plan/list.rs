//! Lists plans, one per line.

use protocol::{Plan, PlanList};
use serde_json::json;

use super::PLANS;
use super::labels::{checks, overlaps, state};
use crate::cli::PlanListArguments;
use crate::client::{Client, path_segment};
use crate::commands::job::age;
use crate::commands::machine::with_machines;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, list as list_of};
use crate::paths;
use crate::printable::{cut, printable};
use crate::units::{format_count, format_duration};

const TITLE_CHARACTERS: usize = 50;
const NAMED_ACTORS: usize = 2;

pub(super) fn list(arguments: &PlanListArguments, client: &Client) -> Result<Report, Failure> {
    let mut path = format!("{PLANS}?");
    if let Some(directory) = &arguments.workspace {
        path.push_str(&format!(
            "&directory={}",
            path_segment(&paths::directory(directory)?)
        ));
    }
    if let states @ [_, ..] = arguments.states() {
        path.push_str(&format!("&state={}", states.join(",")));
    }
    let value = json!({ "plans": client.fetch_pages(&path, "plans", None)?.things });
    let shown: PlanList = printable(&value)?;
    Ok(Report::success(value, rows(client.palette(), &shown.plans)))
}

fn rows(palette: Palette, plans: &[Plan]) -> String {
    let mut heading = vec![
        "ID", "STATE", "AGE", "TITLE", "FILES", "RUNNING", "CHECKS", "OVERLAPS", "",
    ];
    let row = |plan: &Plan| {
        vec![
            Cell::new(&plan.id),
            state(plan.state),
            Cell::or_dash(age(&plan.opened_at).map(format_duration)),
            Cell::new(cut(&plan.title, TITLE_CHARACTERS)),
            Cell::new(plan.summary.files.to_string()),
            running(plan),
            checks(plan),
            overlaps(plan),
            note(plan),
        ]
    };
    let mut rows: Vec<_> = plans.iter().map(row).collect();
    let machines: Vec<_> = plans.iter().map(|plan| plan.machine.as_ref()).collect();
    with_machines(&mut heading, &mut rows, &machines, "-");
    list_of(
        palette,
        &heading,
        rows,
        "No plans found. `tidelock exec -- COMMAND` opens one, and --all includes finished plans.",
    )
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
