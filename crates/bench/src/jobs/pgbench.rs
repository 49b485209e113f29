//! A bare `SKIP LOCKED` loop, run by `pgbench`: the minimum that a queue on Postgres has to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::postgres_database::Database;
use crate::programs::find_peer;

/// One job: found, locked and done in one transaction. If the worker dies, there is no record that the job ever
/// started.
const SCRIPT: &str = "\
WITH next AS (SELECT id FROM queue WHERE state = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1)
UPDATE queue SET state = 'done' FROM next WHERE queue.id = next.id;
";

pub(super) struct PgBench {
    program: PathBuf,
}

impl PgBench {
    pub(super) fn get() -> Option<Self> {
        find_peer("pgbench").map(|program| Self { program })
    }

    pub(super) fn drain(
        &self,
        database: &Database<'_>,
        directory: &Path,
        jobs: usize,
        clients: usize,
    ) -> Result<f64> {
        database.run(&[
            "CREATE TABLE queue (id bigserial PRIMARY KEY, state text NOT NULL, payload text NOT NULL)"
                .to_owned(),
            "CREATE INDEX ON queue (id) WHERE state = 'queued'".to_owned(),
            format!(
                "INSERT INTO queue (state, payload) SELECT 'queued', '0' FROM generate_series(1, {jobs})"
            ),
            "ANALYZE queue".to_owned(),
        ])?;
        let script = directory.join("script.sql");
        fs::write(&script, SCRIPT)?;
        let mut command = Command::new(&self.program);
        command
            .args(["--no-vacuum", "--protocol=prepared"])
            .arg(format!("--client={clients}"))
            .arg(format!("--jobs={}", clients.min(2)))
            .arg(format!("--transactions={}", jobs / clients))
            .arg("--file")
            .arg(&script)
            .arg(database.url())
            .stdin(Stdio::null());
        let output = command.output().context("cannot run pgbench")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pgbench failed: {}", said.trim());
        let rate = rate_in(&String::from_utf8_lossy(&output.stdout));
        Ok(1e9 / rate.context("pgbench names no rate")?)
    }
}

/// The number in `tps = 1234.5 (without initial connection time)`.
fn rate_in(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read() {
        let text = "number of clients: 1\ntps = 1234.5 (without initial connection time)\n";
        assert_eq!(rate_in(text), Some(1234.5));
        assert_eq!(rate_in("tps: none"), None);
    }
}
