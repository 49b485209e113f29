//! Symbols of a file or of the workspace.

use protocol::Symbol;
use serde::Deserialize;
use serde_json::Value;

use super::{
    error::QueryError,
    limits::{Listed, bounded},
    names,
    reader::{NamedFile, Reader},
};
use crate::text::WireRange;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDocumentSymbol {
    name: String,
    detail: Option<String>,
    kind: u64,
    selection_range: WireRange,
    children: Option<Vec<WireDocumentSymbol>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSymbolInformation {
    name: String,
    kind: u64,
    container_name: Option<String>,
    location: WirePlace,
}

/// `Location | { uri }`.
#[derive(Deserialize)]
struct WirePlace {
    uri: String,
    range: Option<WireRange>,
}

/// A symbol that is not yet looked up in its file.
struct RawSymbol {
    named: NamedFile,
    range: Option<WireRange>,
    name: String,
    kind: u64,
    detail: Option<String>,
    container: Option<String>,
    depth: Option<u32>,
}

/// `DocumentSymbol[] | SymbolInformation[] | null`.
pub(super) fn read_document(reader: &mut Reader<'_>, answer: Value) -> Result<Listed<Symbol>, QueryError> {
    let (_, named) = reader.document()?;
    read(reader, answer, Some(&named))
}

/// `SymbolInformation[] | WorkspaceSymbol[] | null`.
pub(super) fn read_workspace(reader: &mut Reader<'_>, answer: Value) -> Result<Listed<Symbol>, QueryError> {
    read(reader, answer, None)
}

fn read(
    reader: &mut Reader<'_>,
    answer: Value,
    document: Option<&NamedFile>,
) -> Result<Listed<Symbol>, QueryError> {
    let mut found = Vec::new();
    for (index, value) in reader.items(answer, "result")?.into_iter().enumerate() {
        let place = || format!("result[{index}]");
        match document.filter(|_| value.get("location").is_none()) {
            Some(named) => {
                let symbol: WireDocumentSymbol = reader.parse(value, place)?;
                flatten(named, symbol, None, 0, &mut found);
            }
            None => {
                let symbol: WireSymbolInformation = reader.parse(value, place)?;
                found.push(RawSymbol {
                    named: reader.name(&symbol.location.uri),
                    range: symbol.location.range,
                    name: symbol.name,
                    kind: symbol.kind,
                    detail: None,
                    container: symbol.container_name.filter(|name| !name.is_empty()),
                    depth: None,
                });
            }
        }
    }
    found.sort_by(|left, right| {
        let key = |found: &RawSymbol| (found.named.clone(), found.range, found.depth);
        key(left)
            .cmp(&key(right))
            .then_with(|| left.name.cmp(&right.name))
    });
    found.dedup_by(|left, right| {
        left.named == right.named
            && left.range == right.range
            && left.name == right.name
            && left.kind == right.kind
    });
    Ok(Listed::first(found, reader.limits().symbols).map(|found| symbol(reader, found)))
}

/// A symbol, then its children. Deeply nested answers were refused by the parser.
fn flatten(
    named: &NamedFile,
    symbol: WireDocumentSymbol,
    container: Option<&str>,
    depth: u32,
    found: &mut Vec<RawSymbol>,
) {
    found.push(RawSymbol {
        named: named.clone(),
        range: Some(symbol.selection_range),
        name: symbol.name.clone(),
        kind: symbol.kind,
        detail: symbol.detail.filter(|detail| !detail.is_empty()),
        container: container.map(str::to_owned),
        depth: Some(depth),
    });
    for child in symbol.children.into_iter().flatten() {
        flatten(named, child, Some(&symbol.name), depth + 1, found);
    }
}

fn symbol(reader: &mut Reader<'_>, found: RawSymbol) -> Symbol {
    let max_bytes = reader.limits().text_bytes;
    Symbol {
        name: bounded(found.name, max_bytes),
        kind: names::symbol_kind(found.kind).to_owned(),
        detail: found.detail.map(|detail| bounded(detail, max_bytes)),
        container: found.container,
        depth: found.depth.unwrap_or_default(),
        range: found
            .range
            .map(|range| reader.location(&found.named, range).range),
        path: found.named.shown,
    }
}
