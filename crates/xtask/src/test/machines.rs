//! Long tests of several machines: one run for each seed.

use std::env;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

/// How long each run takes, in seconds. The test reads it, and users can set it.
const SECONDS_VARIABLE: &str = "TIDELOCK_MACHINE_SECONDS";
const USUAL_SECONDS: &str = "600";
/// The seed of a run to replay.
const SEED_VARIABLE: &str = "TIDELOCK_CRASH_SEED";
const SEEDS: u64 = 3;

/// The runs. They use libtest: nextest kills a run of several minutes, and shows nothing before its end.
pub(super) fn commands(cargo: impl Fn() -> Command) -> Result<Vec<Command>> {
    let seconds = env::var(SECONDS_VARIABLE).unwrap_or_else(|_| USUAL_SECONDS.to_owned());
    let seeds = match env::var(SEED_VARIABLE) {
        Ok(seed) => vec![seed],
        Err(_) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
            (now..now + SEEDS).map(|seed| seed.to_string()).collect()
        }
    };
    let command = |seed: String| {
        let mut command = cargo();
        command
            .args([
                "test",
                "-p",
                "tidelock",
                "--test",
                "it",
                "machine_rounds::",
                "--",
                "--nocapture",
            ])
            .env(SECONDS_VARIABLE, &seconds)
            .env(SEED_VARIABLE, seed);
        command
    };
    Ok(seeds.into_iter().map(command).collect())
}
