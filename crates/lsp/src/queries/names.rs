//! Names for the protocol's numbers.

const SYMBOLS: [&str; 26] = [
    "file",
    "module",
    "namespace",
    "package",
    "class",
    "method",
    "property",
    "field",
    "constructor",
    "enum",
    "interface",
    "function",
    "variable",
    "constant",
    "string",
    "number",
    "boolean",
    "array",
    "object",
    "key",
    "null",
    "enum_member",
    "struct",
    "event",
    "operator",
    "type_parameter",
];

const COMPLETIONS: [&str; 25] = [
    "text",
    "method",
    "function",
    "constructor",
    "field",
    "variable",
    "class",
    "interface",
    "module",
    "property",
    "unit",
    "value",
    "enum",
    "keyword",
    "snippet",
    "color",
    "file",
    "reference",
    "folder",
    "enum_member",
    "constant",
    "struct",
    "event",
    "operator",
    "type_parameter",
];

/// A kind that is newer than this list is called `other`.
pub(super) fn symbol_kind(number: u64) -> &'static str {
    word(&SYMBOLS, number).unwrap_or("other")
}

pub(super) fn completion_kind(number: u64) -> Option<&'static str> {
    word(&COMPLETIONS, number)
}

/// Numbers start at 1.
fn word(words: &[&'static str], number: u64) -> Option<&'static str> {
    words.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}
