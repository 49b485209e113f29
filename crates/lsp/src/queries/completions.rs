//! Completions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::QueryError,
    hover,
    limits::{Listed, bounded},
    names,
    reader::{Reader, shape},
};
use crate::text::{Range, WireRange};

/// Whether the server thinks that it said everything.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    Complete,
    /// There may be more after another letter.
    Incomplete,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Completions {
    #[serde(flatten)]
    pub list: Listed<Completion>,
    pub completeness: Completeness,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertFormat {
    Plain,
    /// With placeholders such as `$1`.
    Snippet,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Completion {
    pub label: String,
    /// What it is, for example `function`.
    pub kind: Option<&'static str>,
    pub detail: Option<String>,
    pub documentation: Option<String>,
    pub insert: String,
    pub format: InsertFormat,
    /// What to replace by it, if the server says so.
    pub replace: Option<Range>,
    pub server: String,
    #[serde(skip)]
    pub(super) order: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireList {
    #[serde(default)]
    is_incomplete: bool,
    #[serde(default)]
    item_defaults: Defaults,
    items: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Defaults {
    edit_range: Option<Value>,
    insert_text_format: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireItem {
    label: String,
    kind: Option<u64>,
    detail: Option<String>,
    documentation: Option<Value>,
    sort_text: Option<String>,
    insert_text: Option<String>,
    insert_text_format: Option<u64>,
    text_edit: Option<WireEdit>,
    text_edit_text: Option<String>,
}

/// `TextEdit | InsertReplaceEdit`. Of the latter, what replaces is taken: half of a word would be left otherwise.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEdit {
    new_text: String,
    range: Option<WireRange>,
    replace: Option<WireRange>,
}

/// `CompletionItem[] | CompletionList | null`.
pub(super) fn read(reader: &mut Reader<'_>, answer: Value) -> Result<Completions, QueryError> {
    let (list, place) = match answer {
        Value::Object(_) => (reader.parse(answer, || "result".to_owned())?, "result.items"),
        other => {
            let list = WireList {
                is_incomplete: false,
                item_defaults: Defaults::default(),
                items: reader.items(other, "result")?,
            };
            (list, "result")
        }
    };
    let default_range = default_range(reader, list.item_defaults.edit_range)?;
    let default_format = list.item_defaults.insert_text_format;
    let mut items = Vec::with_capacity(list.items.len());
    for (index, value) in list.items.into_iter().enumerate() {
        let item: WireItem = reader.parse(value, || format!("{place}[{index}]"))?;
        items.push((index, item));
    }
    items.sort_by(|(_, left), (_, right)| {
        let key = |item: &WireItem| item.sort_text.clone().unwrap_or_else(|| item.label.clone());
        (key(left), &left.label).cmp(&(key(right), &right.label))
    });
    let list_of_items = Listed::first(items, reader.limits().completions).try_map(|(index, item)| {
        completion(reader, item, default_range, default_format, || {
            format!("{place}[{index}].documentation")
        })
    })?;
    Ok(Completions {
        list: list_of_items,
        completeness: if list.is_incomplete {
            Completeness::Incomplete
        } else {
            Completeness::Complete
        },
    })
}

/// `Range | { insert, replace }`.
fn default_range(reader: &Reader<'_>, value: Option<Value>) -> Result<Option<WireRange>, QueryError> {
    let place = || "result.itemDefaults.editRange".to_owned();
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(mut fields)) => {
            let range = fields.remove("replace").unwrap_or(Value::Object(fields));
            reader.parse(range, place).map(Some)
        }
        Some(other) => Err(reader.broken(place(), format!("expected a range, found {}", shape(&other)))),
    }
}

fn completion(
    reader: &Reader<'_>,
    item: WireItem,
    default_range: Option<WireRange>,
    default_format: Option<u64>,
    place: impl FnOnce() -> String,
) -> Result<Completion, QueryError> {
    let documentation = hover::documentation(reader, item.documentation, place)?;
    let (document, _) = reader.document()?;
    let (insert, range) = match item.text_edit {
        Some(edit) => (edit.new_text, edit.replace.or(edit.range)),
        None => {
            let text = item.text_edit_text.filter(|_| default_range.is_some());
            let insert = text.or(item.insert_text).unwrap_or_else(|| item.label.clone());
            (insert, default_range)
        }
    };
    let max_bytes = reader.limits().text_bytes;
    Ok(Completion {
        order: item.sort_text.unwrap_or_else(|| item.label.clone()),
        label: bounded(item.label, max_bytes),
        kind: item.kind.and_then(names::completion_kind),
        detail: item.detail.map(|detail| bounded(detail, max_bytes)),
        documentation,
        insert,
        format: match item.insert_text_format.or(default_format) {
            Some(2) => InsertFormat::Snippet,
            _ => InsertFormat::Plain,
        },
        replace: range.map(|range| reader.range(document.text, range)),
        server: reader.around.server.to_owned(),
    })
}
