//! Shows one plan in full.

use protocol::{Changeset, Plan, PlanCheck, PlanLeftOut};
use serde_json::json;

use super::labels::{check_state, next, short, state, summary};
use super::{changesets, conflicts, get, overlaps};
use crate::client::Client;
use crate::commands::ids::PLAN;
use crate::commands::job::with_age;
use crate::commands::machine::elsewhere;
use crate::commands::workspace::rescued;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, fields, table};
use crate::printable::{cut, printable};
use crate::units::format_count;

const TEXT_CHARACTERS: usize = 300;
const HASH_CHARACTERS: usize = 16;
const LEFT_OUT: usize = 20;

pub(super) fn show(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(wanted, client)?;
    let mut answer = get(&id, "", client)?;
    let changesets = changesets::read(&id, client)?;
    let plan: Plan = printable(&answer)?;
    let shown: Vec<Changeset> = printable(&json!(changesets))?;
    let text = describe(client.palette(), &plan, &shown);
    answer["changeset_list"] = json!(changesets);
    Ok(Report::success(answer, text))
}

fn describe(palette: Palette, plan: &Plan, changesets: &[Changeset]) -> String {
    let mut text = fields(palette, pairs(plan));
    let mut section = |heading: &str, body: String| {
        if !body.is_empty() {
            text.push_str(&format!("\n{heading}\n{body}"));
        }
    };
    section("Running", running(palette, plan));
    section("Checks", checks(palette, &plan.checks));
    section("Changed by", changesets::describe(palette, changesets));
    section(
        "Overlaps with other plans",
        overlaps::describe(palette, &plan.overlaps),
    );
    if let Some(refused) = &plan.refused {
        let heading = format!(
            "Refused: {} by {}, {}; nothing was changed",
            refused.what,
            refused.by,
            with_age(&refused.at)
        );
        section(&heading, conflicts::describe(palette, &refused.conflicts));
    }
    let remarks = plan.remarks.iter().map(|remark| format!("  {remark}\n"));
    section("In the sandbox", remarks.collect());
    let not_carried = plan.not_carried.iter().map(|note| format!("  {note}\n"));
    section("Not carried", not_carried.collect());
    section("Rescued content", rescued::rows(palette, &plan.rescued));
    section("Left out", left_out(palette, &plan.left_out));
    let next: String = next(plan).iter().map(|line| format!("  {line}\n")).collect();
    section("Next", next);
    text
}

fn pairs(plan: &Plan) -> Vec<(&'static str, Cell)> {
    let text = |text: &str| Cell::new(cut(text, TEXT_CHARACTERS));
    let mut pairs = vec![
        ("plan", Cell::new(&plan.id)),
        ("state", state(plan.state)),
        ("title", text(&plan.title)),
        ("workspace", text(&format!("{} ({})", plan.root, plan.workspace))),
    ];
    if let Some(parent) = &plan.parent {
        pairs.push(("parent", Cell::new(parent)));
    }
    if !plan.children.is_empty() {
        pairs.push(("children", text(&plan.children.join(", "))));
    }
    let where_it_is = format!("{}, at {}", plan.strategy, plan.sandbox_root);
    let changes = format!(
        "{}; {} in {}",
        summary(&plan.summary),
        format_count(plan.entries, "change"),
        format_count(plan.changesets, "changeset")
    );
    pairs.extend([
        ("opened", Cell::new(with_age(&plan.opened_at))),
        ("by", text(&plan.opened_by)),
        ("changed", Cell::new(with_age(&plan.changed_at))),
        ("sandbox", text(&where_it_is)),
        ("base", Cell::new(cut(&plan.base, HASH_CHARACTERS))),
        ("changes", Cell::new(changes)),
    ]);
    if let Some(machine) = elsewhere(plan.machine.as_ref()) {
        pairs.push(("machine", Cell::new(machine)));
    }
    if let Some(notice) = &plan.notice {
        pairs.push(("notice", Cell::toned(cut(notice, TEXT_CHARACTERS), Tone::Warning)));
    }
    pairs
}

fn running(palette: Palette, plan: &Plan) -> String {
    let rows: Vec<Vec<Cell>> = plan
        .running
        .iter()
        .map(|command| {
            vec![
                Cell::new(" "),
                Cell::new(&command.job),
                Cell::new(cut(&command.actor, TEXT_CHARACTERS)),
                Cell::toned(format!("since {}", with_age(&command.since)), Tone::Quiet),
            ]
        })
        .collect();
    table(palette, &rows)
}

pub(in crate::commands) fn checks(palette: Palette, checks: &[PlanCheck]) -> String {
    let rows: Vec<Vec<Cell>> = checks
        .iter()
        .map(|check| {
            vec![
                Cell::new(" "),
                check_state(check.state),
                Cell::new(cut(&check.command, TEXT_CHARACTERS)),
                Cell::new(cut(check.text.as_deref().unwrap_or_default(), TEXT_CHARACTERS)),
                Cell::toned(check.job.as_deref().map(short).unwrap_or_default(), Tone::Quiet),
            ]
        })
        .collect();
    table(palette, &rows)
}

fn left_out(palette: Palette, left_out: &[PlanLeftOut]) -> String {
    let rows: Vec<Vec<Cell>> = left_out
        .iter()
        .take(LEFT_OUT)
        .map(|left_out| {
            vec![
                Cell::new(" "),
                Cell::new(&left_out.path),
                Cell::toned(why(&left_out.why), Tone::Quiet),
            ]
        })
        .collect();
    let mut text = table(palette, &rows);
    if left_out.len() > LEFT_OUT {
        text.push_str(&format!("  … and {} more\n", left_out.len() - LEFT_OUT));
    }
    text
}

/// Why the plan does not carry something, in words.
fn why(why: &str) -> String {
    match why {
        "repository" => "it is a separate repository",
        "changed_repository" => "it is a separate repository, and was changed",
        "history" => "it is the git directory of a new repository",
        "too_large" => "it is too large",
        "too_long" => "a path in it is too long",
        "special" => "it is neither a file, a directory nor a symlink",
        "name" => "a name like this cannot be carried",
        "unreadable" => "it cannot be read",
        "too_many" => "there are too many of them",
        other => return other.replace('_', " "),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use protocol::PlanState;

    use super::super::changesets::tests::changeset;
    use super::super::samples::{busy_plan, plan};
    use super::*;

    #[test]
    fn everything_that_is_known_is_told() {
        insta::assert_snapshot!(describe(Palette::Plain, &busy_plan(), &[changeset()]));
    }

    #[test]
    fn what_is_not_there_takes_no_room() {
        insta::assert_snapshot!(describe(Palette::Plain, &plan(PlanState::Applied), &[]));
    }

    #[test]
    fn colours_are_for_terminals() {
        let text = describe(Palette::Coloured, &busy_plan(), &[changeset()]);
        assert!(text.contains("\u{1b}[31mfailed\u{1b}[0m"), "{text:?}");
        assert!(!describe(Palette::Plain, &busy_plan(), &[changeset()]).contains('\u{1b}'));
    }
}
