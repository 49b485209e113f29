//! Sends a prompt, and follows its turn to the end.

use std::io::{self, IsTerminal};

use protocol::{StartTurn, TurnAccepted, TurnState};
use serde_json::{Value, json};

use super::ending::{self, TurnReport};
use super::follow::{Listener as _, follow};
use super::labels::waits_for;
use super::printer::{Beginning, TurnPrinter};
use super::prompt::Prepared;
use super::view::Prompts;
use super::{path, post};
use crate::cli::{PromptArguments, SendArguments, Stay};
use crate::client::{Client, Ended, Interrupts};
use crate::commands::ids::SESSION;
use crate::commands::job::INTERRUPTED;
use crate::commands::plan::short;
use crate::error::{Exit, Failure};
use crate::output::{self, Format, Report, json_line};
use crate::printable::printable;
use crate::start::Repeat;

pub(super) fn send(arguments: &SendArguments, client: &Client) -> Result<Report, Failure> {
    // Report invalid arguments before starting a daemon.
    let prepared = Prepared::new(&arguments.prompt)?;
    let session = SESSION.find(&arguments.session.session, client)?;
    let request = StartTurn {
        here: arguments.here,
        ..prepared.further(arguments.if_busy())
    };
    let accepted = accept(&session, &request, client)?;
    converse(&accepted, &arguments.prompt, client)
}

/// Sends a prompt. When it returns, the prompt is on disk.
pub(in crate::commands) fn accept(
    session: &str,
    request: &StartTurn,
    client: &Client,
) -> Result<Value, Failure> {
    // It has an idempotency key, so a retry gets the same turn.
    post(&path(session, "/turns"), request, Repeat::Harmless, client)
}

/// Stays with an accepted turn, or says how to find it again.
pub(in crate::commands) fn converse(
    accepted: &Value,
    arguments: &PromptArguments,
    client: &Client,
) -> Result<Report, Failure> {
    let TurnAccepted { session, turn, .. } = printable(accepted)?;
    if arguments.stay() == Stay::Submitted {
        let state = match (turn.state, &session.waits_for) {
            (TurnState::Queued, Some(machine)) => waits_for(machine),
            (TurnState::Queued, None) => "is waiting for the turn before it".to_owned(),
            _ => "has started".to_owned(),
        };
        let text = ending::left(&session.id, &format!("{} {state}.", turn.id));
        return Ok(finish(detached(accepted, text, Exit::Success), client.format()));
    }
    announce(client.format(), accepted);
    let mut interrupts = catch_interrupts(client, &session.id)?;
    let beginning = Beginning::Start;
    let mut printer = TurnPrinter::new(client, &session.id, Prompts::Known, beginning);
    if io::stderr().is_terminal() {
        printer.note(&format!(
            "sent to {} in {}; {} doesn't change until the plan is applied",
            turn.agent.name, session.id, session.directory
        ));
    }
    if let Some(machine) = &session.waits_for {
        let here = format!("tidelock session queue {} here", short(&session.id));
        printer.note(&format!(
            "it {}; to run it on this machine: {here}",
            waits_for(machine)
        ));
    }
    let left = follow(
        client,
        &session.id,
        &turn.id,
        beginning,
        &mut interrupts,
        &mut printer,
    )?;
    let used = printer.usage();
    printer.close();
    let report = match left {
        Ended::Over { .. } => ending::ended(&session.id, &turn.id, &used, &mut interrupts, client)?,
        Ended::LeftAlone => None,
        Ended::NobodyReads => {
            let text = ending::left(&session.id, "The output was closed; the turn keeps running.");
            Some(detached(accepted, text, Exit::Failed))
        }
    };
    let report = report.unwrap_or_else(|| {
        let text = ending::left(&session.id, "Detached.");
        detached(accepted, text, Exit::Command(INTERRUPTED))
    });
    Ok(finish(report, client.format()))
}

fn catch_interrupts(client: &Client, session: &str) -> Result<Interrupts, Failure> {
    client.catch_interrupts().map_err(|error| {
        let message = format!("can't listen for Ctrl-C: {error}");
        Failure::new(Exit::Failed, "no_resources", message).advise(format!(
            "the turn keeps running; watch it with `tidelock session attach {session}`"
        ))
    })
}

/// Tells programs at once what was started, so that they can find it again whatever happens to this process.
fn announce(format: Format, accepted: &Value) {
    if format == Format::Json {
        // If the reader is gone, the first event will show that.
        let line = json!({ "accepted": { "session": accepted["session"], "turn": accepted["turn"] } });
        drop(output::write(io::stdout(), &json_line(&line)));
    }
}

fn detached(accepted: &Value, text: String, exit: Exit) -> TurnReport {
    let value = json!({
        "session": accepted["session"],
        "turn": accepted["turn"],
        "plan": Value::Null,
        "outcome": { "outcome": "detached" },
    });
    TurnReport { value, text, exit }
}

/// Standard output carries only what the agent says.
pub(super) fn finish(report: TurnReport, format: Format) -> Report {
    if format == Format::Human {
        // If standard error is closed, no one wants the message.
        drop(output::write(io::stderr(), &report.text));
    }
    Report::success(report.value, String::new()).with_exit(report.exit)
}
