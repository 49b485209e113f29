//! `tidelock purge`: stops the daemon, and removes everything it stores.

use serde_json::json;

use super::down;
use crate::cli::{DownArguments, PurgeArguments};
use crate::client::Client;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Report, Tone, fields};
use crate::start::START_LOCK_TIMEOUT;
use crate::start_lock::StartLock;
use crate::units::format_bytes;

pub(super) fn run(arguments: &PurgeArguments, client: &Client) -> Result<Report, Failure> {
    let home = &client.context.home;
    let (runtime, state) = (
        home.runtime.display().to_string(),
        home.state.display().to_string(),
    );
    if !home.runtime.exists() && !home.state.exists() {
        let value = json!({ "state": "removed", "freed_bytes": 0 });
        return Ok(Report::success(value, "There is nothing to remove.\n".to_owned()));
    }
    // Don't touch a directory that was given by mistake and is not one of our homes.
    let is_home = home.home_id_file().exists() || home.log_database().exists() || home.daemon_lock().exists();
    if !is_home {
        let message = format!("no daemon has ever run with {state} and {runtime}; nothing was removed");
        return Err(Failure::new(Exit::Refused, "not_a_home", message)
            .advise("see `tidelock doctor` for where they come from"));
    }
    if !arguments.yes {
        let message = format!(
            "this removes {state} and {runtime} with all plans, sessions, jobs and their history; nothing was removed"
        );
        return Err(Failure::new(Exit::Refused, "not_confirmed", message)
            .advise("save what you want to keep with `tidelock export`; then run `tidelock purge --yes`"));
    }
    let waiting = DownArguments {
        timeout: arguments.timeout,
    };
    down::run(&waiting, client)?;
    // Clients that need a daemon in the meantime wait, and then start one in an empty home.
    home.prepare()?;
    let lock = StartLock::take(home, START_LOCK_TIMEOUT)?;
    let freed_bytes = home.remove()?;
    drop(lock);
    let text = fields(
        client.palette(),
        vec![
            ("home", Cell::toned("removed", Tone::Good)),
            ("freed", Cell::new(format_bytes(freed_bytes))),
        ],
    );
    let value = json!({ "state": "removed", "freed_bytes": freed_bytes, "directories": [state, runtime] });
    Ok(Report::success(value, text))
}
