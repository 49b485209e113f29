//! A command runs in the sandbox of a plan that is there.

use protocol::{CheckPlan, Plan};
use serde_json::{Value, json};

use super::check::run_checks;
use super::sandboxed::{Prepared, Submitted};
use super::words::{is_passed, short};
use super::{find, get, until_left};
use crate::cli::{PlanExecArguments, Stamps, Stay};
use crate::client::{Client, Interrupts};
use crate::commands::job::{
    Ended, Escapes, INTERRUPTED, Interrupted, Teller, WhenInterrupted, catch_interrupts, ended_text, exit_of,
    follow,
};
use crate::commands::lsp::printable::{as_it_is, printable};
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::{Format, Report};

pub(super) fn run(
    arguments: &PlanExecArguments,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    let mut prepared = Prepared::new(&arguments.command)?;
    let id = find(&arguments.plan.plan, context, client)?;
    let before: Plan = as_it_is(&get(&id, "", context, client)?)?;
    let submitted = prepared.submit(&before, None, context, client)?;
    if arguments.command.stay() == Stay::Submitted {
        let note = format!("watch it with `tidelock job logs -f {}`", short(&submitted.id));
        let text = format!("{} is running in {id}\n", submitted.id);
        let value = json!({ "job": submitted.job, "plan": get(&id, "", context, client)? });
        return Ok(Report::success(value, text).with_notes(vec![note]));
    }
    let mut interrupts = catch_interrupts(client, &submitted.id)?;
    let mut teller = Teller::new(format, Escapes::Keep, Stamps::None);
    let feeding = prepared.feed(&submitted, client)?;
    let when = WhenInterrupted::CancelTheJob(&mut interrupts);
    let ended = follow(client, (&submitted.id, 0, None), when, &mut teller)?;
    drop(teller);
    if let (Some(feeding), Ended::Job { .. }) = (feeding, &ended) {
        feeding.finish();
    }
    let mut notes = prepared.notes.clone();
    let (exit, job) = match ended {
        Ended::Job { job, interrupted } => {
            let exit = exit_of(&job, interrupted);
            if exit == Exit::Failed {
                notes.push(format!("{} {}", job.id, ended_text(&printable(&json!(job))?)));
            }
            (exit, json!(job))
        }
        Ended::LeftAlone => return left_alone(&submitted, &id, Exit::Command(INTERRUPTED)),
        Ended::NobodyReads => return left_alone(&submitted, &id, Exit::Failed),
    };
    let mut answer = until_left(&id, &submitted.id, &mut interrupts, (context, client))?;
    let after: Plan = printable(&answer)?;
    notes.push(recorded(&before, &after));
    let mut exit = exit;
    if !arguments.checks.is_empty() && exit == Exit::Success {
        let request = CheckPlan {
            add: arguments.checks.clone(),
            all: false,
        };
        exit = check(
            &id,
            &request,
            &mut interrupts,
            (&mut answer, &mut notes),
            (context, format, client),
        )?;
    }
    Ok(Report {
        exit,
        ..Report::success(json!({ "plan": answer, "job": job }), String::new()).with_notes(notes)
    })
}

fn check(
    id: &str,
    request: &CheckPlan,
    interrupts: &mut Interrupts,
    (answer, notes): (&mut Value, &mut Vec<String>),
    surroundings: (&Context, Format, &Client),
) -> Result<Exit, Failure> {
    let checked = run_checks(id, request, interrupts, surroundings)?;
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
    Ok(Report {
        exit,
        ..Report::success(Value::Null, String::new()).with_notes(vec![note])
    })
}

/// What the command added to the plan, by numbers.
fn recorded(before: &Plan, after: &Plan) -> String {
    let id = short(&after.id);
    match after.entries.saturating_sub(before.entries) {
        0 => format!("it changed nothing in {id}"),
        1 => format!("1 change was recorded in {id}; see `tidelock plan diff {id}`"),
        count => format!("{count} changes were recorded in {id}; see `tidelock plan diff {id}`"),
    }
}
