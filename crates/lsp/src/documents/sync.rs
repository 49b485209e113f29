//! Which document notifications a server wants.

use serde_json::Value;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenClose {
    Told,
    Untold,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChangeSync {
    /// Not at all.
    None,
    Full,
    Incremental,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SaveSync {
    /// Not at all.
    None,
    WithoutText,
    WithText,
}

/// The capability `textDocumentSync`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DocumentSync {
    pub open_close: OpenClose,
    pub change: ChangeSync,
    pub save: SaveSync,
}

impl DocumentSync {
    /// Reads the capability: absent, a number, or options.
    ///
    /// A number is the old form: a server that wants changes also wants opening, closing and saving. A server that
    /// specifies nothing still gets opening and closing: some register for it late or never, and all accept it.
    pub fn from_capability(capability: Option<&Value>) -> Self {
        match capability {
            Some(Value::Number(number)) => Self::from_number(number.as_u64()),
            Some(Value::Object(options)) => Self {
                open_close: match options.get("openClose").and_then(Value::as_bool) {
                    Some(true) => OpenClose::Told,
                    Some(false) | None => OpenClose::Untold,
                },
                change: change(options.get("change").and_then(Value::as_u64)),
                save: match options.get("save") {
                    Some(Value::Bool(true)) => SaveSync::WithoutText,
                    Some(Value::Object(save)) => match save.get("includeText") {
                        Some(Value::Bool(true)) => SaveSync::WithText,
                        _ => SaveSync::WithoutText,
                    },
                    _ => SaveSync::None,
                },
            },
            _ => Self {
                open_close: OpenClose::Told,
                change: ChangeSync::Full,
                save: SaveSync::None,
            },
        }
    }

    fn from_number(number: Option<u64>) -> Self {
        match change(number) {
            ChangeSync::None => Self {
                open_close: OpenClose::Untold,
                change: ChangeSync::None,
                save: SaveSync::None,
            },
            change => Self {
                open_close: OpenClose::Told,
                change,
                save: SaveSync::WithoutText,
            },
        }
    }
}

fn change(number: Option<u64>) -> ChangeSync {
    match number {
        Some(1) => ChangeSync::Full,
        Some(2) => ChangeSync::Incremental,
        _ => ChangeSync::None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_the_capability_is_read() {
        let sync = |open_close, change, save| DocumentSync {
            open_close,
            change,
            save,
        };
        use ChangeSync::{Full, Incremental};
        use OpenClose::{Told, Untold};
        let cases = [
            (None, sync(Told, Full, SaveSync::None)),
            (Some(json!(null)), sync(Told, Full, SaveSync::None)),
            (Some(json!(0)), sync(Untold, ChangeSync::None, SaveSync::None)),
            (Some(json!(1)), sync(Told, Full, SaveSync::WithoutText)),
            (Some(json!(2)), sync(Told, Incremental, SaveSync::WithoutText)),
            (Some(json!({})), sync(Untold, ChangeSync::None, SaveSync::None)),
            (
                Some(json!({"openClose": true, "change": 2, "save": true})),
                sync(Told, Incremental, SaveSync::WithoutText),
            ),
            (
                Some(json!({"openClose": true, "change": 1, "save": {"includeText": true}})),
                sync(Told, Full, SaveSync::WithText),
            ),
            (
                Some(json!({"openClose": true, "change": 1, "save": {}})),
                sync(Told, Full, SaveSync::WithoutText),
            ),
            (
                Some(json!({"openClose": true, "change": 1, "save": false})),
                sync(Told, Full, SaveSync::None),
            ),
        ];
        for (capability, expected) in cases {
            let read = DocumentSync::from_capability(capability.as_ref());
            assert_eq!(read, expected, "{capability:?}");
        }
    }
}
