//! Many sessions at once, each with a reader and a turn that outputs twenty words a second for ten seconds.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use super::session_daemon::SessionDaemon;
use super::sse::to_the_end;
use crate::idleness::used_by;
use crate::jobs::runtime;
use crate::memory::resident_kib;
use crate::report::{BarVerdict, Table};
use crate::statistics::{percentiles, short};

/// Two hundred words, twenty a second: nearly ten seconds.
const WORDS: usize = 200;
const EVERY_MS: u64 = 50;
/// A turn that takes longer was held up.
const BAR: Duration = Duration::from_secs(11);
/// How many sessions, and how the program that the report is about copes with them.
const LOADS: [(usize, &str); 2] = [(200, "126 of 200 finish, in 92–163 s"), (1000, "")];

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Sessions: many at once",
        "Each session has a turn that says 200 words, one every 50 ms, and a reader that is there from the start. A turn is timed from its prompt to \
         the event `end` at its reader. Memory is what the daemon has grown by, for each session with its turn and its reader, while all of them run.",
        &[
            "sessions",
            "finished",
            "a turn, median",
            "the slowest",
            "CPU",
            "memory a session",
            "the original",
            "bar",
            "met",
        ],
    );
    for (sessions, original) in LOADS {
        if let Err(error) = fill(&mut table, tidelock, sessions, original) {
            table.not_measured(&format!("{error:#}"));
        }
    }
    Ok(table)
}

fn fill(table: &mut Table, tidelock: &Path, sessions: usize, original: &str) -> Result<()> {
    let runtime = runtime()?;
    let daemon = SessionDaemon::start(tidelock)?;
    let text = "word ".repeat(WORDS);
    let script = format!("steps:\n- say: {{text: \"{text}\", every: {EVERY_MS}ms}}\n");
    let ids = (0..sessions)
        .map(|_| daemon.session())
        .collect::<Result<Vec<_>>>()?;
    let (before, memory_before) = (used_by(daemon.pid)?, resident_kib(daemon.pid)?);
    let door = daemon.door();
    let mut readers = JoinSet::new();
    for session in &ids {
        let began = Instant::now();
        let turn = daemon.turn(session, &script)?;
        let (door, request) = (door.clone(), daemon.request(session, &turn, ""));
        let read = async move {
            let seen = to_the_end(door.ask(&request).await?).await?;
            // Accepted, running, the words, the line that ends them if there is one, done.
            ensure!(seen.events >= WORDS as u64, "{} events came", seen.events);
            anyhow::Ok(seen.last - began)
        };
        readers.spawn_on(read, runtime.handle());
    }
    let memory = resident_kib(daemon.pid)?.saturating_sub(memory_before) as f64 / sessions as f64;
    let took: Vec<f64> = runtime.block_on(async {
        let mut took = Vec::new();
        while let Some(ended) = readers.join_next().await {
            match ended? {
                Ok(time) => took.push(time.as_secs_f64()),
                Err(error) => eprintln!("a reader failed: {error:#}"),
            }
        }
        anyhow::Ok(took)
    })?;
    ensure!(!took.is_empty(), "no turn was finished");
    let cpu = used_by(daemon.pid)?.since(&before).cpu;
    let [median, slowest] = percentiles(&took, [50, 100]);
    let is_met = took.len() == sessions && slowest <= BAR.as_secs_f64();
    let cells = vec![
        sessions.to_string(),
        format!("{} of {sessions}", took.len()),
        format!("{} s", short(median)),
        format!("{} s", short(slowest)),
        format!("{} s", short(cpu.as_secs_f64())),
        format!("{} KiB", short(memory)),
        original.to_owned(),
        format!("all within {} s", BAR.as_secs()),
    ];
    table.judged_row(cells, BarVerdict::from(is_met));
    Ok(())
}
