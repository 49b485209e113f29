//! Which job is meant: an id says it, and so does a part of it that no other job has.

use api::JobList;

use super::{JOBS, ask};
use crate::client::Client;
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::start::Repeat;

/// The name of the newest job.
const LAST: &str = "last";
/// What the id of a job begins with.
const PREFIX: &str = "job_";
/// How long an id is, with what it begins with.
const ID_LENGTH: usize = PREFIX.len() + 26;
/// How many jobs are asked for at a time.
const PAGE_JOBS: usize = 500;
/// Among how many of the newest jobs a part of an id is looked for. An older one is named by its whole id.
const MOST_PAGES: usize = 20;
/// How many of several that are meant are named.
const NAMED: usize = 5;

/// The id of the job that is meant.
pub(super) fn find(wanted: &str, context: &Context, client: &Client) -> Result<String, Failure> {
    if wanted.starts_with(PREFIX) && wanted.len() == ID_LENGTH {
        return Ok(wanted.to_owned());
    }
    if wanted == LAST {
        let newest = page(None, 1, context, client)?;
        let newest = newest.jobs.into_iter().next().map(|job| job.id);
        return newest.ok_or_else(|| {
            Failure::new(Exit::Refused, "job_not_found", "there is no job yet")
                .advise("submit one with `tidelock job run -- COMMAND`")
        });
    }
    let mut found = Vec::new();
    let mut before = None;
    for _ in 0..MOST_PAGES {
        let page = page(before.as_deref(), PAGE_JOBS, context, client)?;
        let ids = page.jobs.into_iter().map(|job| job.id);
        found.extend(ids.filter(|id| is_meant(id, wanted)));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    only(found, wanted)
}

fn page(before: Option<&str>, limit: usize, context: &Context, client: &Client) -> Result<JobList, Failure> {
    let before = before.map_or_else(String::new, |before| format!("&before={before}"));
    let path = format!("{JOBS}?limit={limit}{before}");
    let answer = ask(context, client, Repeat::Harmless, |client| client.get(&path))?;
    Ok(printable(&answer)?)
}

/// Whether a text is the beginning or the end of an id, with or without what all of them begin with.
fn is_meant(id: &str, wanted: &str) -> bool {
    let wanted = wanted.to_ascii_uppercase();
    let id = id.to_ascii_uppercase();
    let body = id.get(PREFIX.len()..).unwrap_or_default();
    id.starts_with(&wanted) || body.starts_with(&wanted) || body.ends_with(&wanted)
}

fn only(mut found: Vec<String>, wanted: &str) -> Result<String, Failure> {
    let shown = wanted.escape_debug();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::new(
            Exit::Refused,
            "job_not_found",
            format!("no job has an id that begins or ends with `{shown}`"),
        )
        .advise("`tidelock job list` shows the jobs; those that ended long ago are forgotten")),
        count => {
            let named: Vec<String> = found.into_iter().take(NAMED).collect();
            let more = if count > NAMED { ", ..." } else { "" };
            Err(Failure::new(
                Exit::Refused,
                "job_ambiguous",
                format!(
                    "{count} jobs have an id that begins or ends with `{shown}`: {}{more}",
                    named.join(", ")
                ),
            )
            .advise("write more of the id; the ends differ the most"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_id_is_enough_if_it_is_clear() {
        let ids = [
            "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX",
            "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TY",
            "job_01JD00000000000000000000TX",
        ];
        for (wanted, expected) in [
            ("1TY", Ok(ids[1])),
            ("1ty", Ok(ids[1])),
            ("01JD", Ok(ids[2])),
            ("job_01JD", Ok(ids[2])),
            ("R9S1TX", Ok(ids[0])),
            ("TX", Err("job_ambiguous")),
            ("job_", Err("job_ambiguous")),
            ("01JC", Err("job_ambiguous")),
            ("8T6V", Err("job_not_found")),
            ("b_01JD", Err("job_not_found")),
            ("nothing", Err("job_not_found")),
        ] {
            let found = ids.iter().filter(|id| is_meant(id, wanted));
            let found = only(found.map(|id| (*id).to_owned()).collect(), wanted);
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(found, expected, "{wanted}");
        }
    }
}
