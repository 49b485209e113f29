//! What outlives a daemon: its log, and how the lives before this one ended.

use std::fs;
use std::io::ErrorKind;

use api::{BootList, BootState, LogCheck, LogIntegrity, LogState, LogStatus};
use daemon::Database;

use super::Check;
use crate::cli::Depth;
use crate::client::{Client, ClientError};
use crate::context::Context;
use crate::error::chain;
use crate::units::{format_bytes, format_count};

pub(super) fn check(depth: Depth, context: &Context, client: &Client) -> Vec<Check> {
    let mut checks = match client.get::<LogStatus>("/v1/log") {
        Ok(status) => vec![log(&status)],
        // Why the daemon does not answer is told by another check.
        Err(ClientError::Unreachable { .. }) => vec![file(context)],
        Err(error) => vec![Check::failed(
            "log",
            chain(&error),
            "see the log of the daemon; if a database is named there, make sure that it runs",
        )],
    };
    checks.push(match client.get::<BootList>("/v1/boots") {
        Ok(list) => boots(&list),
        Err(_) => Check::ok("boots", "a daemon is needed to tell"),
    });
    if depth == Depth::Deep {
        checks.push(integrity(client));
    }
    checks
}

fn log(status: &LogStatus) -> Check {
    let sizes = &status.sizes;
    let detail = format!(
        "{}, {}, {}",
        format_bytes(sizes.total_bytes),
        format_count(sizes.streams, "stream"),
        format_count(sizes.events, "event"),
    );
    match status.state {
        LogState::Writable => Check::ok("log", format!("writable; {detail}")),
        LogState::Refusing => {
            let reason = status.reason.as_deref().unwrap_or("it does not say why");
            let advice = "free some space, make the state directory writable, or start the database; the daemon goes on by itself then";
            Check::failed("log", format!("refuses writes: {reason}; {detail}"), advice)
        }
    }
}

/// The log while no daemon has it.
fn file(context: &Context) -> Check {
    let id = "log";
    if let Database::Postgres(_) = context.database {
        return Check::ok(id, "kept in PostgreSQL; a daemon is needed to look at it");
    }
    let path = context.home.log_database();
    match fs::metadata(&path) {
        Ok(metadata) => Check::ok(
            id,
            format!("{} has {}", path.display(), format_bytes(metadata.len())),
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Check::ok(
            id,
            format!("{} is not there yet; the first start makes it", path.display()),
        ),
        Err(error) => Check::failed(
            id,
            format!("{} cannot be inspected: {error}", path.display()),
            "make its directory readable",
        ),
    }
}

fn boots(list: &BootList) -> Check {
    let id = "boots";
    let crashed = |boot: &&api::Boot| boot.state == BootState::Crashed;
    let count = list.boots.iter().filter(crashed).count() as u64;
    let known = format!("{} of the last {} crashed", count, list.boots.len());
    match list.boots.get(1).filter(crashed) {
        Some(last) => Check::warning(
            id,
            format!("{known}; the last one before this (pid {}) did", last.pid),
            "nothing needs to be done; what was acknowledged is kept. The log of that daemon may say why",
        ),
        None => Check::ok(id, known),
    }
}

fn integrity(client: &Client) -> Check {
    let id = "log_integrity";
    match client.post_and_wait::<LogCheck>("/v1/log/check", None::<&()>) {
        Ok(LogCheck {
            state: LogIntegrity::Whole,
            ..
        }) => Check::ok(id, "everything is as it was written"),
        Ok(LogCheck { problems, .. }) => Check::failed(
            id,
            problems.join("; "),
            "stop the daemon, and put a backup in the place of the log",
        ),
        Err(ClientError::Unreachable { .. }) => Check::warning(
            id,
            "not checked, as there is no daemon",
            "start one with `tidelock up`, and look again",
        ),
        Err(error) => Check::failed(id, chain(&error), "see the log of the daemon"),
    }
}
