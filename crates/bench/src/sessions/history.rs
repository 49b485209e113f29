//! A short turn in a session without history, and in ones with a long history: it has to cost the same.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use eventlog::{Commit, Head, Log, SqliteOptions, StoredHead, StreamId, Version, Write};
use kernel::SystemClock;
use protocol::TurnId;
use sessions::{SessionRecord, TurnRecord};

use super::session_daemon::SessionDaemon;
use crate::jobs::runtime;
use crate::measure::Measured;
use crate::memory::number;
use crate::report::{Bar, Table};
use crate::statistics::{Figure, nanoseconds, ratio, short};

/// A turn is two messages: the prompt and the answer.
const MESSAGES: [u64; 3] = [0, 1000, 100_000];
const TIMES: usize = 41;
const WARM_UP: usize = 5;
const SCRIPT: &str = "steps:\n- say: {text: \"one two three\"}\n";
/// How many turns are written in one commit.
const COMMIT_TURNS: u64 = 500;
const BAR_TIMES: f64 = 2.0;

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let table = Table::of_ratios(
        "Sessions: a turn in a long history",
        "A turn of three words, from its prompt to its end, in sessions of no, 1,000 and 100,000 messages, in turns; and the bytes that the daemon has written \
         to the disk for it (`write_bytes` of the kernel). `the peer` is the session without a history. The program that the report is about takes 0.05 s in an \
         empty session, and 12.4 s and 38 MB in one of 5,000 messages.",
    );
    Ok(table.filled(|table| fill(table, tidelock)))
}

fn fill(table: &mut Table, tidelock: &Path) -> Result<()> {
    let daemon = SessionDaemon::start(tidelock)?;
    let mut sessions = Vec::new();
    for messages in MESSAGES {
        let session = daemon.session()?;
        let turn = daemon.turn(&session, SCRIPT)?;
        daemon.ended(&session, &turn)?;
        sessions.push((session, messages));
    }
    let daemon = daemon.restarted(|home| {
        let runtime = runtime()?;
        let path = home.join("state/log.sqlite3");
        ensure!(path.is_file(), "there is no log in {}", path.display());
        let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared())?;
        for (session, messages) in &sessions {
            runtime.block_on(lengthen(&log, session, messages / 2))?;
        }
        Ok(())
    })?;
    let (mut times, mut bytes) = (vec![Vec::new(); MESSAGES.len()], vec![Vec::new(); MESSAGES.len()]);
    for round in 0..WARM_UP + TIMES {
        for (place, (session, _)) in sessions.iter().enumerate() {
            let (before, began) = (written(daemon.pid)?, Instant::now());
            let turn = daemon.turn(session, SCRIPT)?;
            let ended = daemon.ended(session, &turn)?;
            let took = nanoseconds(began.elapsed());
            ensure!(ended["state"] == "done", "a turn is {}", ended["state"]);
            if round >= WARM_UP {
                times[place].push(took);
                bytes[place].push((written(daemon.pid)? - before) as f64);
            }
        }
    }
    let measured = |name, samples: &Vec<f64>| Measured {
        name,
        samples: samples.clone(),
    };
    let none = measured("no history", &times[0]);
    for (place, messages) in MESSAGES.iter().enumerate().skip(1) {
        let what = format!("a turn after {messages} messages");
        let ours = measured("tidelock", &times[place]);
        table.compare(&what, &ours, &none, Bar::WithinTimes(BAR_TIMES));
        let (ours, without) = (Figure::of(&bytes[place]), Figure::of(&bytes[0]));
        let ratio = ratio(&bytes[place], &bytes[0]);
        let verdict = crate::report::BarVerdict::from(ratio * BAR_TIMES >= 1.0);
        let kib = |figure: Figure| format!("{} KiB", short(figure.median / 1024.0));
        let cells = vec![
            format!("bytes written for a turn after {messages} messages"),
            "no history".to_owned(),
            kib(ours),
            kib(without),
            short(ratio),
            format!("within {BAR_TIMES} ×"),
        ];
        table.judged_row(cells, verdict);
    }
    Ok(())
}

fn written(pid: u32) -> Result<u64> {
    let counters = fs::read_to_string(format!("/proc/{pid}/io"))?;
    Ok(number(&counters, "write_bytes"))
}

/// Inserts turns before the next one of a session, all copies of the one it has.
async fn lengthen(log: &Log, session: &str, turns: u64) -> Result<()> {
    let stream = StreamId::new(&format!("session/{session}"))?;
    let head = log.head(&stream).await?.context("the session is not there")?;
    let mut record: SessionRecord = serde_json::from_slice(&head.head.body)?;
    let last = record.last_turn.context("the session has no turn")?;
    let like = log
        .head(&turn_stream(last)?)
        .await?
        .context("the turn is not there")?;
    let mut turn: TurnRecord = serde_json::from_slice(&like.head.body)?;
    let mut made = 0;
    while made < turns {
        let some = COMMIT_TURNS.min(turns - made);
        let mut writes = Vec::new();
        for _ in 0..some {
            record.prompts += 1;
            turn.number = record.prompts;
            turn.previous = record.last_turn;
            let id = TurnId::generate();
            record.last_turn = Some(id);
            writes.push(Write {
                stream: turn_stream(id)?,
                expected: Version::NONE,
                head: Some(with_body(&like, serde_json::to_vec(&turn)?)),
                events: Vec::new(),
            });
        }
        log.commit(Commit::all(writes)).await?;
        made += some;
    }
    log.commit(Commit::one(Write {
        stream,
        expected: head.version,
        head: Some(with_body(&head, serde_json::to_vec(&record)?)),
        events: Vec::new(),
    }))
    .await?;
    Ok(())
}

fn with_body(stored: &StoredHead, body: Vec<u8>) -> Head {
    Head {
        body: body.into(),
        ..stored.head.clone()
    }
}

fn turn_stream(turn: TurnId) -> Result<StreamId> {
    Ok(StreamId::new(&format!("turn/{turn}"))?)
}
