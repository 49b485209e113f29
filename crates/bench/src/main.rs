//! Measures Tidelock against its peers and writes the report; run it as `cargo xtask bench`.
//!
//! All contenders of a question run in one process, in turns, through the same loop (`measure.rs`): what the
//! machine does to one it does to all, and a ratio of two figures of the same run holds where the figures
//! themselves do not.

mod breaker;
mod breaker_callers;
mod breaker_correctness;
mod cancellation;
mod daemon;
mod executor;
mod machine;
mod measure;
mod report;
mod statistics;
mod wake_up;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use report::Report;

/// Where the product is and where the report goes.
struct Options {
    tidelock: PathBuf,
    report: PathBuf,
}

fn main() -> Result<()> {
    let options = options(std::env::args().skip(1))?;
    let mut report = Report::new(machine::describe()?);
    progress("cancellation");
    report.add(cancellation::measure());
    progress("waking 1,000 waiters");
    report.add(wake_up::measure()?);
    progress("circuit breakers");
    report.add(breaker::measure()?);
    progress("what the breakers keep");
    report.add(breaker_correctness::measure()?);
    progress("the daemon");
    report.add(daemon::measure(&options.tidelock));
    let text = report.to_string();
    std::fs::write(&options.report, &text)
        .with_context(|| format!("cannot write {}", options.report.display()))?;
    print!("{text}");
    Ok(())
}

/// The report goes to standard output, so what happens meanwhile goes to the other stream.
fn progress(what: &str) {
    eprintln!("measuring {what} ...");
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let (mut tidelock, mut report) = (None, None);
    while let Some(argument) = arguments.next() {
        let value = arguments
            .next()
            .with_context(|| format!("`{argument}` wants a value"))?;
        match argument.as_str() {
            "--tidelock" => tidelock = Some(PathBuf::from(value)),
            "--report" => report = Some(PathBuf::from(value)),
            _ => bail!("unknown option `{argument}`; run `cargo xtask bench` instead"),
        }
    }
    Ok(Options {
        tidelock: tidelock.context("`--tidelock PATH` is missing; run `cargo xtask bench` instead")?,
        report: report.context("`--report PATH` is missing; run `cargo xtask bench` instead")?,
    })
}
