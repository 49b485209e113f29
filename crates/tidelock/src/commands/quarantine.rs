//! `tidelock quarantine`: unreadable records of the log.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use protocol::{QuarantineList, QuarantinedHead, QuarantinedStream};
use serde_json::json;

use crate::cli::QuarantineCommand;
use crate::client::{Client, path_segment};
use crate::error::{Exit, Failure};
use crate::output::{self, Cell, Format, Palette, Report, list as list_of};
use crate::printable::Answer;
use crate::start::Repeat;
use crate::units::format_bytes;

const QUARANTINE: &str = "/v1/log/quarantine";

pub(super) fn run(command: &QuarantineCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        QuarantineCommand::List => list(client),
        QuarantineCommand::Show(arguments) => show(&arguments.stream, client),
        QuarantineCommand::Drop(arguments) => drop_stream(&arguments.stream, client),
    }
}

fn list(client: &Client) -> Result<Report, Failure> {
    let list: Answer<QuarantineList> = client.fetch(QUARANTINE)?;
    Ok(Report::shown(rows(client.palette(), &list.quarantined), list))
}

fn rows(palette: Palette, list: &[QuarantinedStream]) -> String {
    if list.is_empty() {
        return "Nothing is quarantined. `tidelock doctor --deep` reads the whole log.\n".to_owned();
    }
    let row = |one: &QuarantinedStream| {
        vec![
            Cell::new(&one.stream),
            Cell::or_dash(one.size_bytes.map(format_bytes)),
            Cell::new(&one.reason),
        ]
    };
    let rows = list.iter().map(row).collect();
    let mut text = list_of(palette, &["STREAM", "SIZE", "REASON"], rows, "");
    text.push_str(
        "Everything else works. See one with: tidelock quarantine show STREAM; remove it with: tidelock quarantine drop STREAM\n",
    );
    text
}

fn find(stream: &str, client: &Client) -> Result<QuarantinedHead, Failure> {
    let path = format!("{QUARANTINE}/{}", path_segment(stream));
    client.fetch(&path)
}

fn show(stream: &str, client: &Client) -> Result<Report, Failure> {
    let head = find(stream, client)?;
    if client.format() == Format::Json {
        return Ok(Report::success(json!(head), String::new()));
    }
    let not_understood = |error: base64::DecodeError| {
        Failure::new(
            Exit::Failed,
            "not_understood",
            format!("the daemon's answer cannot be read: {error}"),
        )
    };
    let bytes = match (head.body, head.body_base64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(text)) => BASE64_STANDARD.decode(text).map_err(not_understood)?,
        (None, None) => Vec::new(),
    };
    output::write_bytes(io::stdout(), &bytes).map_err(|error| {
        Failure::new(
            Exit::Failed,
            "output_failed",
            format!("standard output cannot be written: {error}"),
        )
    })?;
    Ok(Report::already_told())
}

fn drop_stream(stream: &str, client: &Client) -> Result<Report, Failure> {
    let head = find(stream, client)?;
    let path = format!("{QUARANTINE}/{}?version={}", path_segment(stream), head.version);
    client.ask(Repeat::Harmful, |client| client.delete(&path))?;
    let value = json!({ "stream": stream, "state": "dropped" });
    Ok(Report::success(value, format!("Removed {stream}.\n")))
}
