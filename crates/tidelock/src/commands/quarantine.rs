//! `tidelock quarantine`: what is in the log and cannot be read.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use protocol::{QuarantineList, QuarantinedHead, QuarantinedStream};
use serde_json::{Value, json};

use crate::cli::QuarantineCommand;
use crate::client::{Client, path_segment};
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::{self, Cell, Format, Palette, Report, Tone, table};
use crate::start::{Repeat, with_daemon};
use crate::units::format_bytes;

const QUARANTINE: &str = "/v1/log/quarantine";

pub(super) fn run(
    command: &QuarantineCommand,
    context: &Context,
    format: Format,
    client: &Client,
) -> Result<Report, Failure> {
    match command {
        QuarantineCommand::List => list(context, client),
        QuarantineCommand::Show(arguments) => show(&arguments.stream, context, format, client),
        QuarantineCommand::Drop(arguments) => drop_stream(&arguments.stream, context, client),
    }
}

fn list(context: &Context, client: &Client) -> Result<Report, Failure> {
    let ask = |client: &Client| client.get::<Value>(QUARANTINE);
    let (answer, _) = with_daemon(context, client, Repeat::Harmless, ask)?;
    let list: QuarantineList = printable(&answer)?;
    Ok(Report::success(answer, rows(context.palette, &list.quarantined)))
}

fn rows(palette: Palette, list: &[QuarantinedStream]) -> String {
    if list.is_empty() {
        return "Nothing is quarantined. `tidelock doctor --deep` reads the whole log.\n".to_owned();
    }
    let heading = ["STREAM", "SIZE", "REASON"];
    let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
    rows.extend(list.iter().map(|one| {
        vec![
            Cell::new(&one.stream),
            Cell::new(one.size_bytes.map_or_else(|| "-".to_owned(), format_bytes)),
            Cell::new(&one.reason),
        ]
    }));
    let mut text = table(palette, &rows);
    text.push_str(
        "Everything else works. See one with: tidelock quarantine show STREAM; remove it with: tidelock quarantine drop STREAM\n",
    );
    text
}

fn find(stream: &str, context: &Context, client: &Client) -> Result<QuarantinedHead, Failure> {
    let path = format!("{QUARANTINE}/{}", path_segment(stream));
    let ask = |client: &Client| client.get::<QuarantinedHead>(&path);
    Ok(with_daemon(context, client, Repeat::Harmless, ask)?.0)
}

fn show(stream: &str, context: &Context, format: Format, client: &Client) -> Result<Report, Failure> {
    let head = find(stream, context, client)?;
    if format == Format::Json {
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

fn drop_stream(stream: &str, context: &Context, client: &Client) -> Result<Report, Failure> {
    let head = find(stream, context, client)?;
    let path = format!("{QUARANTINE}/{}?version={}", path_segment(stream), head.version);
    with_daemon(context, client, Repeat::Harmful, |client| client.delete(&path))?;
    let value = json!({ "stream": stream, "state": "dropped" });
    Ok(Report::success(value, format!("Removed {stream}.\n")))
}
