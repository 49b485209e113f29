//! Callers and callees.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::QueryError,
    limits::Listed,
    locations, names,
    query::CallDirection,
    reader::{Location, Reader},
};
use crate::text::WireRange;

/// How many things may stand at one place. A name stands for one or two; more of them are not asked about.
pub(super) const MAX_ITEMS: usize = 8;

/// Something that calls, or that is called.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Call {
    pub name: String,
    /// What it is, for example `function`.
    pub kind: &'static str,
    pub detail: Option<String>,
    #[serde(flatten)]
    pub location: Location,
    pub sites: Listed<Location>,
}

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

/// `CallHierarchyItem[] | null`: what stands at the place, as the server wants to have it back.
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
            // Calls stand in the caller's file: the other one's or ours.
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
    Listed::first(found, reader.limits().calls).try_map(|(named, item, sites)| {
        Ok(Call {
            location: reader.location(&named, item.selection_range),
            sites: locations::list(reader, sites),
            name: item.name,
            kind: names::symbol_kind(item.kind),
            detail: item.detail.filter(|detail| !detail.is_empty()),
        })
    })
}
