//! Measures Tidelock against its peers and writes the report; run it as `cargo xtask bench`.
//!
//! All contenders of a question run in one process, in turns, through the same loop (`measure.rs`): what the
//! machine does to one it does to all, and a ratio of two figures of the same run holds where the figures
//! themselves do not.

mod breaker;
mod breaker_callers;
mod breaker_correctness;
mod cancellation;
mod context;
mod daemon;
mod event_log;
mod executor;
mod http;
mod idleness;
mod jobs;
mod language_servers;
mod machine;
mod machines;
mod mcp;
mod measure;
mod memory;
mod own_daemon;
mod pages;
mod plans;
mod programs;
mod report;
mod sessions;
mod statistics;
mod turns;
mod wake_up;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use report::{Report, Table};

/// Measures one table. The path is that of the product.
type Measure = fn(&Path) -> Result<Table>;

/// The tables in the order of the report, by the names under which they can be run alone.
const TABLES: &[(&str, Measure)] = &[
    ("cancellation", |_| cancellation::measure()),
    ("wake-up", |_| wake_up::measure()),
    ("breaker", |_| breaker::measure()),
    ("breaker-correctness", |_| breaker_correctness::measure()),
    ("log-commits", |_| event_log::commits::measure()),
    ("log-latency", |_| event_log::latency::measure()),
    ("log-reading", |_| event_log::reading::measure()),
    ("log-opening", |_| event_log::opening::measure()),
    ("log-fan-out", |_| event_log::fan_out::measure()),
    ("daemon", daemon::measure),
    ("lsp-echo", language_servers::echo::measure),
    ("lsp-hover", language_servers::hover::measure),
    ("lsp-clients", language_servers::many_clients::measure),
    ("lsp-codec", |_| language_servers::codec::measure()),
    ("lsp-sharing", language_servers::sharing::measure),
    ("lsp-recovery", language_servers::recovery::measure),
    ("lsp-processes", language_servers::ownership::measure),
    ("jobs-sqlite", jobs::sqlite::measure),
    ("jobs-backlog", jobs::backlog::measure),
    ("jobs-idle", jobs::start_latency::measure),
    ("jobs-postgres", jobs::postgres::measure),
    ("jobs-cancel", jobs::cancel::measure),
    ("jobs-output", jobs::output::measure),
    ("jobs-idle-cost", jobs::idle_cost::measure),
    ("machines", machines::measure),
    ("plans-sandbox", plans::sandbox::measure),
    ("plans-exec", plans::exec::measure),
    ("plans-capture", plans::capture::measure),
    ("plans-build", plans::warm_build::measure),
    ("plans-apply", plans::apply::measure),
    ("plans-many", plans::many::measure),
    ("plans-oracle", plans::oracle::measure),
    ("plans-scores", plans::scores::measure),
    ("sessions-fan-out", sessions::fan_out::measure),
    ("sessions-at-once", sessions::at_once::measure),
    ("sessions-idle", sessions::idle::measure),
    ("sessions-history", sessions::history::measure),
    ("sessions-reconnect", sessions::reconnect::measure),
    ("sessions-crash", sessions::crash::measure),
    ("context-search", context::search::measure),
    ("context-pipeline", context::pipeline::measure),
    ("context-quality", context::quality::measure),
    ("pages", pages::measure),
    ("mcp", mcp::measure),
];

#[derive(Debug, PartialEq, Eq)]
struct Options {
    tidelock: PathBuf,
    wanted: Wanted,
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Report(PathBuf),
    /// Only print the tables whose names contain this.
    Only(String),
}

fn main() -> Result<()> {
    if let Some(landed) = plans::kills::land_if_asked() {
        return landed;
    }
    if let Some(echoed) = mcp::echo_if_asked() {
        return echoed;
    }
    let options = options(std::env::args().skip(1))?;
    // It is also started in other directories.
    let tidelock = std::path::absolute(&options.tidelock)?;
    let _removed = plans::RemoveInTheEnd;
    let text = match &options.wanted {
        Wanted::Report(path) => {
            let mut report = Report::new(machine::describe()?);
            for table in run(TABLES.iter(), &tidelock) {
                report.add(table?);
            }
            let text = report.to_string();
            std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
            text
        }
        Wanted::Only(part) => {
            let chosen = TABLES.iter().filter(|(name, _)| name.contains(part.as_str()));
            let tables = run(chosen, &tidelock).collect::<Result<Vec<_>>>()?;
            let texts: Vec<String> = tables.iter().map(Table::to_string).collect();
            texts.join("\n")
        }
    };
    print!("{text}");
    Ok(())
}

/// Measures the tables, one after another. The report goes to standard output, so progress messages go to standard
/// error.
fn run<'a>(
    tables: impl Iterator<Item = &'a (&'static str, Measure)>,
    tidelock: &Path,
) -> impl Iterator<Item = Result<Table>> {
    tables.map(move |(name, measure)| {
        eprintln!("measuring {name} ...");
        measure(tidelock).with_context(|| format!("cannot measure {name}"))
    })
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let (mut tidelock, mut wanted) = (None, None);
    while let Some(argument) = arguments.next() {
        let value = arguments
            .next()
            .with_context(|| format!("`{argument}` wants a value"))?;
        match argument.as_str() {
            "--tidelock" => tidelock = Some(PathBuf::from(value)),
            "--report" => wanted = Some(Wanted::Report(PathBuf::from(value))),
            "--only" => {
                let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
                ensure!(
                    names.iter().any(|name| name.contains(&value)),
                    "there is no table `{value}`; there are {}",
                    names.join(", ")
                );
                wanted = Some(Wanted::Only(value));
            }
            _ => bail!("unknown option `{argument}`; run `cargo xtask bench` instead"),
        }
    }
    Ok(Options {
        tidelock: tidelock.context("`--tidelock PATH` is missing; run `cargo xtask bench` instead")?,
        wanted: wanted
            .context("`--report PATH` or `--only TABLE` is missing; run `cargo xtask bench` instead")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        let report = || Wanted::Report("B.md".into());
        let cases = [
            ("--tidelock t --report B.md", Ok(report())),
            ("--tidelock t --only log", Ok(Wanted::Only("log".to_owned()))),
            (
                "--tidelock t --only log-commits",
                Ok(Wanted::Only("log-commits".to_owned())),
            ),
            (
                "--tidelock t --report B.md --only log",
                Ok(Wanted::Only("log".to_owned())),
            ),
            (
                "--tidelock t --only nothing",
                Err("there is no table `nothing`; there are cancellation,"),
            ),
            ("--tidelock t --only", Err("`--only` wants a value")),
            (
                "--tidelock t",
                Err("`--report PATH` or `--only TABLE` is missing"),
            ),
            ("--report B.md", Err("`--tidelock PATH` is missing")),
            ("--fast yes", Err("unknown option `--fast`")),
        ];
        for (line, expected) in cases {
            let given = options(line.split_whitespace().map(str::to_owned));
            match (given, expected) {
                (Ok(options), Ok(wanted)) => {
                    let tidelock = "t".into();
                    assert_eq!(options, Options { tidelock, wanted }, "{line}");
                }
                (Err(error), Err(beginning)) => {
                    assert!(error.to_string().starts_with(beginning), "{line}: {error}");
                }
                (given, expected) => panic!("{line}: {given:?} instead of {expected:?}"),
            }
        }
    }
}
