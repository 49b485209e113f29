//! `tidelock down`: stops the daemon, and returns when it has released everything.

use serde_json::json;

use crate::cli::DownArguments;
use crate::client::{Client, ClientError};
use crate::daemon_process::{DaemonProcess, Waited};
use crate::error::{Exit, Failure, chain};
use crate::output::{Cell, Palette, Report, Tone, fields};

pub(super) fn run(arguments: &DownArguments, client: &Client) -> Result<Report, Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, "stop_failed", chain(&error));
    // Look up the process before asking it to stop. Afterwards its record may already be empty.
    let process = DaemonProcess::find(&client.context.home).map_err(failed)?;
    let asked = client.post::<protocol::ShutdownAccepted>("/v1/shutdown", None::<&()>);
    if let Err(ClientError::Home(error)) = asked {
        // Anyone else who can write to the directory could have put any pid into the record.
        return Err(error.into());
    }
    let Some(process) = process else {
        return match asked {
            Err(ClientError::Unreachable { .. }) => Ok(none(client.palette())),
            Err(error) => Err(error.into()),
            Ok(_) => Err(Failure::new(
                Exit::Failed,
                "stop_failed",
                "asked the daemon to stop, but can't wait for it: its lock file has no record of it",
            )),
        };
    };
    // If it does not answer, is already stopping, or has another token, signal its process instead.
    if asked.is_err() {
        process.terminate().map_err(failed)?;
    }
    let pid = process.owner.pid;
    match process.wait(arguments.timeout).map_err(failed)? {
        Waited::Ended => Ok(stopped(client.palette(), &process)),
        Waited::StillThere => Err(Failure::new(
            Exit::Failed,
            "stop_timeout",
            format!("the daemon (pid {pid}) was asked to stop, but is still running"),
        )
        .advise(format!(
            "wait longer with `tidelock down --timeout 2m`, or end it with `kill -9 {pid}`"
        ))),
    }
}

fn stopped(palette: Palette, process: &DaemonProcess) -> Report {
    let owner = &process.owner;
    let text = fields(
        palette,
        vec![
            ("daemon", Cell::toned("stopped", Tone::Good)),
            ("pid", Cell::new(owner.pid.to_string())),
        ],
    );
    let id = owner.boot_id.to_string();
    Report::success(
        json!({ "id": id, "state": "stopped", "pid": owner.pid, "was_running": true }),
        text,
    )
}

fn none(palette: Palette) -> Report {
    let text = fields(palette, vec![("daemon", Cell::toned("not running", Tone::Quiet))]);
    Report::success(json!({ "state": "stopped", "was_running": false }), text)
}
