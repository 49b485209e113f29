//! `tidelock up`: starts a daemon in the background, and prints a link to its page.

use std::time::Duration;

use protocol::{PageLink, Status};
use serde::Serialize;
use serde_json::json;

use super::status::Daemon;
use crate::client::{Client, ClientError};
use crate::context::version_skew;
use crate::error::Failure;
use crate::output::{Cell, Report, Tone, fields};
use crate::start::{Repeat, Started, with_daemon};
use crate::units::format_duration;

#[derive(Debug, Serialize)]
struct Up {
    #[serde(flatten)]
    daemon: Daemon,
    started: bool,
    page: PageLink,
}

pub(super) fn run(client: &Client) -> Result<Report, Failure> {
    let look = |client: &Client| -> Result<(Status, PageLink), ClientError> {
        Ok((
            client.get("/v1/status")?,
            client.post("/v1/page-links", None::<&()>)?,
        ))
    };
    let ((status, page), started) = with_daemon(client, Repeat::Harmless, look)?;

    let palette = client.palette();
    let word = match started {
        Started::Now => "started",
        Started::Before => "already running",
    };
    let lasts = format_duration(Duration::from_millis(page.expires_in_ms));
    let mut text = fields(
        palette,
        vec![
            ("daemon", Cell::toned(word, Tone::Good)),
            ("version", Cell::new(&status.version)),
            ("pid", Cell::new(status.pid.to_string())),
            ("page", Cell::new(&page.url)),
        ],
    );
    text.push_str(&format!("The link to the page works once, within {lasts}.\n"));
    if let Some(advice) = version_skew(&status.version) {
        text.push_str(&format!("{} {advice}\n", palette.paint("note:", Tone::Warning)));
    }
    let up = Up {
        daemon: status.into(),
        started: started == Started::Now,
        page,
    };
    Ok(Report::success(json!(up), text))
}
