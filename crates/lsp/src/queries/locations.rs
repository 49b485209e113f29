//! Locations: one, several, links, or `null`.

use protocol::Location;
use serde::Deserialize;
use serde_json::Value;

use super::{
    error::QueryError,
    limits::Listed,
    reader::{NamedFile, Reader, shape},
};
use crate::text::WireRange;

#[derive(Debug, Deserialize)]
pub(super) struct WireLocation {
    pub(super) uri: String,
    pub(super) range: WireRange,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLink {
    target_uri: String,
    /// Where the name of the target is; the whole target would be a page of code.
    target_selection_range: WireRange,
}

/// `Location | Location[] | LocationLink[] | null`.
pub(super) fn read(reader: &mut Reader<'_>, answer: Value) -> Result<Listed<Location>, QueryError> {
    let values = match answer {
        Value::Object(_) => vec![answer],
        other => reader.items(other, "result")?,
    };
    let mut found = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let place = || format!("result[{index}]");
        let (uri, range) = match &value {
            Value::Object(fields) if fields.contains_key("targetUri") => {
                let link: WireLink = reader.parse(value, place)?;
                (link.target_uri, link.target_selection_range)
            }
            Value::Object(_) => {
                let location: WireLocation = reader.parse(value, place)?;
                (location.uri, location.range)
            }
            other => {
                let problem = format!("expected a location, found {}", shape(other));
                return Err(reader.broken(place(), problem));
            }
        };
        found.push((reader.name(&uri), range));
    }
    Ok(list(reader, found))
}

/// Sorted, without duplicates, and cut. Only the remaining ones are looked up in their files.
pub(super) fn list(reader: &mut Reader<'_>, mut found: Vec<(NamedFile, WireRange)>) -> Listed<Location> {
    found.sort();
    found.dedup();
    let cut = Listed::first(found, reader.limits().locations);
    cut.map(|(named, range)| reader.location(&named, range))
}
