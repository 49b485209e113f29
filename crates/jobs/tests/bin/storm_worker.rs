//! A worker on a log that it shares with others, for tests. It is a program so that it can be killed and stopped as one.
//!
//! ```text
//! storm-worker URL SCHEMA HOME DIARY LEASE_MS MAX_WORKERS
//! ```
//!
//! It says that it is ready, then obeys the orders that it reads, and ends when there are no more.

#[path = "storm_worker/play.rs"]
mod play;

use std::{
    error::Error,
    io::{BufRead, Write},
    process::ExitCode,
    time::Duration,
};

use eventlog::{Log, PostgresOptions};

use play::{Answer, Place, obey, open};

type Anything<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("storm-worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Anything<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, schema, home, diary, lease_ms, max_workers] = arguments.as_slice() else {
        return Err("it wants six arguments".into());
    };
    let options = PostgresOptions {
        schema: schema.clone(),
        ..PostgresOptions::new(url.clone())
    };
    let place = Place {
        home: home.parse()?,
        diary: diary.into(),
        lease: Duration::from_millis(lease_ms.parse()?),
        max_workers: max_workers.parse()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let jobs = runtime.block_on(async { open(Log::open_postgres(&options).await?, &place).await })?;
    answer(&Answer::Ready)?;
    for line in std::io::stdin().lock().lines() {
        let order = serde_json::from_str(&line?)?;
        answer(&runtime.block_on(obey(&jobs, order)))?;
    }
    Ok(())
}

fn answer(answer: &Answer) -> Anything<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", serde_json::to_string(answer)?)?;
    Ok(stdout.flush()?)
}
