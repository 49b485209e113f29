//! What sharing adds to a request: a server that only echoes, asked directly and through programs that share it.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::lspmux::{Lspmux, Over};
use super::server_by_hand::ServerByHand;
use super::shared_daemon::SharedDaemon;
use super::turns::{Asker, added, ask_in_turns};
use crate::measure::Measured;
use crate::programs::fault_server;
use crate::report::{BarVerdict, Table};
use crate::statistics::{Figure, short};

const ROUNDS: usize = 101;

const UNIX_BAR_MS: f64 = 0.10;
const TCP_BAR_MS: f64 = 0.15;

/// The bar for one of the askers, if any.
type Bar = Option<f64>;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "A request through the daemon",
        "A server that echoes its parameters, started by hand and asked over its pipes, or asked through the daemon: \
         `POST /v1/lsp/servers/ID/request` on a connection that is kept. All clients wait for each answer on the thread \
         that asked. A figure is the median over the rounds of the median of a turn; what was added is the difference \
         to the direct client within a round.",
        &["client", "round trip", "added", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

/// What is echoed: as long as a question about a position in a file.
fn params() -> Value {
    json!({
        "textDocument": {"uri": "file:///home/somebody/project/src/main.rs"},
        "position": {"line": 12, "character": 34},
    })
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?;
    let echo = fault_server(tidelock)?;
    let mut direct = ServerByHand::start(tidelock, &echo, &[], &root)?;
    let shared = SharedDaemon::start(tidelock)?;
    let path = shared.start_echo(&root)?;
    let (mut unix, mut tcp) = (shared.unix()?, shared.tcp()?);
    let params = params();
    let body = json!({"method": "fault/echo", "params": params}).to_string();

    let mut askers = vec![
        Asker::new("direct, over pipes", || {
            direct.speaker.request("fault/echo", &params).map(drop)
        }),
        Asker::new("tidelock, Unix socket", || unix.post(&path, &body).map(drop)),
        Asker::new("tidelock, TCP", || tcp.post(&path, &body).map(drop)),
    ];
    let mut bars: Vec<Bar> = vec![None, Some(UNIX_BAR_MS), Some(TCP_BAR_MS)];
    let peers = [
        (Over::UnixSocket, "lspmux, Unix socket"),
        (Over::Tcp, "lspmux, TCP"),
    ];
    // Keep them alive during the measurement.
    let mut running = Vec::new();
    for (over, name) in peers {
        let Some(peer) = Lspmux::start(over)? else {
            table.skipped("lspmux is not installed");
            break;
        };
        let mut client = peer.connect(&echo, &root)?;
        let params = &params;
        askers.push(Asker::new(name, move || {
            client.request("fault/echo", params).map(drop)
        }));
        bars.push(None);
        running.push(peer);
    }
    let measured = ask_in_turns(&mut askers, ROUNDS)?;
    drop(askers);
    for (each, bar) in measured.iter().zip(bars) {
        show(table, &measured[0], each, bar);
    }
    Ok(())
}

fn show(table: &mut Table, direct: &Measured, each: &Measured, bar: Bar) {
    let more = Figure::of(&added(direct, each));
    let (verdict, asked) = match bar {
        None => (BarVerdict::NotAsked, String::new()),
        Some(bar) => (
            BarVerdict::from(more.median <= bar * 1e6),
            format!("at most {bar:.2} ms"),
        ),
    };
    let shown = if std::ptr::eq(direct, each) {
        String::new()
    } else {
        let [median, p10, p90] = [more.median, more.p10, more.p90].map(|value| short(value / 1e6));
        format!("{median} ms ({p10}–{p90})")
    };
    let round_trip = Figure::of(&each.samples).nanoseconds();
    table.judged_row(vec![each.name.to_owned(), round_trip, shown, asked], verdict);
}
