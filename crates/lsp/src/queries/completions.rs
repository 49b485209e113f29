//! Completions.

use protocol::Completion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::QueryError,
    limits::{Listed, bounded},
    names,
    reader::Reader,
};

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Completions {
    /// The best first, as ranked by the server.
    #[serde(flatten)]
    pub list: Listed<Completion>,
    /// Whether the server may have more after another letter.
    pub incomplete: bool,
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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireItem {
    label: String,
    kind: Option<u64>,
    detail: Option<String>,
    sort_text: Option<String>,
    insert_text: Option<String>,
    text_edit: Option<WireEdit>,
    text_edit_text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEdit {
    new_text: String,
}

/// `CompletionItem[] | CompletionList | null`.
pub(super) fn read(reader: &Reader<'_>, answer: Value) -> Result<Completions, QueryError> {
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
    let has_default_range = list.item_defaults.edit_range.is_some();
    let mut items = Vec::with_capacity(list.items.len());
    for (index, value) in list.items.into_iter().enumerate() {
        let item: WireItem = reader.parse(value, || format!("{place}[{index}]"))?;
        items.push(item);
    }
    items.sort_by(|left, right| {
        let key = |item: &WireItem| item.sort_text.clone().unwrap_or_else(|| item.label.clone());
        (key(left), &left.label).cmp(&(key(right), &right.label))
    });
    Ok(Completions {
        list: Listed::first(items, reader.limits().completions)
            .map(|item| completion(reader, item, has_default_range)),
        incomplete: list.is_incomplete,
    })
}

fn completion(reader: &Reader<'_>, item: WireItem, has_default_range: bool) -> Completion {
    let insert_text = match item.text_edit {
        Some(edit) => Some(edit.new_text),
        None => {
            let text = item.text_edit_text.filter(|_| has_default_range);
            text.or(item.insert_text)
        }
    };
    let max_bytes = reader.limits().text_bytes;
    Completion {
        insert_text: insert_text.filter(|text| *text != item.label),
        label: bounded(item.label, max_bytes),
        kind: item.kind.and_then(names::completion_kind).map(str::to_owned),
        detail: item.detail.map(|detail| bounded(detail, max_bytes)),
    }
}
