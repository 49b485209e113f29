//! `tidelock context`: finds the code relevant to a question; `tidelock index`: manages the indexes it uses.
//!
//! - `question` builds a question from the arguments. `text` formats an answer, `explain` shows how it came about.
//! - `index` manages the indexes.
//!
//! A pipe gets the text of the answer byte for byte, as a model reads it. A terminal gets it printable.

mod explain;
mod index;
mod question;
mod text;

#[cfg(test)]
mod samples;

use std::io::{self, ErrorKind, IsTerminal};
use std::time::Duration;

use protocol::{ContextAnswer, ContextOutcome};

pub(super) use index::run as run_index;

use crate::cli::{ContextArguments, Telling};
use crate::client::{Client, ClientError};
use crate::error::{Exit, Failure};
use crate::output::{Format, Palette, Report, write};
use crate::printable::{Answer, as_it_is};
use crate::start::Repeat;

const CONTEXT: &str = "/v1/context";
/// How much longer than the question's own deadline the answer may take: the daemon decides when time is up, and
/// reports that.
const GRACE: Duration = Duration::from_secs(15);
/// How long an answer may take if the configuration sets the deadline: longer than the longest it can set.
const PATIENCE: Duration = Duration::from_secs(150);

pub(super) fn run(arguments: &ContextArguments, client: &Client) -> Result<Report, Failure> {
    let question = question::new(arguments, client)?;
    let limit = arguments
        .deadline
        .map_or(PATIENCE, |deadline| deadline.saturating_add(GRACE));
    let ask = |client: &Client| client.post_within(CONTEXT, Some(&question), limit);
    let shown: Answer<ContextAnswer> = client.ask(Repeat::Harmless, ask)?;
    let exit = exit_of(shown.outcome);
    if client.format() == Format::Json {
        return Ok(Report::shown(String::new(), shown).with_exit(exit));
    }
    let text = match arguments.telling() {
        Telling::Explanation => explain::explained(client.palette(), &shown),
        Telling::Text if io::stdout().is_terminal() => text::painted(client.palette(), &shown),
        Telling::Text => as_it_is::<ContextAnswer>(&shown.sent)?.text,
    };
    tell(&text, &text::aside(Palette::for_stderr(), &shown))?;
    Ok(Report {
        exit,
        ..Report::already_told()
    })
}

/// As with grep, 1 means that nothing matched.
fn exit_of(outcome: ContextOutcome) -> Exit {
    match outcome {
        ContextOutcome::Found | ContextOutcome::NothingFits => Exit::Success,
        ContextOutcome::NothingMatched => Exit::Failed,
    }
}

/// The result goes to standard output, remarks about it to standard error.
fn tell(text: &str, aside: &str) -> Result<(), ClientError> {
    match write(io::stdout(), text) {
        // A reader who closes the pipe early has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.map_err(|source| ClientError::Output { source })?,
    }
    // The result is already printed; failing to print the remarks is no reason to fail.
    drop(write(io::stderr(), aside));
    Ok(())
}
