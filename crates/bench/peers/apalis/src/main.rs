//! apalis as a peer of `jobs`: no-op jobs on SQLite or Postgres. It prints figures in nanoseconds, one to a line.
//!
//! It is a program of its own, since cargo lets one package of a dependency tree link a libsqlite3.

mod postgres;
mod sqlite;
mod worker;

use anyhow::{Context as _, Result, bail};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let figures = match *arguments.as_slice() {
        ["sqlite-drain", synchronous, file, jobs, workers] => {
            sqlite::drain(synchronous, file, number(jobs)?, number(workers)?).await?
        }
        ["sqlite-idle", file, pushes] => sqlite::idle(file, number(pushes)?).await?,
        ["postgres-drain", url, jobs, workers] => {
            postgres::drain(url, number(jobs)?, number(workers)?).await?
        }
        _ => bail!(
            "apalis-peer sqlite-drain full|default FILE JOBS WORKERS | sqlite-idle FILE PUSHES | \
             postgres-drain URL JOBS WORKERS"
        ),
    };
    for figure in figures {
        println!("{figure}");
    }
    Ok(())
}

fn number(text: &str) -> Result<usize> {
    text.parse().with_context(|| format!("`{text}` is not a number"))
}
