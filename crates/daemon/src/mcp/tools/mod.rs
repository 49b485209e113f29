//! The tools, one file for each family.

mod context;
mod entry;
mod job;
mod lsp;
mod lsp_words;
mod overlaps;
mod plan;
mod plan_apply;
mod plan_files;
mod plan_run;

use std::sync::LazyLock;

use rmcp::model::Tool;

pub(super) use entry::{Answer, Entry, Interruption};
pub(super) use plan::overlap_line;

/// Every tool, in the order in which they are listed.
fn entries() -> impl Iterator<Item = &'static Entry> {
    let families = [
        plan::TOOLS,
        plan_files::TOOLS,
        plan_run::TOOLS,
        plan_apply::TOOLS,
        overlaps::TOOLS,
        context::TOOLS,
        job::TOOLS,
        lsp::TOOLS,
    ];
    families.into_iter().flatten()
}

/// The tool of a name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// The tools as clients see them.
pub(super) fn list() -> &'static [Tool] {
    static LIST: LazyLock<Vec<Tool>> = LazyLock::new(|| entries().map(Entry::to_wire).collect());
    &LIST
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::mcp::call::arguments;

    #[test]
    fn every_tool_says_when_to_use_it_and_takes_nothing_else() {
        let mut names = BTreeSet::new();
        for tool in list() {
            assert!(names.insert(tool.name.clone()), "{} is there twice", tool.name);
            let description = tool.description.as_deref().unwrap();
            assert!(description.contains("Example: {"), "{}: {description}", tool.name);
            assert!(
                description.len() < 700,
                "{} is long: {}",
                tool.name,
                description.len()
            );
            let schema = Value::Object((*tool.input_schema).clone());
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], json!(false), "{}", tool.name);
            for (name, property) in schema["properties"].as_object().unwrap() {
                let has_words = property["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty());
                assert!(has_words, "{}.{name} has no description", tool.name);
            }
            for hint in [
                tool.annotations.as_ref().and_then(|hints| hints.read_only_hint),
                tool.annotations.as_ref().and_then(|hints| hints.destructive_hint),
                tool.annotations.as_ref().and_then(|hints| hints.idempotent_hint),
                tool.annotations.as_ref().and_then(|hints| hints.open_world_hint),
            ] {
                assert!(hint.is_some(), "{} leaves a hint out", tool.name);
            }
        }
        assert_eq!(names.len(), 31);
    }

    #[test]
    fn examples_and_schemas_are_what_the_tools_take() {
        for entry in entries() {
            let schema = (entry.schema)();
            let properties: BTreeSet<String> = schema["properties"]
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            // Whoever names a member that there is not is told those that there are.
            let stranger = Map::from_iter([("no_such_member".to_owned(), json!(1))]);
            let told = (entry.read)(stranger).unwrap_err().to_string();
            let expected = told
                .split_once("expected ")
                .map(|(_, rest)| rest)
                .unwrap_or_default();
            let named: BTreeSet<String> = expected
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            assert_eq!(named, properties, "{}: {told}", entry.name);

            let (_, example) = entry.description.split_once("Example: ").unwrap();
            let Value::Object(example) = serde_json::from_str(example.trim_end_matches('.')).unwrap() else {
                panic!("{}: {example}", entry.name);
            };
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(example.contains_key(required.as_str().unwrap()), "{}", entry.name);
            }
            if let Err(error) = (entry.read)(example) {
                panic!("{}: {error}", entry.name);
            }
        }
        let nothing: Map<String, Value> = arguments(Map::new()).unwrap();
        assert!(nothing.is_empty());
    }
}
