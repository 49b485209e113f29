//! The tools, with one file for each family.
//!
//! The tools of sessions (`sessions::tools`) do the same in the plan of their turn. Both share the tables of
//! parameters, the limits and the hints. Names and arguments differ, because clients and stored sessions depend on
//! them.

mod context;
mod entry;
mod job;
mod lsp;
mod overlaps;
mod plan;
mod plan_apply;
mod plan_files;
mod plan_run;

use std::sync::LazyLock;

use rmcp::model::Tool;

pub(in crate::mcp) use entry::{Answer, Entry};
pub(in crate::mcp) use plan::overlap_line;

/// Every tool, in list order.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let families = [
        plan::tools(),
        plan_files::tools(),
        plan_run::tools(),
        plan_apply::tools(),
        overlaps::tools(),
        context::tools(),
        job::tools(),
        lsp::tools(),
    ];
    families.into_iter().flatten().collect()
});

pub(super) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// The tools as clients see them.
pub(super) fn list() -> &'static [Tool] {
    static LIST: LazyLock<Vec<Tool>> = LazyLock::new(|| ENTRIES.iter().map(Entry::to_wire).collect());
    &LIST
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};
    use sessions::tools::{Need, Takes, check};

    use super::*;

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

    fn example(takes: &Takes) -> Value {
        match takes {
            Takes::Text => json!("text"),
            Takes::Texts => json!(["text"]),
            Takes::Number { most, .. } | Takes::Capped { most, .. } => json!(most),
            Takes::YesOrNo => json!(true),
            Takes::OneOf(words) => json!(words[0]),
        }
    }

    #[test]
    fn examples_and_tables_are_what_the_tools_take() {
        for entry in ENTRIES.iter() {
            let given = |without: Option<&str>| {
                let parameters = entry.parameters.iter().filter(|one| Some(one.name) != without);
                Value::Object(
                    parameters
                        .map(|one| (one.name.to_owned(), example(&one.takes)))
                        .collect(),
                )
            };
            assert!((entry.takes)(given(None)), "{}", entry.name);
            let mut stranger = given(None);
            stranger["no_such_member"] = json!(1);
            assert!(!(entry.takes)(stranger), "{}", entry.name);
            for parameter in &entry.parameters {
                let taken = check(&entry.name, &entry.parameters, given(Some(parameter.name)));
                let taken = taken.is_ok_and(|given| (entry.takes)(given));
                assert_eq!(
                    taken,
                    parameter.need == Need::Optional,
                    "{} {}",
                    entry.name,
                    parameter.name
                );
            }
            let (_, example) = entry.description.split_once("Example: ").unwrap();
            let example = serde_json::from_str(example.trim_end_matches('.')).unwrap();
            match check(&entry.name, &entry.parameters, example) {
                Ok(example) => assert!((entry.takes)(example), "{}", entry.name),
                Err(error) => panic!("{}: {error}", entry.name),
            }
        }
    }
}
