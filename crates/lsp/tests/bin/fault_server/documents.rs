//! The documents that the client has opened, and what can be said of them.

use std::{collections::BTreeMap, ops::Range};

use serde_json::{Value, json};

use crate::script::Encoding;

#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: BTreeMap<String, Document>,
}

#[derive(Debug, Default)]
struct Document {
    version: i64,
    text: String,
}

impl Documents {
    pub(crate) fn open(&mut self, params: &Value) -> Option<String> {
        let item = &params["textDocument"];
        let document = Document {
            version: item["version"].as_i64()?,
            text: item["text"].as_str()?.to_owned(),
        };
        let uri = item["uri"].as_str()?.to_owned();
        self.open.insert(uri.clone(), document);
        Some(uri)
    }

    pub(crate) fn change(&mut self, params: &Value, encoding: Encoding) -> Option<String> {
        let uri = params["textDocument"]["uri"].as_str()?;
        let document = self.open.get_mut(uri)?;
        document.version = params["textDocument"]["version"].as_i64()?;
        for change in params["contentChanges"].as_array()? {
            let text = change["text"].as_str()?;
            match change.get("range") {
                None => text.clone_into(&mut document.text),
                Some(range) => {
                    let range =
                        document.offset(&range["start"], encoding)..document.offset(&range["end"], encoding);
                    document.text.replace_range(range, text);
                }
            }
        }
        Some(uri.to_owned())
    }

    pub(crate) fn close(&mut self, params: &Value) -> Option<String> {
        let uri = params["textDocument"]["uri"].as_str()?;
        self.open.remove(uri).map(|_| uri.to_owned())
    }

    pub(crate) fn version(&self, uri: &str) -> Option<i64> {
        Some(self.open.get(uri)?.version)
    }

    /// What there is to say about a document: its version and its length.
    pub(crate) fn hover(&self, params: &Value) -> Option<String> {
        let uri = params["textDocument"]["uri"].as_str()?;
        let Document { version, text } = self.open.get(uri)?;
        Some(format!("version {version}, {} bytes", text.len()))
    }

    /// One diagnostic for each line with the word ERROR in it.
    pub(crate) fn diagnostics(&self, uri: &str, encoding: Encoding) -> Vec<Value> {
        let text = self.open.get(uri).map_or("", |document| &document.text);
        let found = text.lines().enumerate().filter_map(|(number, line)| {
            let at = line.find("ERROR")?;
            let start = encoding.units(&line[..at]);
            let end = start + encoding.units("ERROR");
            Some(json!({
                "range": {
                    "start": {"line": number, "character": start},
                    "end": {"line": number, "character": end},
                },
                "severity": 1,
                "source": "fault",
                "message": format!("line {} has an error", number + 1),
            }))
        });
        found.collect()
    }

    pub(crate) fn state(&self) -> Value {
        let documents = self.open.iter().map(|(uri, document)| {
            let state = json!({"version": document.version, "text": document.text});
            (uri.clone(), state)
        });
        Value::Object(documents.collect())
    }
}

impl Document {
    /// Where a position is in the text; behind the end of its line or of the text if it is too far.
    fn offset(&self, position: &Value, encoding: Encoding) -> usize {
        let number = position["line"].as_u64().unwrap_or_default() as usize;
        let character = position["character"].as_u64().unwrap_or_default() as usize;
        let Range { start, end } = self.line(number);
        let line = &self.text[start..end];
        let mut ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
        let within = ends.find(|at| encoding.units(&line[..*at]) >= character);
        start + within.unwrap_or(line.len())
    }

    fn line(&self, number: usize) -> Range<usize> {
        let mut start = 0;
        for line in self.text.split_inclusive('\n').take(number) {
            start += line.len();
        }
        let line = self.text[start..].lines().next().unwrap_or_default();
        start..start + line.len()
    }
}

impl Encoding {
    /// How long a text is in the units of positions.
    fn units(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Utf32 => text.chars().count(),
        }
    }
}
