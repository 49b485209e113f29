//! The configuration formats, and the one rule for editing them: afterwards the text means the same as before, with
//! this one entry added or removed. Anything that can't be edited like this is refused.

use serde_json::{Map, Value};

use super::entry::Entry;
use super::{json, toml, yaml};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Toml,
    Yaml,
}

/// Why we don't edit a text, as half a sentence.
const TOO_UNUSUAL: &str = "its layout can't be edited without changing the rest";

impl Format {
    pub(super) fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Format::Json => json::value(text),
            Format::Toml => toml::parse(text),
            Format::Yaml => yaml::parse(text),
        }
    }

    /// The text with an entry added. A text that already has it is returned unchanged.
    pub(super) fn with(
        self,
        text: &str,
        table: &[&str],
        name: &str,
        entry: &Entry,
    ) -> Result<String, String> {
        let mut expected = self.parse(text)?;
        if find(&expected, table, name) == Some(&entry.value()) {
            return Ok(text.to_owned());
        }
        let last = table.last().copied().unwrap_or_default();
        let changed = match self {
            Format::Json => json::insert(text, table, name, entry)?,
            Format::Toml => toml::insert(&toml::remove(text, last, name)?, last, name, entry)?,
            Format::Yaml => yaml::insert(&yaml::remove(text, last, name), last, name, entry),
        };
        let mut place = &mut expected;
        for step in table.iter().copied().chain([name]) {
            let object = place.as_object_mut().ok_or(TOO_UNUSUAL)?;
            place = object.entry(step).or_insert_with(|| Value::Object(Map::new()));
        }
        *place = entry.value();
        self.checked(changed, &expected)
    }

    pub(super) fn without(self, text: &str, table: &[&str], name: &str) -> Result<String, String> {
        let mut expected = self.parse(text)?;
        if find(&expected, table, name).is_none() {
            return Ok(text.to_owned());
        }
        let last = table.last().copied().unwrap_or_default();
        let changed = match self {
            Format::Json => json::remove(text, table, name)?,
            Format::Toml => toml::remove(text, last, name)?,
            Format::Yaml => yaml::remove(text, last, name),
        };
        let mut place = &mut expected;
        for step in table {
            place = place.get_mut(step).ok_or(TOO_UNUSUAL)?;
        }
        if let Some(object) = place.as_object_mut() {
            object.remove(name);
        }
        self.checked(changed, &expected)
    }

    /// The entry alone, as it would look in an otherwise empty file.
    pub(super) fn piece(self, table: &[&str], name: &str, entry: &Entry) -> String {
        let last = table.last().copied().unwrap_or_default();
        match self {
            Format::Json => json::insert("", table, name, entry).unwrap_or_default(),
            Format::Toml => toml::piece(last, name, entry),
            Format::Yaml => yaml::insert("", last, name, entry),
        }
    }

    fn checked(self, changed: String, expected: &Value) -> Result<String, String> {
        let means = self.parse(&changed).map(without_empty);
        if means.as_ref() == Ok(&without_empty(expected.clone())) {
            Ok(changed)
        } else {
            Err(TOO_UNUSUAL.to_owned())
        }
    }
}

pub(super) fn find<'a>(value: &'a Value, table: &[&str], name: &str) -> Option<&'a Value> {
    let mut steps = table.iter().copied().chain([name]);
    steps.try_fold(value, |value, step| value.get(step))
}

/// To every client, an empty table at the top means the same as a missing one.
fn without_empty(mut value: Value) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, member| member.as_object().is_none_or(|members| !members.is_empty()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::entry::Field;
    use super::*;

    fn entry() -> Entry {
        Entry(vec![("command", Field::Text("c".to_owned()))])
    }

    #[test]
    fn what_would_change_more_than_the_entry_is_refused() {
        for (format, text) in [
            (Format::Yaml, "t: {o: {a: 1}}\n"),
            (Format::Yaml, "t:\n- o\n"),
            (Format::Yaml, "t: &anchor\n  o: 1\n"),
            (Format::Yaml, "- 1\n"),
            (Format::Json, "{\"t\": []}"),
            (Format::Toml, "t = 1\n"),
            (Format::Toml, "[[t]]\na = 1\n"),
        ] {
            let found = format.with(text, &["t"], "n", &entry());
            assert!(found.is_err(), "{format:?} {text}: {found:?}");
        }
        // One of the two would remain.
        let twice = "{\"t\": {\"n\": 1, \"n\": 2}}";
        let refused = Format::Json.without(twice, &["t"], "n");
        assert_eq!(refused, Err(TOO_UNUSUAL.to_owned()));
    }

    #[test]
    fn twice_is_once_and_out_is_out() {
        for format in [Format::Json, Format::Toml, Format::Yaml] {
            let once = format.with("", &["t"], "n", &entry()).unwrap();
            assert_eq!(once, format.piece(&["t"], "n", &entry()), "{format:?}");
            assert_eq!(
                format.with(&once, &["t"], "n", &entry()).unwrap(),
                once,
                "{format:?}"
            );
            let other = Entry(vec![("command", Field::Text("d".to_owned()))]);
            let replaced = format.with(&once, &["t"], "n", &other).unwrap();
            assert_eq!(replaced, once.replace("\"c\"", "\"d\""), "{format:?}");
            let without = format.without(&replaced, &["t"], "n").unwrap();
            let value = format.parse(&without).unwrap();
            assert_eq!(find(&value, &["t"], "n"), None, "{format:?}: {without}");
            assert_eq!(
                format.without(&without, &["t"], "n").unwrap(),
                without,
                "{format:?}"
            );
        }
    }
}
