//! Diagnostics of TypeScript's own server, requested through the language server in front of it.
//!
//! That language server pushes diagnostics only when they differ from those it pushed last, and names no version. So an
//! edit that doesn't change them is never followed by a push, and we couldn't tell an old one from a new one. But it
//! forwards requests, and the server behind it reports the current diagnostics of a file on request.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{conversation::Request, error::QueryError, reader::Reader};
use crate::text::uri_of_path;

/// The command that forwards a request.
pub(super) const PASS_ON: &str = "typescript.tsserverRequest";
pub(super) const EXECUTE: &str = "workspace/executeCommand";
/// Syntax errors, type errors and suggestions.
const COMMANDS: [&str; 3] = [
    "syntacticDiagnosticsSync",
    "semanticDiagnosticsSync",
    "suggestionDiagnosticsSync",
];

pub(super) fn requests(path: &Path) -> Vec<Request> {
    let request = |command: &str| Request {
        method: EXECUTE,
        params: json!({"command": PASS_ON, "arguments": [command, {"file": path}]}),
    };
    COMMANDS.map(request).into()
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    success: bool,
    message: Option<String>,
    #[serde(default)]
    body: Vec<ReportedError>,
}

/// A position: both count from 1, the offset in UTF-16 units.
#[derive(Clone, Copy, Deserialize)]
struct Point {
    line: u32,
    offset: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedError {
    start: Point,
    end: Point,
    text: String,
    code: Option<i64>,
    category: Option<String>,
    source: Option<String>,
    reports_unnecessary: Option<Value>,
    reports_deprecated: Option<Value>,
    #[serde(default)]
    related_information: Vec<Related>,
}

#[derive(Deserialize)]
struct Related {
    message: String,
    span: Option<Span>,
}

#[derive(Deserialize)]
struct Span {
    file: String,
    start: Point,
    end: Point,
}

pub(super) fn items(reader: &Reader<'_>, reply: Value) -> Result<Vec<Value>, QueryError> {
    let reply: Reply = reader.parse(reply, || "result".to_owned())?;
    if !reply.success {
        let message = reply.message.unwrap_or_default();
        return Err(reader.broken("result.success", message));
    }
    Ok(reply.body.into_iter().map(item).collect())
}

fn item(said: ReportedError) -> Value {
    let severity = match said.category.as_deref() {
        Some("warning") => 2,
        Some("message") => 3,
        Some("suggestion") => 4,
        _ => 1,
    };
    let is_set = |flag: &Option<Value>| *flag == Some(Value::Bool(true));
    let unnecessary = is_set(&said.reports_unnecessary).then_some(1);
    let deprecated = is_set(&said.reports_deprecated).then_some(2);
    let tags: Vec<u32> = unnecessary.into_iter().chain(deprecated).collect();
    let related = said.related_information.into_iter().filter_map(|related| {
        let span = related.span?;
        let uri = uri_of_path(Path::new(&span.file)).ok()?;
        let location = json!({"uri": uri, "range": range(span.start, span.end)});
        Some(json!({"location": location, "message": related.message}))
    });
    json!({
        "range": range(said.start, said.end),
        "severity": severity,
        "code": said.code,
        "source": said.source.unwrap_or_else(|| "typescript".to_owned()),
        "message": said.text,
        "tags": tags,
        "relatedInformation": related.collect::<Vec<Value>>(),
    })
}

fn range(start: Point, end: Point) -> Value {
    let point = |point: Point| {
        json!({
            "line": point.line.saturating_sub(1),
            "character": point.offset.saturating_sub(1),
        })
    };
    json!({"start": point(start), "end": point(end)})
}
