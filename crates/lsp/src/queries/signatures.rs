//! Signatures of a call.

use protocol::Signature;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{error::QueryError, hover, limits::bounded, reader::Reader};
use crate::text::PositionEncoding;

#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Signatures {
    pub signatures: Vec<Signature>,
    /// The index of the best match, from 0; `None` if there are no signatures.
    pub active: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireHelp {
    signatures: Vec<WireSignature>,
    active_signature: Option<u32>,
    active_parameter: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSignature {
    label: String,
    documentation: Option<Value>,
    #[serde(default)]
    parameters: Option<Vec<WireParameter>>,
    active_parameter: Option<u32>,
}

#[derive(Deserialize)]
struct WireParameter {
    label: Value,
}

/// `SignatureHelp | null`.
pub(super) fn read(reader: &mut Reader<'_>, answer: Value) -> Result<Signatures, QueryError> {
    if answer.is_null() {
        return Ok(Signatures::default());
    }
    let help: WireHelp = reader.parse(answer, || "result".to_owned())?;
    let mut signatures = Vec::with_capacity(help.signatures.len());
    for (index, signature) in help.signatures.into_iter().enumerate() {
        let place = format!("result.signatures[{index}]");
        signatures.push(read_signature(reader, signature, help.active_parameter, &place)?);
    }
    // An index out of range means the first, per the protocol.
    let active = help.active_signature.unwrap_or(0);
    let first = signatures.first().map(|_| 0);
    Ok(Signatures {
        active: Some(active)
            .filter(|active| is_below(*active, signatures.len()))
            .or(first),
        signatures,
    })
}

fn read_signature(
    reader: &Reader<'_>,
    signature: WireSignature,
    active: Option<u32>,
    place: &str,
) -> Result<Signature, QueryError> {
    let mut parameters = Vec::new();
    for (index, parameter) in signature.parameters.into_iter().flatten().enumerate() {
        let label = match &parameter.label {
            Value::String(label) => label.clone(),
            // Offsets into the label, always in 16-bit units, whatever was agreed on for documents.
            Value::Array(offsets) => piece(&signature.label, offsets).ok_or_else(|| {
                reader.broken(
                    format!("{place}.parameters[{index}].label"),
                    "expected two offsets",
                )
            })?,
            _ => {
                let problem = "expected a string or two offsets";
                return Err(reader.broken(format!("{place}.parameters[{index}].label"), problem));
            }
        };
        parameters.push(label);
    }
    let active = signature
        .active_parameter
        .or(active)
        .filter(|active| is_below(*active, parameters.len()));
    let documentation = hover::documentation(reader, signature.documentation, || {
        format!("{place}.documentation")
    })?;
    Ok(Signature {
        label: bounded(signature.label, reader.limits().text_bytes),
        documentation,
        parameters,
        active_parameter: active,
    })
}

fn is_below(index: u32, length: usize) -> bool {
    usize::try_from(index).is_ok_and(|index| index < length)
}

fn piece(label: &str, offsets: &[Value]) -> Option<String> {
    let [start, end] = offsets else { return None };
    let offset = |value: &Value| {
        let units = usize::try_from(value.as_u64()?).ok()?;
        Some(PositionEncoding::Utf16.bytes(label, units))
    };
    label.get(offset(start)?..offset(end)?).map(str::to_owned)
}
