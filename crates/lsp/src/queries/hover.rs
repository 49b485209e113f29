//! Texts that a server writes for people: hovers and documentation.

use protocol::Range;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::QueryError,
    limits::bounded,
    reader::{Reader, shape},
};
use crate::text::WireRange;

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Hover {
    /// Markdown or plain text.
    pub text: String,
    pub range: Option<Range>,
}

#[derive(Deserialize)]
struct WireHover {
    contents: Value,
    range: Option<WireRange>,
}

/// `Hover | null`. A hover without text counts as `null`.
pub(super) fn read(reader: &mut Reader<'_>, answer: Value) -> Result<Option<Hover>, QueryError> {
    if answer.is_null() {
        return Ok(None);
    }
    let hover: WireHover = reader.parse(answer, || "result".to_owned())?;
    let text = words(reader, hover.contents, "result.contents")?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let (document, _) = reader.document()?;
    let range = hover.range.map(|range| reader.range(document.text, range));
    Ok(Some(Hover { text, range }))
}

/// `MarkupContent | MarkedString | MarkedString[]`, and a plain string.
pub(super) fn words(reader: &Reader<'_>, value: Value, place: &str) -> Result<String, QueryError> {
    let text = match value {
        Value::Array(parts) => {
            let mut texts = Vec::with_capacity(parts.len());
            for (index, part) in parts.into_iter().enumerate() {
                texts.push(piece(reader, part, || format!("{place}[{index}]"))?);
            }
            texts.retain(|text| !text.trim().is_empty());
            texts.join("\n\n")
        }
        other => piece(reader, other, || place.to_owned())?,
    };
    Ok(bounded(text, reader.limits().text_bytes))
}

pub(super) fn documentation(
    reader: &Reader<'_>,
    value: Option<Value>,
    place: impl FnOnce() -> String,
) -> Result<Option<String>, QueryError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let text = bounded(piece(reader, value, place)?, reader.limits().text_bytes);
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
    }
}

fn piece(reader: &Reader<'_>, value: Value, place: impl FnOnce() -> String) -> Result<String, QueryError> {
    #[derive(Deserialize)]
    struct Marked {
        language: Option<String>,
        value: String,
    }
    match value {
        Value::String(text) => Ok(text),
        Value::Object(_) => {
            let marked: Marked = reader.parse(value, place)?;
            Ok(match marked.language {
                Some(language) => format!("```{language}\n{}\n```", marked.value),
                None => marked.value,
            })
        }
        other => Err(reader.broken(place(), format!("expected a text, found {}", shape(&other)))),
    }
}
