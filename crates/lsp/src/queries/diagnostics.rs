//! Diagnostics: what one is, and the reports that a server gives on request.

use protocol::{Diagnostic, DiagnosticSeverity, Related};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    error::QueryError,
    hover,
    limits::Listed,
    locations::WireLocation,
    reader::{NamedFile, Reader},
};
use crate::text::WireRange;

/// How many related locations of one diagnostic are shown.
const MAX_RELATED: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDiagnostic {
    range: WireRange,
    severity: Option<u64>,
    code: Option<Value>,
    source: Option<String>,
    message: Value,
    #[serde(default)]
    tags: Option<Vec<u64>>,
    #[serde(default)]
    related_information: Option<Vec<WireRelated>>,
}

#[derive(Deserialize)]
struct WireRelated {
    location: WireLocation,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
enum WireReport {
    #[serde(rename_all = "camelCase")]
    Full {
        items: Vec<Value>,
        related_documents: Option<Map<String, Value>>,
    },
    Unchanged {},
}

/// `DocumentDiagnosticReport`. Requests never name an earlier report, so the document's own report can't be
/// `unchanged`. Those of related documents can; they are skipped.
pub(super) fn read_report(reader: &mut Reader<'_>, answer: Value) -> Result<Listed<Diagnostic>, QueryError> {
    let (_, named) = reader.document()?;
    let (items, related) = match reader.parse(answer, || "result".to_owned())? {
        WireReport::Full {
            items,
            related_documents,
        } => (items, related_documents),
        WireReport::Unchanged { .. } => {
            return Err(reader.broken("result.kind", "unchanged, although no earlier report was named"));
        }
    };
    let mut found = Vec::new();
    collect(reader, &named, items, "result.items", &mut found)?;
    for (uri, report) in related.into_iter().flatten() {
        let place = format!("result.relatedDocuments[{uri:?}]");
        match reader.parse(report, || place.clone())? {
            WireReport::Full { items, .. } => {
                let named = reader.name(&uri);
                collect(reader, &named, items, &format!("{place}.items"), &mut found)?;
            }
            WireReport::Unchanged { .. } => {}
        }
    }
    Ok(list(reader, found))
}

pub(super) fn read_pushed(
    reader: &mut Reader<'_>,
    items: Vec<Value>,
) -> Result<Listed<Diagnostic>, QueryError> {
    let (_, named) = reader.document()?;
    let mut found = Vec::new();
    collect(reader, &named, items, "diagnostics", &mut found)?;
    Ok(list(reader, found))
}

struct RawDiagnostic {
    named: NamedFile,
    wire: WireDiagnostic,
    message: String,
}

fn collect(
    reader: &Reader<'_>,
    named: &NamedFile,
    items: Vec<Value>,
    place: &str,
    found: &mut Vec<RawDiagnostic>,
) -> Result<(), QueryError> {
    for (index, item) in items.into_iter().enumerate() {
        let mut wire: WireDiagnostic = reader.parse(item, || format!("{place}[{index}]"))?;
        let message = hover::words(reader, wire.message.take(), &format!("{place}[{index}].message"))?;
        found.push(RawDiagnostic {
            named: named.clone(),
            wire,
            message,
        });
    }
    Ok(())
}

fn list(reader: &mut Reader<'_>, mut found: Vec<RawDiagnostic>) -> Listed<Diagnostic> {
    found.sort_by(|left, right| {
        let place = |found: &RawDiagnostic| (found.wire.range, found.wire.severity);
        left.named
            .cmp(&right.named)
            .then_with(|| place(left).cmp(&place(right)))
            .then_with(|| left.message.cmp(&right.message))
    });
    let cut = Listed::first(found, reader.limits().diagnostics);
    let mut listed = cut.map(|found| diagnostic(reader, found));
    let before = listed.items.len();
    listed.items.dedup();
    listed.total -= before - listed.items.len();
    listed
}

fn diagnostic(reader: &mut Reader<'_>, found: RawDiagnostic) -> Diagnostic {
    let RawDiagnostic { named, wire, message } = found;
    let mut tags: Vec<u64> = wire.tags.unwrap_or_default();
    tags.sort_unstable();
    let related = wire.related_information.into_iter().flatten().take(MAX_RELATED);
    let related = related.map(|related| {
        let named = reader.name(&related.location.uri);
        Related {
            location: reader.location(&named, related.location.range),
            message: related.message,
        }
    });
    let related: Vec<Related> = related.collect();
    let location = reader.location(&named, wire.range);
    Diagnostic {
        path: location.path,
        range: location.range,
        excerpt: location.excerpt,
        severity: severity(wire.severity),
        message,
        code: wire.code.and_then(code),
        source: wire.source.unwrap_or_else(|| reader.around.server.to_owned()),
        tags: tags.into_iter().filter_map(tag).map(str::to_owned).collect(),
        related,
    }
}

/// A diagnostic without a severity is an error.
fn severity(number: Option<u64>) -> DiagnosticSeverity {
    match number {
        Some(2) => DiagnosticSeverity::Warning,
        Some(3) => DiagnosticSeverity::Information,
        Some(4) => DiagnosticSeverity::Hint,
        _ => DiagnosticSeverity::Error,
    }
}

fn tag(number: u64) -> Option<&'static str> {
    match number {
        1 => Some("unnecessary"),
        2 => Some("deprecated"),
        _ => None,
    }
}

fn code(value: Value) -> Option<String> {
    match value {
        Value::String(code) => Some(code),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    }
}
