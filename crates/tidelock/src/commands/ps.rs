//! `tidelock ps`: the processes that the daemon owns.

use std::time::Duration;

use protocol::{Process, ProcessList, ProcessState};
use serde_json::json;

use crate::client::Client;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, list};
use crate::printable::shortened;
use crate::units::{format_bytes, format_duration};

/// How much of a command line is shown in a row. `why` shows all of it.
const COMMAND_CHARS: usize = 60;

pub(super) fn run(client: &Client) -> Result<Report, Failure> {
    let processes: ProcessList = client.fetch("/v1/processes")?;
    Ok(report(client.palette(), &processes))
}

fn report(palette: Palette, processes: &ProcessList) -> Report {
    let text = list(
        palette,
        &[
            "PID", "STATE", "OWNER", "REASON", "AGE", "MEMORY", "RESTARTS", "COMMAND",
        ],
        processes.processes.iter().map(row).collect(),
        "The daemon has started no processes.",
    );
    Report::success(json!({ "processes": processes.processes }), text)
}

fn row(process: &Process) -> Vec<Cell> {
    vec![
        Cell::or_dash(process.pid.map(|pid| pid.to_string())),
        state(process.state),
        Cell::new(&process.owner),
        Cell::new(&process.reason),
        Cell::new(format_duration(Duration::from_millis(process.age_ms))),
        Cell::new(format_bytes(process.rss_bytes)),
        Cell::new(process.restarts.to_string()),
        Cell::new(shortened(&process.argv.join(" "), COMMAND_CHARS)),
    ]
}

pub(super) fn state(state: ProcessState) -> Cell {
    match state {
        ProcessState::Starting => Cell::toned("starting", Tone::Warning),
        ProcessState::Running => Cell::toned("running", Tone::Good),
        ProcessState::Stopping => Cell::toned("stopping", Tone::Warning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn example() -> Process {
        Process {
            id: "boot_x.7".to_owned(),
            state: ProcessState::Running,
            pid: Some(4242),
            keeper_pid: Some(4241),
            owner: "lsp/rust-analyzer".to_owned(),
            reason: "the workspace app".to_owned(),
            generation: 3,
            restarts: 2,
            started_at: "2026-01-31T09:30:00Z".to_owned(),
            age_ms: 200_000,
            processes: 2,
            rss_bytes: 12 << 20,
            argv: vec!["rust-analyzer".to_owned(), "x".repeat(60)],
            confinement: protocol::Confinement::None,
        }
    }

    #[test]
    fn a_process_is_one_line() {
        let starting = Process {
            state: ProcessState::Starting,
            pid: None,
            argv: vec!["ruff".to_owned(), "server".to_owned()],
            ..example()
        };
        let list = ProcessList {
            processes: vec![example(), starting],
        };
        let expected = format!(
            "\
PID   STATE     OWNER              REASON             AGE         MEMORY    RESTARTS  COMMAND
4242  running   lsp/rust-analyzer  the workspace app  3 min 20 s  12.0 MiB  2         rust-analyzer {}…
-     starting  lsp/rust-analyzer  the workspace app  3 min 20 s  12.0 MiB  2         ruff server
",
            "x".repeat(46)
        );
        assert_eq!(report(Palette::Plain, &list).text, expected);
    }
}
