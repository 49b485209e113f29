//! Diagnostics: what one is, and the reports that a server gives on request.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    error::QueryError,
    hover,
    limits::Listed,
    locations::WireLocation,
    reader::{Location, Named, Reader},
};
use crate::text::WireRange;

/// How many related places of one diagnostic are shown.
const MAX_RELATED: usize = 20;

/// How bad it is. One that the server says nothing about is an error.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticTag {
    /// The code is not needed.
    Unnecessary,
    Deprecated,
}

/// Another place that has to do with it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Related {
    #[serde(flatten)]
    pub location: Location,
    pub message: String,
}

/// Something that a server says about a piece of code.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Diagnostic {
    #[serde(flatten)]
    pub location: Location,
    pub severity: Severity,
    pub message: String,
    pub code: Option<String>,
    pub code_link: Option<String>,
    /// Which part of the server says it, for example `rustc`.
    pub source: Option<String>,
    pub tags: Vec<DiagnosticTag>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    pub server: String,
    /// The version of the document that it is for, if it is for the document that was asked about.
    pub version: Option<i32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDiagnostic {
    range: WireRange,
    severity: Option<u64>,
    code: Option<Value>,
    code_description: Option<WireLink>,
    source: Option<String>,
    message: Value,
    #[serde(default)]
    tags: Option<Vec<u64>>,
    #[serde(default)]
    related_information: Option<Vec<WireRelated>>,
}

#[derive(Deserialize)]
struct WireLink {
    href: String,
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

/// `DocumentDiagnosticReport`. Since no earlier report is ever named in a request, the document's own report cannot be
/// 'unchanged'. Those of other documents can, and say nothing then.
pub(super) fn read_report(reader: &mut Reader<'_>, answer: Value) -> Result<Listed<Diagnostic>, QueryError> {
    let (document, named) = reader.document()?;
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
    collect(
        reader,
        &named,
        Some(document.version),
        items,
        "result.items",
        &mut found,
    )?;
    for (uri, report) in related.into_iter().flatten() {
        let place = format!("result.relatedDocuments[{uri:?}]");
        match reader.parse(report, || place.clone())? {
            WireReport::Full { items, .. } => {
                let named = reader.name(&uri);
                collect(reader, &named, None, items, &format!("{place}.items"), &mut found)?;
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
    let (document, named) = reader.document()?;
    let mut found = Vec::new();
    collect(
        reader,
        &named,
        Some(document.version),
        items,
        "diagnostics",
        &mut found,
    )?;
    Ok(list(reader, found))
}

struct RawDiagnostic {
    named: Named,
    version: Option<i32>,
    wire: WireDiagnostic,
    message: String,
}

fn collect(
    reader: &Reader<'_>,
    named: &Named,
    version: Option<i32>,
    items: Vec<Value>,
    place: &str,
    found: &mut Vec<RawDiagnostic>,
) -> Result<(), QueryError> {
    for (index, item) in items.into_iter().enumerate() {
        let mut wire: WireDiagnostic = reader.parse(item, || format!("{place}[{index}]"))?;
        let message = hover::words(reader, wire.message.take(), &format!("{place}[{index}].message"))?;
        found.push(RawDiagnostic {
            named: named.clone(),
            version,
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
    let mut listed = Listed {
        items: cut
            .items
            .into_iter()
            .map(|found| diagnostic(reader, found))
            .collect(),
        total: cut.total,
        truncated: cut.truncated,
    };
    let before = listed.items.len();
    listed.items.dedup();
    listed.total -= before - listed.items.len();
    listed
}

fn diagnostic(reader: &mut Reader<'_>, found: RawDiagnostic) -> Diagnostic {
    let RawDiagnostic {
        named,
        version,
        wire,
        message,
    } = found;
    let mut tags: Vec<DiagnosticTag> = wire.tags.into_iter().flatten().filter_map(tag).collect();
    tags.sort();
    let related = wire.related_information.into_iter().flatten().take(MAX_RELATED);
    let related = related.map(|related| Related {
        location: {
            let named = reader.name(&related.location.uri);
            reader.location(&named, related.location.range)
        },
        message: related.message,
    });
    let related: Vec<Related> = related.collect();
    Diagnostic {
        location: reader.location(&named, wire.range),
        severity: severity(wire.severity),
        message,
        code: wire.code.and_then(code),
        code_link: wire.code_description.map(|link| link.href),
        source: wire.source,
        tags,
        related,
        server: reader.around.server.to_owned(),
        version,
    }
}

fn severity(number: Option<u64>) -> Severity {
    match number {
        Some(2) => Severity::Warning,
        Some(3) => Severity::Information,
        Some(4) => Severity::Hint,
        _ => Severity::Error,
    }
}

fn tag(number: u64) -> Option<DiagnosticTag> {
    match number {
        1 => Some(DiagnosticTag::Unnecessary),
        2 => Some(DiagnosticTag::Deprecated),
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
