//! Whatever a model sends: no panic, a bounded answer, and an end in the stream.

use proptest::collection::{hash_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use sessions::TurnEvent;
use sessions::tools::ToolSpec;

use super::tools_kit::Bench;

/// Any JSON, of a small depth.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            hash_map(any::<String>(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Texts that are meant to do harm, or nearly make sense.
fn text() -> impl Strategy<Value = String> {
    let chosen = vec![
        "",
        ".",
        "..",
        "/",
        "//",
        "a",
        "README.md",
        "src",
        "src/main.rs",
        "src/../README.md",
        "../../../etc/passwd",
        "/etc/passwd",
        ".git/config",
        "a\0b",
        "a\nb",
        "\\",
        "\\x2e\\x2e/x",
        "*",
        "**",
        "[",
        "{",
        "(",
        "(a*)*b",
        "\\p{L}{1000}",
        "a{99999}",
        "~",
        "-",
        "--help",
        "\u{202e}",
        "\u{0}",
        "README.md/x",
        "src/main.rs/",
        "hover",
        "say x",
        "exit 1",
        ";;;",
    ];
    prop_oneof![
        3 => proptest::sample::select(chosen).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => (1..6000_usize).prop_map(|length| "a/".repeat(length)),
    ]
}

/// Arguments that nearly are what a tool takes.
fn nearly(spec: &ToolSpec) -> impl Strategy<Value = Value> + use<> {
    let properties = spec.schema["properties"].as_object().unwrap();
    let names: Vec<(String, String)> = properties
        .iter()
        .map(|(name, property)| (name.clone(), property["type"].as_str().unwrap().to_owned()))
        .collect();
    let values: Vec<_> = names
        .into_iter()
        .map(|(name, kind)| {
            let good = match kind.as_str() {
                "string" => text().prop_map(Value::from).boxed(),
                "integer" => prop_oneof![0..10_u64, any::<u64>()].prop_map(Value::from).boxed(),
                _ => any::<bool>().prop_map(Value::from).boxed(),
            };
            let value =
                prop_oneof![12 => good.prop_map(Some), 2 => Just(None), 1 => anything().prop_map(Some)];
            value.prop_map(move |value| value.map(|value| (name.clone(), value)))
        })
        .collect();
    values.prop_map(|pairs| Value::Object(pairs.into_iter().flatten().collect()))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_arguments_do_harm() {
    let bench = Bench::with(&[], &[]).await;
    let mut runner = TestRunner::deterministic();
    let mut calls = 0;
    for spec in bench.toolbox.specs() {
        for round in 0..30 {
            let arguments = if round % 6 == 0 {
                anything().new_tree(&mut runner).unwrap().current()
            } else {
                nearly(&spec).new_tree(&mut runner).unwrap().current()
            };
            // These hang or flood by intent, which other tests are about.
            let is_led = |name: &str| {
                let text = arguments[name].as_str().unwrap_or_default();
                ["hang", "flood", "meet"].iter().any(|word| text.contains(word))
            };
            if is_led("line") || is_led("verb") {
                continue;
            }
            let answer = bench.call(spec.name, arguments.clone()).await;
            calls += 1;
            assert!(answer.text.len() <= 32 * 1024, "{} {arguments}", spec.name);
            assert!(!answer.text.is_empty(), "{} {arguments}", spec.name);
            assert!(!answer.text.contains("root:x:0"), "{} {arguments}", spec.name);
        }
    }
    let events = bench.events().await;
    let ended = events
        .iter()
        .filter(|event| matches!(event, TurnEvent::ToolEnded { .. }));
    assert_eq!(ended.count(), calls);
    // The workspace itself was never touched.
    let kept = std::fs::read_to_string(bench.kit.workspace.join("README.md")).unwrap();
    assert_eq!(kept, "hello\n");
    assert_eq!(std::fs::read_dir(&bench.kit.workspace).unwrap().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_is_told_of_with_a_schema() {
    let bench = Bench::with(&[], &[]).await;
    let specs = bench.toolbox.specs();
    for spec in &specs {
        assert_eq!(spec.schema["type"], json!("object"), "{}", spec.name);
        assert_eq!(spec.schema["additionalProperties"], json!(false), "{}", spec.name);
        for (name, property) in spec.schema["properties"].as_object().unwrap() {
            let description = property["description"].as_str().unwrap();
            assert!(!description.is_empty(), "{} {name}", spec.name);
        }
        assert!(
            !spec.description.is_empty() && !spec.description.contains("  "),
            "{}",
            spec.description
        );
    }
    let verbs =
        specs.iter().find(|spec| spec.name == "language").unwrap().schema["properties"]["verb"]["enum"]
            .clone();
    assert_eq!(
        verbs,
        json!(["hover", "symbols", "fail", "flood", "hang", "meet"])
    );
}
