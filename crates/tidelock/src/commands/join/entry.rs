//! An entry of a client's configuration: plain data, in the order people read it, which can be written in three
//! formats.

use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry(pub(crate) Vec<(&'static str, Field)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Text(String),
    Flag(bool),
    Number(u32),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl Entry {
    pub(crate) fn value(&self) -> Value {
        let member = |(name, field): &(&'static str, Field)| ((*name).to_owned(), field.value());
        Value::Object(self.0.iter().map(member).collect())
    }

    /// JSON on several lines. All but the first start with `margin`.
    pub(crate) fn json(&self, margin: &str, step: &str, newline: &str) -> String {
        let inner = format!("{margin}{step}");
        let lines: Vec<String> = self
            .0
            .iter()
            .map(|(name, field)| format!("{inner}{}: {}", quoted(name), field.json(&inner, step, newline)))
            .collect();
        let lines = lines.join(&format!(",{newline}"));
        format!("{{{newline}{lines}{newline}{margin}}}")
    }

    /// YAML on its own lines, each starting with `margin`.
    pub(crate) fn yaml(&self, margin: &str, step: &str, newline: &str) -> String {
        let mut lines = String::new();
        for (name, field) in &self.0 {
            let below = |lines: Vec<String>| {
                let lines = lines.iter().map(|line| format!("{newline}{margin}{step}{line}"));
                lines.collect::<String>()
            };
            let value = match field {
                Field::Text(text) => format!(" {}", quoted(text)),
                Field::Flag(flag) => format!(" {flag}"),
                Field::Number(number) => format!(" {number}"),
                Field::List(items) if items.is_empty() => " []".to_owned(),
                Field::Pairs(pairs) if pairs.is_empty() => " {}".to_owned(),
                Field::List(items) => below(items.iter().map(|item| format!("- {}", quoted(item))).collect()),
                Field::Pairs(pairs) => {
                    let line =
                        |(name, text): &(String, String)| format!("{}: {}", quoted(name), quoted(text));
                    below(pairs.iter().map(line).collect())
                }
            };
            lines.push_str(&format!("{margin}{name}:{value}{newline}"));
        }
        lines
    }
}

impl Field {
    fn value(&self) -> Value {
        match self {
            Field::Text(text) => Value::from(text.as_str()),
            Field::Flag(flag) => Value::from(*flag),
            Field::Number(number) => Value::from(*number),
            Field::List(items) => Value::from(items.as_slice()),
            Field::Pairs(pairs) => {
                let member = |(name, text): &(String, String)| (name.clone(), Value::from(text.as_str()));
                Value::Object(pairs.iter().map(member).collect::<Map<String, Value>>())
            }
        }
    }

    fn json(&self, margin: &str, step: &str, newline: &str) -> String {
        match self {
            Field::Pairs(pairs) if !pairs.is_empty() => {
                let inner = format!("{margin}{step}");
                let line =
                    |(name, text): &(String, String)| format!("{inner}{}: {}", quoted(name), quoted(text));
                let lines: Vec<String> = pairs.iter().map(line).collect();
                let lines = lines.join(&format!(",{newline}"));
                format!("{{{newline}{lines}{newline}{margin}}}")
            }
            Field::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                format!("[{}]", items.join(", "))
            }
            _ => self.value().to_string(),
        }
    }
}

/// A JSON string literal. YAML accepts it too.
pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_written_in_order_and_read_back_the_same() {
        let entry = Entry(vec![
            ("type", Field::Text("stdio".to_owned())),
            ("enabled", Field::Flag(true)),
            ("timeout", Field::Number(300)),
            (
                "args",
                Field::List(vec!["mcp".to_owned(), "a \"b\": #c".to_owned()]),
            ),
            ("none", Field::List(Vec::new())),
            ("env", Field::Pairs(vec![("A".to_owned(), "/b c".to_owned())])),
            ("empty", Field::Pairs(Vec::new())),
        ]);
        let expected = json!({
            "type": "stdio", "enabled": true, "timeout": 300, "args": ["mcp", "a \"b\": #c"], "none": [],
            "env": { "A": "/b c" }, "empty": {},
        });
        assert_eq!(entry.value(), expected);
        let text = entry.json("  ", "  ", "\n");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
        assert!(
            text.starts_with("{\n    \"type\": \"stdio\",\n    \"enabled\": true,"),
            "{text}"
        );
        let text = entry.yaml("  ", "  ", "\n");
        assert_eq!(super::super::yaml::parse(&text).unwrap(), expected, "{text}");
    }
}
