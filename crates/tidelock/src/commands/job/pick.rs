//! Which job is meant: an id says it, and so does a part of it that no other job has.

use protocol::JobList;

use super::{JOBS, ask};
use crate::client::Client;
use crate::commands::ids::JOB;
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::start::Repeat;

/// The name of the newest job.
const LAST: &str = "last";
/// How many jobs are asked for at a time.
const PAGE_JOBS: usize = 500;
/// Among how many of the newest jobs a part of an id is looked for. An older one is named by its whole id.
const MOST_PAGES: usize = 20;

/// The id of the job that is meant.
pub(super) fn find(wanted: &str, context: &Context, client: &Client) -> Result<String, Failure> {
    if JOB.is_whole(wanted) {
        return Ok(wanted.to_owned());
    }
    if wanted == LAST {
        let newest = page(None, 1, context, client)?;
        let newest = newest.jobs.into_iter().next().map(|job| job.id);
        return newest.ok_or_else(|| {
            Failure::new(Exit::Refused, "job_not_found", "there are no jobs yet")
                .advise("submit one with `tidelock job run -- COMMAND`")
        });
    }
    let part = JOB.part(wanted)?;
    let mut found = Vec::new();
    let mut before = None;
    for _ in 0..MOST_PAGES {
        let page = page(before.as_deref(), PAGE_JOBS, context, client)?;
        let ids = page.jobs.into_iter().map(|job| job.id);
        found.extend(ids.filter(|id| part.is_of(id)));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    part.only(found)
}

fn page(before: Option<&str>, limit: usize, context: &Context, client: &Client) -> Result<JobList, Failure> {
    let before = before.map_or_else(String::new, |before| format!("&before={before}"));
    let path = format!("{JOBS}?limit={limit}{before}");
    let answer = ask(context, client, Repeat::Harmless, |client| client.get(&path))?;
    Ok(printable(&answer)?)
}
