//! What a plan changes.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use hyper::header::ACCEPT;
use protocol::PlanDiff;
use serde_json::Value;

use super::pager::Pager;
use super::paint::Painter;
use super::path;
use super::stat::stat;
use crate::cli::{DiffArguments, DiffForm};
use crate::client::{Client, ClientError, path_segment};
use crate::commands::ids::{CHANGESET, PLAN};
use crate::error::Failure;
use crate::output::{Format, Report};
use crate::printable::printable;
use crate::start::Repeat;

/// How long the daemon may be silent while it compares contents.
const SILENCE: Duration = Duration::from_secs(10 * 60);
/// The largest diff that is read into memory. A patch is streamed and has no such limit.
const DIFF_LIMIT_BYTES: usize = 256 << 20;
/// The assumed width of a terminal that does not report one.
const USUAL_COLUMNS: usize = 80;

pub(super) fn run(arguments: &DiffArguments, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let changeset = arguments
        .changeset
        .as_ref()
        .map(|wanted| CHANGESET.find_of(wanted, &id, client))
        .transpose()?;
    let query = changeset.map_or_else(String::new, |changeset| {
        format!("?changeset={}", path_segment(&changeset))
    });
    let form = arguments.form();
    if client.format() == Format::Human && matches!(form, DiffForm::Usual | DiffForm::Patch) {
        let path = path(&id, &format!("/diff{query}"));
        return if form == DiffForm::Usual && io::stdout().is_terminal() {
            paged(&path, client)
        } else {
            as_it_comes(&path, client)
        };
    }
    let (answer, diff) = read_diff(&id, &query, client)?;
    let text = match form {
        DiffForm::Names => names(&diff),
        _ if diff.files.is_empty() => "No changes.\n".to_owned(),
        _ => stat(client.palette(), &diff, usize::MAX, columns()),
    };
    Ok(Report::success(answer, text))
}

pub(in crate::commands) fn columns() -> usize {
    [
        rustix::termios::tcgetwinsize(io::stdout()),
        rustix::termios::tcgetwinsize(io::stderr()),
    ]
    .into_iter()
    .filter_map(Result::ok)
    .map(|size| usize::from(size.ws_col))
    .find(|columns| *columns > 0)
    .unwrap_or(USUAL_COLUMNS)
}

fn names(diff: &PlanDiff) -> String {
    let lines = diff.files.iter().map(|file| format!("{}\n", file.path));
    lines.collect()
}

/// A diff as it was sent, and in printable form.
pub(in crate::commands) fn read_diff(
    id: &str,
    query: &str,
    client: &Client,
) -> Result<(Value, PlanDiff), Failure> {
    let path = path(id, &format!("/diff{query}"));
    let ask = |client: &Client| -> Result<Value, ClientError> {
        let mut whole = Vec::new();
        let headers = [(ACCEPT, "application/json".to_owned())];
        client.download_patiently(&path, &headers, SILENCE, |piece| {
            if whole.len() + piece.len() > DIFF_LIMIT_BYTES {
                return Err(io::Error::new(
                    ErrorKind::FileTooLarge,
                    "the diff is too large; ask for a patch",
                ));
            }
            whole.extend_from_slice(piece);
            Ok(())
        })?;
        serde_json::from_slice(&whole).map_err(|source| ClientError::NotUnderstood { source })
    };
    let answer = client.ask(Repeat::Harmless, ask)?;
    let shown = printable(&answer)?;
    Ok((answer, shown))
}

fn as_it_comes(path: &str, client: &Client) -> Result<Report, Failure> {
    download(path, client, |piece| io::stdout().write_all(piece))?;
    Ok(Report::already_told())
}

fn paged(path: &str, client: &Client) -> Result<Report, Failure> {
    let mut pager = None;
    let mut painter = Painter::new(client.palette());
    download(path, client, |piece| {
        // Only once there is something to read: errors go to the terminal itself.
        let pager = pager.get_or_insert_with(Pager::start);
        pager.write(&painter.paint(piece))
    })?;
    if let Some(mut pager) = pager {
        // If the reader has quit, the rest is not needed.
        drop(pager.write(&painter.finish()));
        pager.finish().map_err(|source| ClientError::Output { source })?;
    }
    Ok(Report::already_told())
}

/// Streams a patch. It's not an error if the reader has seen enough.
fn download(
    path: &str,
    client: &Client,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Failure> {
    // Requesting the plan starts a daemon if needed, so the patch itself is requested only once.
    let plan = path.rsplit_once("/diff").map_or(path, |(plan, _)| plan);
    client.ask(Repeat::Harmless, |client| client.get::<Value>(plan))?;
    let headers = [(ACCEPT, "text/x-diff".to_owned())];
    let ended = client.download_patiently(path, &headers, SILENCE, &mut take);
    // A write error may show up only now.
    let ended = ended.and_then(|()| {
        let flushed = io::stdout().flush();
        flushed.map_err(|source| ClientError::Output { source })
    });
    match ended {
        Err(ClientError::Output { source }) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
        ended => Ok(ended?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stat::tests::{diff, file};
    use super::*;

    #[test]
    fn names_are_one_a_line() {
        assert_eq!(names(&diff(vec![file("a b", 1, 0), file("c", 0, 0)])), "a b\nc\n");
        assert_eq!(names(&diff(Vec::new())), "");
    }
}
