//! What outlives a daemon: its log, and how earlier daemons ended.

use std::fs;
use std::io::ErrorKind;

use daemon::Database;
use protocol::{BootList, BootState, LogCheck, LogIntegrity, LogServer, LogState, LogStatus, QuarantineList};
use serde_json::Value;

use super::Check;
use crate::cli::Depth;
use crate::client::{Client, ClientError};
use crate::context::Context;
use crate::error::chain;
use crate::printable::{one_line, printable};
use crate::units::{format_bytes, format_count};

/// How many quarantined records are named here; `tidelock quarantine list` has all of them.
const QUARANTINE_SHOWN: usize = 5;

pub(super) fn check(depth: Depth, client: &Client) -> Vec<Check> {
    let mut checks = match client.get::<LogStatus>("/v1/log") {
        Ok(status) => std::iter::once(log(&status))
            .chain(status.server.as_ref().map(database))
            .chain(lost_writes(&status))
            .collect(),
        // Another check reports why the daemon does not answer.
        Err(ClientError::Unreachable { .. }) => vec![file(&client.context)],
        Err(error) => vec![Check::failed(
            "log",
            chain(&error),
            "see the daemon's log; if it names a database, make sure that the database is running",
        )],
    };
    checks.push(match client.get::<BootList>("/v1/boots") {
        Ok(list) => boots(&list),
        Err(_) => Check::ok("boots", "unknown while no daemon is running"),
    });
    if depth == Depth::Deep {
        checks.push(integrity(client));
    }
    // After the deep check, which finds damage that no one has run into yet.
    checks.extend(quarantine(client));
    checks
}

/// Reads the log directly while no daemon has it open. A doctor starts none.
fn offline(context: &Context) -> Check {
    let id = "log_integrity";
    if let Database::Postgres(_) = context.database {
        return Check::ok(id, "kept in PostgreSQL; start the daemon to check it");
    }
    if !context.home.log_database().exists() {
        return Check::ok(id, "there is no log yet");
    }
    match daemon::check_log_file(&context.home) {
        Ok(problems) if problems.is_empty() => Check::ok(id, "no damage found (no daemon is running)"),
        Ok(problems) => damaged(&problems),
        Err(error) => Check::failed(id, chain(&error), error.advice()),
    }
}

fn damaged(problems: &[String]) -> Check {
    let named: Vec<String> = problems.iter().map(|problem| one_line(problem)).collect();
    Check::failed(
        "log_integrity",
        named.join("; "),
        "the rest still works: save it with `tidelock export` or `tidelock backup`; `tidelock quarantine list` shows the records that can't be read",
    )
}

/// Writes that are lost because the write-ahead log was removed.
fn lost_writes(status: &LogStatus) -> Option<Check> {
    let file = status.lost_writes.as_ref()?;
    Some(Check::warning(
        "log_writes",
        "the write-ahead log of `log.sqlite3` was removed while no daemon was running; the last writes before that are lost",
        format!(
            "restore a backup if something is missing, then remove {}",
            one_line(file)
        ),
    ))
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
            let reason = status.reason.as_deref().unwrap_or("no reason given");
            let advice = "free some space, make the state directory writable, or start the database; the daemon then continues by itself";
            Check::failed("log", format!("refuses writes: {reason}; {detail}"), advice)
        }
    }
}

/// The server that keeps the log, and whether the connection to it is encrypted.
fn database(server: &LogServer) -> Check {
    let protection = server
        .encryption
        .as_ref()
        .map_or_else(|| "not encrypted".to_owned(), |by| format!("encrypted with {by}"));
    let detail = format!("PostgreSQL {}, {}, {protection}", server.version, server.place);
    Check::ok("database", one_line(&detail))
}

/// The log while no daemon has it open.
fn file(context: &Context) -> Check {
    let id = "log";
    if let Database::Postgres(_) = context.database {
        return Check::ok(id, "kept in PostgreSQL; start the daemon to check it");
    }
    let path = context.home.log_database();
    match fs::metadata(&path) {
        Ok(metadata) => Check::ok(
            id,
            format!("{} has {}", path.display(), format_bytes(metadata.len())),
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Check::ok(
            id,
            format!("{} doesn't exist yet; the first start creates it", path.display()),
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
    let crashed = |boot: &&protocol::Boot| boot.state == BootState::Crashed;
    let count = list.boots.iter().filter(crashed).count() as u64;
    let known = format!("{} of the last {} crashed", count, list.boots.len());
    match list.boots.get(1).filter(crashed) {
        Some(last) => Check::warning(
            id,
            format!("{known}, including the previous one (pid {})", last.pid),
            "nothing to do: acknowledged writes are kept. That daemon's log may say why",
        ),
        None => Check::ok(id, known),
    }
}

/// Unreadable records. Another check reports whether there is a daemon.
fn quarantine(client: &Client) -> Option<Check> {
    let id = "quarantine";
    let list = client
        .get::<Value>("/v1/log/quarantine")
        .and_then(|answer| printable::<QuarantineList>(&answer));
    match list {
        Ok(list) if list.quarantined.is_empty() => Some(Check::ok(id, "nothing is quarantined")),
        Ok(list) => {
            let shown = list.quarantined.iter().take(QUARANTINE_SHOWN);
            let named: Vec<String> = shown
                .map(|one| format!("{} ({})", one.stream, one_line(&one.reason)))
                .collect();
            let count = format_count(list.quarantined.len() as u64, "record");
            Some(Check::warning(
                id,
                format!("{count} left out as unreadable: {}", named.join("; ")),
                "everything else works; see `tidelock quarantine list`",
            ))
        }
        Err(ClientError::Unreachable { .. }) => None,
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => None,
        Err(error) => Some(Check::warning(id, chain(&error), "see the daemon's log")),
    }
}

fn integrity(client: &Client) -> Check {
    let id = "log_integrity";
    match client.post_and_wait::<LogCheck>("/v1/log/check", None::<&()>) {
        Ok(LogCheck {
            state: LogIntegrity::Whole,
            ..
        }) => Check::ok(id, "no damage found"),
        Ok(LogCheck { problems, .. }) => damaged(&problems),
        Err(ClientError::Unreachable { .. }) => offline(&client.context),
        Err(error) => Check::failed(id, chain(&error), "see the daemon's log"),
    }
}
