//! `tidelock home`: the identity of a home that was copied or moved.

use daemon::{adopt_home, renew_home};
use serde_json::json;

use super::import::runtime;
use crate::cli::HomeCommand;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Cell, Report, Tone, fields};
use crate::start::START_LOCK_TIMEOUT;
use crate::start_lock::StartLock;

pub(super) fn run(command: &HomeCommand, context: &Context) -> Result<Report, Failure> {
    // Clients that look for a daemon in the meantime wait instead of starting one.
    context.home.prepare()?;
    let _lock = StartLock::take(&context.home, START_LOCK_TIMEOUT)?;
    let (state, id) = match command {
        HomeCommand::Renew => ("renewed", renew_home(&context.home)?),
        HomeCommand::Adopt => {
            let adopted = adopt_home(&context.home, &context.database);
            ("adopted", runtime()?.block_on(adopted)?)
        }
    };
    let text = fields(
        context.palette,
        vec![
            ("home", Cell::toned(state, Tone::Good)),
            ("id", Cell::new(id.to_string())),
        ],
    );
    Ok(Report::success(
        json!({ "state": state, "id": id.to_string() }),
        text,
    ))
}
