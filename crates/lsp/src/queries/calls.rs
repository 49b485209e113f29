//! Callers and callees.

use protocol::{Call, CallDirection};
use serde::Deserialize;
use serde_json::Value;

use super::{error::QueryError, limits::Listed, locations, names, reader::Reader};
use crate::text::WireRange;

/// How many call hierarchy items of one position are queried. A name usually has one or two.
pub(super) const MAX_ITEMS: usize = 8;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireItem {
    name: String,
    kind: u64,
    detail: Option<String>,
    uri: String,
    selection_range: WireRange,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireIncoming {
    from: WireItem,
    from_ranges: Vec<WireRange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOutgoing {
    to: WireItem,
    from_ranges: Vec<WireRange>,
}

/// `CallHierarchyItem[] | null`, to be sent back to the server.
pub(super) fn prepared(reader: &Reader<'_>, answer: Value) -> Result<Vec<Value>, QueryError> {
    let mut items = reader.items(answer, "result")?;
    for (index, item) in items.iter().enumerate() {
        let _checked: WireItem = reader.parse(item.clone(), || format!("result[{index}]"))?;
    }
    items.truncate(MAX_ITEMS);
    Ok(items)
}

/// `CallHierarchyIncomingCall[] | CallHierarchyOutgoingCall[] | null`, one answer for each item.
pub(super) fn read(
    reader: &mut Reader<'_>,
    direction: CallDirection,
    items: &[Value],
    answers: Vec<Value>,
) -> Result<Listed<Call>, QueryError> {
    let mut found = Vec::new();
    for (item, answer) in items.iter().zip(answers) {
        let item: WireItem = reader.parse(item.clone(), || "item".to_owned())?;
        let item = reader.name(&item.uri);
        for (index, value) in reader.items(answer, "result")?.into_iter().enumerate() {
            let place = || format!("result[{index}]");
            let (other, ranges) = match direction {
                CallDirection::Incoming => {
                    let call: WireIncoming = reader.parse(value, place)?;
                    (call.from, call.from_ranges)
                }
                CallDirection::Outgoing => {
                    let call: WireOutgoing = reader.parse(value, place)?;
                    (call.to, call.from_ranges)
                }
            };
            let named = reader.name(&other.uri);
            // Calls are in the caller's file: the other one's or ours.
            let caller = match direction {
                CallDirection::Incoming => &named,
                CallDirection::Outgoing => &item,
            };
            let sites = ranges.into_iter().map(|range| (caller.clone(), range)).collect();
            found.push((named, other, sites));
        }
    }
    found.sort_by(|(left, left_item, _), (right, right_item, _)| {
        (left, left_item.selection_range, &left_item.name).cmp(&(
            right,
            right_item.selection_range,
            &right_item.name,
        ))
    });
    let cut = Listed::first(found, reader.limits().calls);
    Ok(cut.map(|(named, item, sites)| Call {
        location: reader.location(&named, item.selection_range),
        calls: locations::list(reader, sites).map(|site| site.range).items,
        name: item.name,
        kind: names::symbol_kind(item.kind).to_owned(),
        detail: item.detail.filter(|detail| !detail.is_empty()),
    }))
}
