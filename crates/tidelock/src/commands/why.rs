//! `tidelock why PID`: shows what started a process, and why it runs.

use std::time::Duration;

use protocol::{Confinement, ProcessExplanation, ProcessRole};
use serde_json::json;

use super::job::local;
use super::ps;
use crate::cli::WhyArguments;
use crate::client::Client;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, fields};
use crate::units::{format_bytes, format_duration};

pub(super) fn run(arguments: &WhyArguments, client: &Client) -> Result<Report, Failure> {
    let path = format!("/v1/processes/{}", arguments.pid);
    let explanation: ProcessExplanation = client.fetch(&path)?;
    Ok(report(client.palette(), &explanation))
}

fn report(palette: Palette, explanation: &ProcessExplanation) -> Report {
    let process = &explanation.process;
    let role = match explanation.role {
        ProcessRole::Command => "the command itself",
        ProcessRole::Keeper => "the keeper, which ends the command when the daemon dies",
        ProcessRole::Descendant => "started by the command",
    };
    let memory = match process.processes {
        1 => format_bytes(process.rss_bytes),
        count => format!("{} in {count} processes", format_bytes(process.rss_bytes)),
    };
    let line: Vec<_> = explanation
        .line
        .iter()
        .map(|ancestor| format!("{} ({})", ancestor.pid, ancestor.name))
        .collect();
    let mut rows = vec![
        ("process", Cell::new(explanation.pid.to_string())),
        ("role", Cell::new(role)),
        ("owner", Cell::new(&process.owner)),
        ("reason", Cell::new(&process.reason)),
        ("state", ps::state(process.state)),
        ("generation", Cell::new(process.generation.to_string())),
        ("restarts", Cell::new(process.restarts.to_string())),
        ("started", Cell::new(local(&process.started_at))),
        (
            "age",
            Cell::new(format_duration(Duration::from_millis(process.age_ms))),
        ),
        ("memory", Cell::new(memory)),
        ("command", Cell::new(process.argv.join(" "))),
    ];
    if let [_, _, ..] = line.as_slice() {
        rows.push(("parents", Cell::new(line.join(" < "))));
    }
    match process.confinement {
        Confinement::Full => rows.push(("confinement", Cell::new("full"))),
        Confinement::Partial => rows.push(("confinement", Cell::new("partial"))),
        Confinement::None => {}
    }
    let value = json!({
        "id": process.id, "state": process.state, "pid": explanation.pid, "role": explanation.role,
        "line": explanation.line, "process": process,
    });
    Report::success(value, fields(palette, rows))
}
