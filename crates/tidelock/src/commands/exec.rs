//! `tidelock exec`: runs any command in its own sandbox, with a diff to review at the end.
//!
//! Standard output is the command's. All other messages go to standard error. What happens after the command ends is
//! decided here and submitted with the command; the daemon carries it out. So nothing is lost or left undone if this
//! process ends early.

pub(super) mod ending;
pub(super) mod messages;

use std::io::{self, IsTerminal};

use protocol::{FinishPlan, FinishThen, Plan};
use serde_json::{Value, json};

use self::ending::{End, ended};
use crate::cli::{Afterwards, ExecArguments, Stamps, Stay};
use crate::client::{Client, Ended};
use crate::commands::ids::PLAN;
use crate::commands::job::{
    Escapes, INTERRUPTED, Listener, OutputPrinter, catch_interrupts, follow_with_input,
};
use crate::commands::plan::sandboxed::{Prepared, Submitted, as_line};
use crate::commands::plan::{get, order};
use crate::error::{Exit, Failure};
use crate::output::{self, Format, Report, json_line};
use crate::printable::{as_it_is, cut, printable};

const TITLE_CHARACTERS: usize = 120;

pub(super) fn run(arguments: &ExecArguments, client: &Client) -> Result<Report, Failure> {
    let stay = arguments.command.stay();
    // Report invalid arguments before starting a daemon.
    let mut prepared = Prepared::new(&arguments.command)?;
    let wanted = FinishPlan {
        then: match arguments.afterwards() {
            Afterwards::Keep => FinishThen::Keep,
            Afterwards::Seal => FinishThen::Seal,
            Afterwards::Apply => FinishThen::Apply,
        },
        commit: arguments.commit.wanted(),
        // A plan that was opened for a command that changes nothing is useless.
        discard_unchanged: arguments.plan.is_none(),
    };
    let (answer, submitted) = submit(arguments, &prepared, wanted, client)?;
    let plan: Plan = printable(&answer)?;
    let end = match stay {
        Stay::Submitted => End::detached(answer, &plan, arguments.afterwards(), &submitted),
        Stay::Ended => {
            announce(client.format(), &answer, &submitted);
            let mut interrupts = catch_interrupts(client, &submitted.id)?;
            let mut printer = OutputPrinter::new(client.format(), Escapes::Keep, Stamps::None);
            for note in prepared.notes.iter().chain(&plan.remarks) {
                printer.note(note);
            }
            if client.format() == Format::Human && io::stderr().is_terminal() {
                printer.note(&messages::begun(&plan));
            }
            let source = prepared.source.take();
            match follow_with_input(client, &submitted.id, source, &mut interrupts, printer)? {
                Ended::Over {
                    end: job,
                    interrupted,
                } => ended(&plan, &submitted, &job, interrupted, &mut interrupts, client)?,
                Ended::LeftAlone => End::left(answer, &plan, &submitted, Exit::Command(INTERRUPTED)),
                Ended::NobodyReads => End::left(answer, &plan, &submitted, Exit::Failed),
            }
        }
    };
    Ok(finish(end, client.format()))
}

/// Submits the command to run in the given plan, or in one that the daemon opens for it. Returns the plan at that time.
fn submit(
    arguments: &ExecArguments,
    prepared: &Prepared,
    wanted: FinishPlan,
    client: &Client,
) -> Result<(Value, Submitted), Failure> {
    if let Some(plan) = &arguments.plan {
        let answer = get(&PLAN.find(plan, client)?, "", client)?;
        let submitted = prepared.submit(&as_it_is(&answer)?, Some(wanted), client)?;
        return Ok((answer, submitted));
    }
    let mut order = order(&arguments.open, prepared.here(), client)?;
    let title = || cut(&as_line(&arguments.command.command), TITLE_CHARACTERS);
    order.title = Some(order.title.unwrap_or_else(title));
    let mut submitted = prepared.submit_in_new(order, wanted, client)?;
    Ok((submitted.plan.take(), submitted))
}

/// Tells programs at once what was started, so that they can find it again whatever happens to this process.
fn announce(format: Format, plan: &Value, submitted: &Submitted) {
    if format == Format::Json {
        for line in [json!({ "opened": plan }), json!({ "submitted": submitted.job })] {
            // If the reader is gone, the first output will show that.
            drop(output::write(io::stdout(), &json_line(&line)));
        }
    }
}

fn finish(end: End, format: Format) -> Report {
    if format == Format::Human {
        // If standard error is closed, no one wants the message.
        drop(output::write(io::stderr(), &end.text));
    }
    let value = json!({ "plan": end.plan, "job": end.job, "outcome": end.outcome });
    Report::success(value, String::new()).with_exit(end.exit)
}
