//! `tidelock import`: fills an empty log from an archive, while no daemon runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use daemon::import_log;
use serde_json::json;

use super::export::with_damage;
use crate::cli::ArchiveArguments;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Report, Tone, fields};
use crate::progress::{Progress, Watched};
use crate::start::START_LOCK_TIMEOUT;
use crate::start_lock::StartLock;

pub(super) fn run(arguments: &ArchiveArguments, context: &Context) -> Result<Report, Failure> {
    let source: Box<dyn Read + Send> = if arguments.path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&arguments.path).map_err(|error| {
            let message = format!("`{}` cannot be read: {error}", arguments.path.display());
            Failure::new(Exit::Failed, "archive_unusable", message)
        })?)
    };
    let archive = Watched {
        source,
        progress: Progress::new("read"),
    };
    // Clients that look for a daemon in the meantime wait until the log is filled, instead of starting one.
    context.home.prepare()?;
    let _lock = StartLock::take(&context.home, START_LOCK_TIMEOUT)?;
    let imported = runtime()?.block_on(import_log(&context.home, &context.database, archive))?;
    let text = fields(
        context.palette,
        vec![
            ("log", Cell::toned("filled", Tone::Good)),
            ("streams", Cell::new(imported.streams.to_string())),
            ("events", Cell::new(imported.events.to_string())),
            ("blobs", Cell::new(imported.blobs.to_string())),
        ],
    );
    let value = json!({
        "state": "filled", "streams": imported.streams, "events": imported.events, "blobs": imported.blobs,
    });
    Ok(with_damage(Report::success(value, text), &imported.left_out))
}

/// The runtime for working on a log outside of a daemon.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    built.map_err(|error| {
        let message = format!("can't start a thread: {error}");
        Failure::new(Exit::Failed, "no_resources", message)
    })
}
