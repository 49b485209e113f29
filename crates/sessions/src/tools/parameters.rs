//! A tool's parameters: one table that yields the schema for a model and validates the arguments. The MCP tools use it
//! too.
//!
//! It covers only the part of JSON Schema that the tools need: an object with strings, integers, booleans and enums.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::error::ToolError;

/// The most bytes of one string in the arguments. It's part of the turn's stream, and a larger file isn't written by
/// hand.
const TEXT_LIMIT_BYTES: usize = 4 * 1024 * 1024;
/// How similar two names must be for one to be suggested for the other.
const LIKENESS: f64 = 0.6;

/// A parameter of a tool.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The values it accepts.
    pub takes: Takes,
    /// Whether a call can omit it.
    pub need: Need,
    /// What it is, written for a model.
    pub description: Cow<'static, str>,
}

/// The values that a parameter accepts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Takes {
    /// A string.
    Text,
    /// An array of strings.
    Texts,
    /// A whole number in this range.
    Number {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// A whole number of at least `least`. Anything above `most` counts as `most`.
    Capped {
        /// The smallest.
        least: u64,
        /// The largest that makes a difference.
        most: u64,
    },
    /// A boolean.
    YesOrNo,
    /// One of these strings.
    OneOf(Vec<&'static str>),
}

/// Whether a call can omit a parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// It must be given.
    Required,
    /// It can be omitted.
    Optional,
}

/// A required parameter.
#[must_use]
pub fn required(name: &'static str, takes: Takes, description: impl Into<Cow<'static, str>>) -> Parameter {
    Parameter {
        name,
        takes,
        need: Need::Required,
        description: description.into(),
    }
}

/// An optional parameter.
#[must_use]
pub fn optional(name: &'static str, takes: Takes, description: impl Into<Cow<'static, str>>) -> Parameter {
    Parameter {
        name,
        takes,
        need: Need::Optional,
        description: description.into(),
    }
}

/// The JSON Schema of a tool's parameters.
#[must_use]
pub fn schema(parameters: &[Parameter]) -> Value {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|parameter| {
            let mut property = parameter.takes.schema();
            property["description"] = json!(parameter.description);
            (parameter.name.to_owned(), property)
        })
        .collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.need == Need::Required)
        .map(|parameter| parameter.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Validates arguments against a tool's parameters. The result has the right types: a null for an optional parameter is
/// removed, and numbers are integers.
///
/// # Errors
/// The arguments are invalid. The error says what is wrong, and what the tool accepts.
pub fn check(tool: &str, parameters: &[Parameter], arguments: Value) -> Result<Value, ToolError> {
    let mut wrong = Vec::new();
    let given = match arguments {
        Value::Object(given) => given,
        // Some models call a tool that has no required parameters with null.
        Value::Null => Map::new(),
        other => {
            wrong.push(format!(
                "the arguments must be a JSON object, not {}",
                kind_of(&other)
            ));
            return Err(bad(tool, parameters, wrong));
        }
    };
    let mut taken = Map::new();
    for (name, value) in given {
        match parameters.iter().find(|parameter| parameter.name == name) {
            None => wrong.push(unknown(&name, parameters)),
            Some(parameter) if value.is_null() && parameter.need == Need::Optional => {}
            Some(parameter) => match parameter.takes.check(value) {
                Ok(value) => drop(taken.insert(name, value)),
                Err(why) => wrong.push(format!("`{name}` {why}")),
            },
        }
    }
    for parameter in parameters {
        let is_wrong = |text: &String| text.starts_with(&format!("`{}` ", parameter.name));
        if parameter.need == Need::Required
            && !taken.contains_key(parameter.name)
            && !wrong.iter().any(is_wrong)
        {
            wrong.push(format!("`{}` is missing", parameter.name));
        }
    }
    if wrong.is_empty() {
        Ok(Value::Object(taken))
    } else {
        Err(bad(tool, parameters, wrong))
    }
}

fn bad(tool: &str, parameters: &[Parameter], wrong: Vec<String>) -> ToolError {
    let shown = |parameter: &Parameter| match parameter.need {
        Need::Required => format!("`{}` ({})", parameter.name, parameter.takes.in_words()),
        Need::Optional => format!("`{}` ({}, optional)", parameter.name, parameter.takes.in_words()),
    };
    ToolError::Arguments {
        tool: tool.to_owned(),
        wrong: wrong.join("; "),
        takes: parameters.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

fn unknown(name: &str, parameters: &[Parameter]) -> String {
    let name = super::text::one_line(name);
    let likeness = |parameter: &Parameter| strsim::normalized_damerau_levenshtein(parameter.name, &name);
    let nearest = parameters
        .iter()
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match nearest.filter(|parameter| likeness(parameter) >= LIKENESS) {
        Some(parameter) => format!("there is no `{name}`, did you mean `{}`?", parameter.name),
        None => format!("there is no `{name}`"),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Takes {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Number { least, most } | Self::Capped { least, most } => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Self::YesOrNo => json!({"type": "boolean"}),
            Self::OneOf(words) => json!({"type": "string", "enum": words}),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Texts => "an array of strings".to_owned(),
            Self::Number { least, most } | Self::Capped { least, most } => {
                format!("a whole number from {least} to {most}")
            }
            Self::YesOrNo => "true or false".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// The value, or what is wrong with it.
    fn check(&self, value: Value) -> Result<Value, String> {
        let is_good = match (self, &value) {
            (Self::Text, Value::String(text)) if text.len() > TEXT_LIMIT_BYTES => {
                return Err(format!("has more than {TEXT_LIMIT_BYTES} bytes"));
            }
            (Self::Text, Value::String(_)) | (Self::YesOrNo, Value::Bool(_)) => true,
            (Self::Texts, Value::Array(items)) => items.iter().all(Value::is_string),
            (Self::OneOf(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::Number { least, most }, Value::Number(_)) => {
                return match whole(&value).filter(|number| (least..=most).contains(&number)) {
                    Some(number) => Ok(json!(number)),
                    None => Err(format!("must be {}", self.in_words())),
                };
            }
            (Self::Capped { least, most }, Value::Number(_)) => {
                return match whole(&value).filter(|number| number >= least) {
                    Some(number) => Ok(json!(number.min(*most))),
                    None => Err(format!("must be {}", self.in_words())),
                };
            }
            _ => false,
        };
        if is_good {
            Ok(value)
        } else {
            let found = match &value {
                Value::String(text) if matches!(self, Self::OneOf(_)) => {
                    format!("`{}`", super::text::one_line(text))
                }
                other => kind_of(other).to_owned(),
            };
            Err(format!("must be {}, not {found}", self.in_words()))
        }
    }
}

/// A number without a fraction; 3.0 counts.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        // Up to here, a float represents every integer exactly.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let is_whole = number.fract() == 0.0 && (0.0..=EXACT).contains(&number);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, not negative, and exact"
        )]
        is_whole.then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<Parameter> {
        vec![
            required("path", Takes::Text, "where"),
            optional("from", Takes::Number { least: 1, most: 9 }, "since"),
            optional("literal", Takes::YesOrNo, "how"),
            optional("verb", Takes::OneOf(vec!["hover", "symbols"]), "what"),
            optional("names", Takes::Texts, "who"),
            optional("wait", Takes::Capped { least: 2, most: 5 }, "how long"),
        ]
    }

    #[test]
    fn the_schema_says_what_is_taken() {
        assert_eq!(
            schema(&table()),
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "where"},
                    "from": {"type": "integer", "minimum": 1, "maximum": 9, "description": "since"},
                    "literal": {"type": "boolean", "description": "how"},
                    "verb": {"type": "string", "enum": ["hover", "symbols"], "description": "what"},
                    "names": {"type": "array", "items": {"type": "string"}, "description": "who"},
                    "wait": {"type": "integer", "minimum": 2, "maximum": 5, "description": "how long"},
                },
                "required": ["path"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn arguments_are_taken_or_it_is_said_what_is_wrong() {
        let cases = [
            (json!({"path": "a"}), Ok(json!({"path": "a"}))),
            (
                json!({"path": "a", "from": 3.0, "literal": null, "verb": "hover"}),
                Ok(json!({"path": "a", "from": 3, "verb": "hover"})),
            ),
            (
                json!({"path": "a", "names": ["b"], "wait": 9}),
                Ok(json!({"path": "a", "names": ["b"], "wait": 5})),
            ),
            (
                json!({"path": "a", "names": [1]}),
                Err("`names` must be an array of strings, not an array"),
            ),
            (
                json!({"path": "a", "wait": -1}),
                Err("`wait` must be a whole number from 2 to 5"),
            ),
            (json!(null), Err("`path` is missing")),
            (json!({}), Err("`path` is missing")),
            (
                json!([]),
                Err("the arguments must be a JSON object, not an array"),
            ),
            (
                json!("{}"),
                Err("the arguments must be a JSON object, not a string"),
            ),
            (json!({"path": null}), Err("`path` must be a string, not null")),
            (
                json!({"pth": "a"}),
                Err("there is no `pth`, did you mean `path`?; `path` is missing"),
            ),
            (json!({"path": "a", "zzz": 1}), Err("there is no `zzz`")),
            (
                json!({"path": "a", "from": 0}),
                Err("`from` must be a whole number from 1 to 9"),
            ),
            (
                json!({"path": "a", "from": 1.5}),
                Err("`from` must be a whole number from 1 to 9"),
            ),
            (
                json!({"path": "a", "from": -1}),
                Err("`from` must be a whole number from 1 to 9"),
            ),
            (
                json!({"path": "a", "from": "1"}),
                Err("`from` must be a whole number from 1 to 9, not a string"),
            ),
            (
                json!({"path": "a", "verb": "dance"}),
                Err("`verb` must be one of hover, symbols, not `dance`"),
            ),
            (
                json!({"path": 1, "literal": "yes"}),
                Err("`literal` must be true or false, not a string; `path` must be a string, not a number"),
            ),
        ];
        for (arguments, expected) in cases {
            let found = check("tool", &table(), arguments.clone()).map_err(|error| match error {
                ToolError::Arguments { wrong, .. } => wrong,
                other => panic!("{other}"),
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{arguments}");
        }
    }

    #[test]
    fn what_is_wrong_ends_with_what_is_taken() {
        let error = check("tool", &table(), json!({})).unwrap_err().to_string();
        assert_eq!(
            error,
            "nothing was done: `path` is missing. `tool` takes `path` (a string), `from` (a whole number from 1 to 9, \
             optional), `literal` (true or false, optional), `verb` (one of hover, symbols, optional), `names` (an array of \
             strings, optional), `wait` (a whole number from 2 to 5, optional)."
        );
    }
}
