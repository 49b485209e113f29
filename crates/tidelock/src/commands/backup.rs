//! `tidelock backup`: a copy of the log, while the daemon keeps running.

use serde_json::json;

use super::export::with_damage;
use crate::cli::BackupArguments;
use crate::client::Client;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Report, Tone, fields};
use crate::progress::Progress;
use crate::start::Repeat;
use crate::units::format_bytes;

pub(super) fn run(arguments: &BackupArguments, client: &Client) -> Result<Report, Failure> {
    // The daemon's working directory differs from ours.
    let path = std::path::absolute(&arguments.path).ok();
    let Some(path) = path.as_deref().and_then(|path| path.to_str()) else {
        return Err(Failure::new(
            Exit::Usage,
            "usage",
            "the path of a backup must be UTF-8",
        ));
    };
    let body = protocol::BackupLog {
        path: path.to_owned(),
    };
    let mut progress = Progress::new("copied");
    progress.begin("Copying the log.");
    // If the copy was made but the answer got lost, a retry would find the file already there. So retrying is
    // up
    // to the user.
    let ask = |client: &Client| client.post_and_wait::<protocol::LogBackup>("/v1/log/backup", Some(&body));
    let made = client.ask(Repeat::Harmful, ask)?;
    drop(progress);
    let text = fields(
        client.palette(),
        vec![
            ("backup", Cell::toned("written", Tone::Good)),
            ("path", Cell::new(&made.path)),
            ("size", Cell::new(format_bytes(made.size_bytes))),
        ],
    );
    let value = json!({ "state": "written", "path": made.path, "size_bytes": made.size_bytes });
    Ok(with_damage(Report::success(value, text), &made.left_out))
}
