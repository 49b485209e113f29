//! Large numbers of idle readers: whether others still get answers, and what each costs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::runtime::Runtime;

use super::session_daemon::SessionDaemon;
use super::sse::{Stream, until_there};
use crate::jobs::runtime;
use crate::memory::resident_kib;
use crate::report::{BarVerdict, Table};
use crate::statistics::{percentiles, short};

const READERS: usize = 10_000;
/// How many readers make the program that the report is about stop answering.
const ORIGINAL_READERS: usize = 128;
const SESSIONS: usize = 1000;
const QUESTIONS: usize = 200;
/// `/healthz` has to answer within this time, nine times out of ten.
const BAR_HEALTH: Duration = Duration::from_millis(10);
const BAR_READER_KIB: f64 = 20.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::with_columns(
        "Sessions: idle readers",
        "Readers of one turn that sleeps, and meanwhile `/healthz` on a connection of its own, 200 times. Memory is what the daemon has grown by, divided by \
         their number. The program that the report is about answers nobody any more when it has 128 such readers.",
        &["what", "figure", "bar", "met"],
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    process::raise_open_files();
    let runtime = runtime()?;
    let daemon = SessionDaemon::start(tidelock)?;
    let before = resident_kib(daemon.pid)?;
    let sessions = (0..SESSIONS)
        .map(|_| daemon.session())
        .collect::<Result<Vec<_>>>()?;
    let each = (resident_kib(daemon.pid)?.saturating_sub(before)) as f64 / SESSIONS as f64;
    table.row(vec![
        format!("memory for each of {SESSIONS} idle sessions"),
        format!("{} KiB", short(each)),
        String::new(),
        String::new(),
    ]);
    let session = &sessions[0];
    let turn = daemon.turn(session, "steps:\n- sleep: 600s\n")?;
    let request = daemon.request(session, &turn, "");
    health(table, &daemon, 0)?;
    let mut open: Vec<Box<dyn Stream>> = Vec::new();
    let before = resident_kib(daemon.pid)?;
    for count in [ORIGINAL_READERS, READERS] {
        add(&runtime, &daemon, &request, &mut open, count)?;
        health(table, &daemon, count)?;
    }
    let each = (resident_kib(daemon.pid)?.saturating_sub(before)) as f64 / READERS as f64;
    let cells = vec![
        format!("memory for each of {READERS} idle readers"),
        format!("{} KiB", short(each)),
        format!("under {BAR_READER_KIB} KiB"),
    ];
    table.judged_row(cells, BarVerdict::from(each < BAR_READER_KIB));
    drop(open);
    daemon
        .client()?
        .post(&format!("/v1/sessions/{session}/cancel"), "{}")?;
    Ok(())
}

/// Opens readers until there are enough.
fn add(
    runtime: &Runtime,
    daemon: &SessionDaemon,
    request: &str,
    open: &mut Vec<Box<dyn Stream>>,
    count: usize,
) -> Result<()> {
    let door = daemon.door();
    runtime.block_on(async {
        while open.len() < count {
            let mut stream = door.ask(request).await?;
            until_there(&mut stream).await?;
            open.push(stream);
        }
        Ok(())
    })
}

fn health(table: &mut Table, daemon: &SessionDaemon, readers: usize) -> Result<()> {
    let mut samples = Vec::with_capacity(QUESTIONS);
    for _ in 0..QUESTIONS {
        let began = Instant::now();
        daemon.client()?.get_json("/healthz")?;
        samples.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let [median, p90] = percentiles(&samples, [50, 90]);
    let cells = vec![
        format!("`/healthz` on a new connection, {readers} idle readers"),
        format!("{} ms (p90 {} ms)", short(median), short(p90)),
        format!("p90 under {} ms", BAR_HEALTH.as_millis()),
    ];
    table.judged_row(cells, BarVerdict::from(p90 < BAR_HEALTH.as_secs_f64() * 1e3));
    Ok(())
}
