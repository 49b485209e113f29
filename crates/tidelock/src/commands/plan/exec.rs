//! Runs a command in the sandbox of an existing plan.

use protocol::{CheckPlan, Plan};
use serde_json::{Value, json};

use super::check::run_checks;
use super::labels::{is_passed, short};
use super::sandboxed::{Prepared, Submitted};
use super::{get, until_left};
use crate::cli::{PlanExecArguments, Stamps, Stay};
use crate::client::{Client, Ended, Interrupted, Interrupts};
use crate::commands::ids::PLAN;
use crate::commands::job::{
    Escapes, INTERRUPTED, OutputPrinter, catch_interrupts, ended_text, exit_of, follow_with_input,
};
use crate::error::{Exit, Failure};
use crate::output::Report;
use crate::printable::{as_it_is, printable};

pub(super) fn run(arguments: &PlanExecArguments, client: &Client) -> Result<Report, Failure> {
    let mut prepared = Prepared::new(&arguments.command)?;
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let before: Plan = as_it_is(&get(&id, "", client)?)?;
    let submitted = prepared.submit(&before, None, client)?;
    if arguments.command.stay() == Stay::Submitted {
        let note = format!("watch it with `tidelock job logs -f {}`", short(&submitted.id));
        let text = format!("{} is running in {id}\n", submitted.id);
        let value = json!({ "job": submitted.job, "plan": get(&id, "", client)? });
        return Ok(Report::success(value, text).with_notes(vec![note]));
    }
    let mut interrupts = catch_interrupts(client, &submitted.id)?;
    let printer = OutputPrinter::new(client.format(), Escapes::Keep, Stamps::None);
    let source = prepared.source.take();
    let ended = follow_with_input(client, &submitted.id, source, &mut interrupts, printer)?;
    let mut notes = prepared.notes.clone();
    let (exit, job) = match ended {
        Ended::Over {
            end: job,
            interrupted,
        } => {
            let exit = exit_of(&job, interrupted);
            if exit == Exit::Failed {
                notes.push(format!("{} {}", job.id, ended_text(&printable(&json!(job))?)));
            }
            (exit, json!(job))
        }
        Ended::LeftAlone => return left_alone(&submitted, &id, Exit::Command(INTERRUPTED)),
        Ended::NobodyReads => return left_alone(&submitted, &id, Exit::Failed),
    };
    let mut answer = until_left(&id, &submitted.id, &mut interrupts, client)?;
    let after: Plan = printable(&answer)?;
    notes.push(recorded(&before, &after));
    let mut exit = exit;
    if !arguments.checks.is_empty() && exit == Exit::Success {
        let request = CheckPlan {
            add: arguments.checks.clone(),
            all: false,
        };
        exit = check(&id, &request, &mut interrupts, &mut answer, &mut notes, client)?;
    }
    Ok(
        Report::success(json!({ "plan": answer, "job": job }), String::new())
            .with_notes(notes)
            .with_exit(exit),
    )
}

fn check(
    id: &str,
    request: &CheckPlan,
    interrupts: &mut Interrupts,
    answer: &mut Value,
    notes: &mut Vec<String>,
    client: &Client,
) -> Result<Exit, Failure> {
    let checked = run_checks(id, request, interrupts, client)?;
    *answer = checked.answer;
    let plan: Plan = printable(answer)?;
    let failed = plan.checks.iter().filter(|check| !is_passed(check)).count();
    Ok(match (checked.interrupted, failed) {
        (Interrupted::Yes, _) => Exit::Command(INTERRUPTED),
        (Interrupted::No, 0) => Exit::Success,
        (Interrupted::No, failed) => {
            let total = plan.checks.len();
            notes.push(format!(
                "{failed} of {total} checks have not passed; see `tidelock plan show {}`",
                short(id)
            ));
            Exit::Failed
        }
    })
}

fn left_alone(submitted: &Submitted, plan: &str, exit: Exit) -> Result<Report, Failure> {
    let (job, plan) = (short(&submitted.id), short(plan));
    let note = format!("detached; see `tidelock job logs -f {job}` and `tidelock plan show {plan}`");
    Ok(Report::success(Value::Null, String::new())
        .with_notes(vec![note])
        .with_exit(exit))
}

fn recorded(before: &Plan, after: &Plan) -> String {
    let id = short(&after.id);
    match after.entries.saturating_sub(before.entries) {
        0 => format!("it changed nothing in {id}"),
        1 => format!("1 change was recorded in {id}; see `tidelock plan diff {id}`"),
        count => format!("{count} changes were recorded in {id}; see `tidelock plan diff {id}`"),
    }
}
