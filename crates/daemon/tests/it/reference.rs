//! `docs/reference/http.md`, made from the description of the interface.
//!
//! The file is committed, and this test fails when it is not what is made here; `cargo xtask docs` writes it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::{env, fs, path::Path};

use serde_json::{Map, Value};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

const INTRODUCTION: &str = "\
# HTTP reference

This page is made from the description of the interface (`/openapi.json`, kept as [openapi.json](../openapi.json)) by \
`cargo xtask docs`; do not change it by hand.

The daemon answers on a Unix socket and on a loopback address; `tidelock status` names both. Every path below `/v1` wants \
the token of the daemon, which is in a file that only you can read:

```sh
api() { curl -sS --unix-socket \"$XDG_RUNTIME_DIR/tidelock/tidelock.sock\" \\
  -H \"Authorization: Bearer $(cat ~/.local/state/tidelock/token)\" \"$@\"; }
api http://localhost/v1/status
```

The examples below use this function. Bodies are JSON, and a field that nobody knows is refused. An error is a problem \
(RFC 9457) with a stable `code`; [Errors](../errors.md) has them all. A stream is `text/event-stream`: each event has its \
number as its `id`, and `Last-Event-ID` goes on after one.
";

#[test]
fn the_committed_reference_of_the_interface_is_current() {
    let document: Value = serde_json::from_str(&daemon::openapi_json().unwrap()).unwrap();
    let current = page(&document);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/http.md");
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &current).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == current,
        "docs/reference/http.md is not what the daemon serves; run `cargo xtask docs` and look at `git diff`"
    );
}

/// One route with one method.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

impl Operation<'_> {
    fn heading(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }
}

fn page(document: &Value) -> String {
    let tags: Vec<(&str, &str)> = list(&document["tags"])
        .map(|tag| (text(&tag["name"]), text(&tag["description"])))
        .collect();
    let operations = operations(document);
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| group | what it is about |\n|---|---|\n");
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for (tag, description) in &tags {
        writeln!(page, "| [{tag}](#{tag}) | {description} |").unwrap();
        used.insert(tag);
    }
    for operation in &operations {
        assert!(
            used.contains(tag_of(operation)),
            "no group for {}",
            operation.heading()
        );
    }
    for (tag, description) in tags {
        writeln!(page, "\n## {tag}\n\n{description}").unwrap();
        for operation in operations.iter().filter(|operation| tag_of(operation) == tag) {
            page.push_str(&section(operation));
        }
    }
    page.push_str("\n## Types\n");
    for (name, schema) in map(&document["components"]["schemas"]) {
        page.push_str(&schema_section(name, schema));
    }
    page
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in map(&document["paths"]) {
        for method in METHODS {
            if let Some(value) = item.get(method) {
                found.push(Operation { method, path, value });
            }
        }
    }
    found
}

fn tag_of<'a>(operation: &Operation<'a>) -> &'a str {
    text(&operation.value["tags"][0])
}

fn section(operation: &Operation<'_>) -> String {
    let value = operation.value;
    let words = [text(&value["summary"]), text(&value["description"])];
    let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
    let mut page = format!("\n### {}\n\n{}\n", operation.heading(), words.join("\n\n"));
    let parameters: Vec<&Value> = list(&value["parameters"]).collect();
    if !parameters.is_empty() {
        page.push_str("\n| parameter | in | type | meaning |\n|---|---|---|---|\n");
        for parameter in &parameters {
            let required = match (parameter["required"].as_bool(), text(&parameter["in"])) {
                (Some(true), "query" | "header") => ", required",
                _ => "",
            };
            let row = [
                format!("`{}`", text(&parameter["name"])),
                text(&parameter["in"]).to_owned(),
                format!("{}{required}", kind(&parameter["schema"])),
                text(&parameter["description"]).to_owned(),
            ];
            writeln!(page, "| {} |", row.map(|text| cell(&text)).join(" | ")).unwrap();
        }
    }
    for (media, body) in map(&value["requestBody"]["content"]) {
        writeln!(page, "\nBody ({media}): {}", kind(&body["schema"])).unwrap();
    }
    page.push_str("\n| answer | what |\n|---|---|\n");
    for (status, answer) in map(&value["responses"]) {
        let kinds: BTreeSet<String> = map(&answer["content"])
            .map(|(media, body)| match body.get("schema") {
                Some(schema) => kind(schema),
                None => format!("`{media}`"),
            })
            .filter(|kind| kind != "[Problem](#problem)")
            .collect();
        let kinds: Vec<String> = kinds.into_iter().collect();
        let kinds = match kinds.is_empty() {
            true => String::new(),
            false => format!("{}: ", kinds.join(" or ")),
        };
        let description = codes(text(&answer["description"]), status);
        writeln!(page, "| {status} | {} |", cell(&format!("{kinds}{description}"))).unwrap();
    }
    page.push_str(&example(operation));
    page
}

/// The codes of an error lead to where they are explained.
fn codes(description: &str, status: &str) -> String {
    if !status.starts_with(['4', '5']) {
        return description.to_owned();
    }
    let parts = description
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            1 if api_code(part) => format!("[`{part}`](../errors.md#{part}-{status})"),
            1 => format!("`{part}`"),
            _ => part.to_owned(),
        });
    parts.collect()
}

fn api_code(word: &str) -> bool {
    protocol::ErrorCode::ALL.iter().any(|code| code.as_str() == word)
}

fn example(operation: &Operation<'_>) -> String {
    let value = operation.value;
    let is_plain = operation.method == "get" && value["security"].is_null();
    let body = map(&value["requestBody"]["content"]).next();
    if !is_plain && body.is_none() {
        return String::new();
    }
    let required = list(&value["parameters"]).filter(|parameter| {
        text(&parameter["in"]) == "query" && parameter["required"].as_bool() == Some(true)
    });
    let query: Vec<String> = required
        .map(|parameter| format!("{}=…", text(&parameter["name"])))
        .collect();
    let query = match query.is_empty() {
        true => String::new(),
        false => format!("?{}", query.join("&")),
    };
    let address = format!("http://localhost{}{query}", operation.path);
    // Quoted, because of what stands for something in the path.
    let address = match address.contains(['{', '?']) {
        true => format!("'{address}'"),
        false => address,
    };
    let line = match body {
        Some(("application/json", _)) => {
            format!("api {address} -H 'Content-Type: application/json' -d @body.json")
        }
        Some(_) => return String::new(),
        None => format!("api {address}"),
    };
    format!("\n```sh\n{line}\n```\n")
}

fn schema_section(name: &str, schema: &Value) -> String {
    let mut page = format!("\n### {name}\n\n{}\n", text(&schema["description"]));
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", text(word))).collect();
        writeln!(page, "\nOne of {}.", words.join(", ")).unwrap();
        return page;
    }
    let variants: Vec<&Value> = list(&schema["oneOf"]).chain(list(&schema["anyOf"])).collect();
    for variant in &variants {
        let words = text(&variant["description"]);
        let words = if words.is_empty() {
            String::new()
        } else {
            format!(" {words}")
        };
        writeln!(page, "\n- {}.{words}", kind(variant)).unwrap();
        let rows = fields(variant);
        if !rows.is_empty() {
            let indented = rows.lines().map(|line| format!("  {line}\n"));
            write!(page, "\n{}", indented.collect::<String>()).unwrap();
        }
    }
    let parts: Vec<String> = list(&schema["allOf"])
        .map(fields)
        .filter(|rows| !rows.is_empty())
        .collect();
    for rows in parts {
        write!(page, "\n{rows}").unwrap();
    }
    let rows = fields(schema);
    if !rows.is_empty() {
        write!(page, "\n{rows}").unwrap();
    } else if variants.is_empty() && schema.get("allOf").is_none() {
        writeln!(page, "\n{}.", kind(schema)).unwrap();
    }
    page
}

fn fields(schema: &Value) -> String {
    let required: BTreeSet<&str> = list(&schema["required"]).map(text).collect();
    let mut rows = String::new();
    for (name, field) in map(&schema["properties"]) {
        let presence = if required.contains(name) {
            ""
        } else {
            ", may be missing"
        };
        let row = [
            format!("`{name}`"),
            format!("{}{presence}", kind(field)),
            text(&field["description"]).to_owned(),
        ];
        writeln!(rows, "| {} |", row.map(|text| cell(&text)).join(" | ")).unwrap();
    }
    match rows.is_empty() {
        true => rows,
        false => format!("| field | type | meaning |\n|---|---|---|\n{rows}"),
    }
}

/// What a schema takes, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let choices: Vec<String> = choices
                .iter()
                .map(kind)
                .filter(|kind| kind != "nothing")
                .collect();
            return choices.join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", text(word))).collect();
        return words.join(" or ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().map(text).collect(),
        _ => vec![],
    };
    let kinds = types.iter().filter(|one| **one != "null").map(|one| match *one {
        "array" => format!("list of {}", kind(&schema["items"])),
        "integer" => format!("whole number{}", range(schema)),
        "number" => "number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "object" => "object".to_owned(),
        "string" => "text".to_owned(),
        other => other.to_owned(),
    });
    let kinds: Vec<String> = kinds.collect();
    match (kinds.is_empty(), types.contains(&"null")) {
        (true, true) => "nothing".to_owned(),
        (true, false) => "anything".to_owned(),
        _ => kinds.join(" or "),
    }
}

fn range(schema: &Value) -> String {
    match (
        schema["minimum"].as_i64().filter(|least| *least != 0),
        schema["maximum"].as_u64(),
    ) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (None, Some(most)) => format!(", up to {most}"),
        (Some(least), None) => format!(", {least} or more"),
        (None, None) => String::new(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn map(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries: Option<&Map<String, Value>> = value.as_object();
    entries
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
