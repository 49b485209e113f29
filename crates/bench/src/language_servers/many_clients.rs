//! What a hundred clients of one server cost the daemon.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::shared_daemon::SharedDaemon;
use crate::memory::resident_kib;
use crate::report::{BarVerdict, Table};
use crate::statistics::short;

const CLIENTS: usize = 100;
/// How often each of them asks, in turns.
const REQUESTS: usize = 20;
/// How long the daemon is left alone before its memory is measured.
const SETTLE: Duration = Duration::from_secs(1);

const BAR_MB: f64 = 10.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "A hundred clients of one server",
        "Resident memory of the daemon with a server that echoes: before, and with a hundred connections that are kept, \
         half of them over TCP, after each of them has asked twenty times, in turns.",
        &["idle", "with 100 clients", "more", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let shared = SharedDaemon::start(tidelock)?;
    let path = shared.start_echo(&directory.path().canonicalize()?)?;
    let pid = shared.daemon.pid()?;
    thread::sleep(SETTLE);
    let before = megabytes(pid)?;
    let mut clients = (0..CLIENTS)
        .map(|number| match number % 2 {
            0 => shared.unix(),
            _ => shared.tcp(),
        })
        .collect::<Result<Vec<_>>>()?;
    let body = json!({"method": "fault/echo", "params": {"text": "x".repeat(1000)}}).to_string();
    for _ in 0..REQUESTS {
        for client in &mut clients {
            client.post(&path, &body)?;
        }
    }
    thread::sleep(SETTLE);
    let after = megabytes(pid)?;
    let more = after - before;
    let shown = [before, after, more].map(|value| format!("{} MB", short(value)));
    let cells = shown.into_iter().chain([format!("at most {BAR_MB} MB")]);
    table.judged_row(cells.collect(), BarVerdict::from(more <= BAR_MB));
    Ok(())
}

fn megabytes(pid: u32) -> Result<f64> {
    Ok(resident_kib(pid)? as f64 * 1024.0 / 1e6)
}
