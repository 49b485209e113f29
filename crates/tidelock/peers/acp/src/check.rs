//! Holds messages against the published schema, and against the published types.

use std::collections::BTreeMap;
use std::io::BufRead;

use agent_client_protocol_schema::v1;
use anyhow::{Context, Result, bail};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What one kind of message must be.
struct Shape {
    schema: Validator,
    /// What the types make of it.
    through: fn(&Value) -> Result<Value>,
}

fn shape<T: JsonSchema + DeserializeOwned + Serialize>() -> Result<Shape> {
    let schema = serde_json::to_value(schemars::schema_for!(T))?;
    Ok(Shape {
        schema: jsonschema::validator_for(&schema).context("the schema cannot be used")?,
        through: |value| Ok(serde_json::to_value(serde_json::from_value::<T>(value.clone())?)?),
    })
}

/// The answers to what an editor asks, by method.
fn answers() -> Result<BTreeMap<&'static str, Shape>> {
    Ok(BTreeMap::from([
        ("initialize", shape::<v1::InitializeResponse>()?),
        ("authenticate", shape::<v1::AuthenticateResponse>()?),
        ("session/new", shape::<v1::NewSessionResponse>()?),
        ("session/load", shape::<v1::LoadSessionResponse>()?),
        ("session/resume", shape::<v1::ResumeSessionResponse>()?),
        ("session/list", shape::<v1::ListSessionsResponse>()?),
        ("session/close", shape::<v1::CloseSessionResponse>()?),
        ("session/delete", shape::<v1::DeleteSessionResponse>()?),
        ("session/prompt", shape::<v1::PromptResponse>()?),
        (
            "session/set_config_option",
            shape::<v1::SetSessionConfigOptionResponse>()?,
        ),
    ]))
}

/// What an editor is told and asked, by method.
fn requests() -> Result<BTreeMap<&'static str, Shape>> {
    Ok(BTreeMap::from([
        ("session/update", shape::<v1::SessionNotification>()?),
        (
            "session/request_permission",
            shape::<v1::RequestPermissionRequest>()?,
        ),
        ("$/cancel_request", shape::<v1::CancelRequestNotification>()?),
    ]))
}

pub(crate) fn run() -> Result<()> {
    let (answers, requests, error) = (answers()?, requests()?, shape::<v1::Error>()?);
    let mut asked: BTreeMap<String, String> = BTreeMap::new();
    let (mut count, mut problems) = (0_usize, 0_usize);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if let Some(sent) = line.strip_prefix("> ") {
            // What an editor sends may be rubbish, on purpose.
            let sent: Value = serde_json::from_str(sent).unwrap_or_default();
            if let (Some(id), Some(method)) = (sent.get("id"), sent["method"].as_str()) {
                asked.insert(id.to_string(), method.to_owned());
            }
            continue;
        }
        let Some(told) = line.strip_prefix("< ") else {
            bail!("a line without a direction: {line}");
        };
        count += 1;
        let told: Value = serde_json::from_str(told).with_context(|| line.clone())?;
        let found = envelope(&told).and_then(|()| {
            if let Some(method) = told["method"].as_str() {
                let shape = requests
                    .get(method)
                    .with_context(|| format!("there is no {method}"))?;
                return fits(shape, &told["params"]);
            }
            if told.get("error").is_some() {
                return fits(&error, &told["error"]);
            }
            let method = asked.get(&told["id"].to_string()).context("nobody asked that")?;
            let shape = answers
                .get(method.as_str())
                .with_context(|| format!("there is no {method}"))?;
            fits(shape, &told["result"])
        });
        if let Err(error) = found {
            problems += 1;
            println!("{error:#}: {told}");
        }
    }
    if problems > 0 || count == 0 {
        bail!("{problems} of {count} messages are not as they should be");
    }
    println!("{count} messages are as they should be");
    Ok(())
}

/// A message of JSON-RPC, with what it must have and nothing else.
fn envelope(message: &Value) -> Result<()> {
    let members = message.as_object().context("it is no object")?;
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    let is_known = [
        ["id", "jsonrpc", "result"].as_slice(),
        &["error", "id", "jsonrpc"],
        &["jsonrpc", "method", "params"],
        &["id", "jsonrpc", "method", "params"],
    ]
    .contains(&names.as_slice());
    if !is_known || message["jsonrpc"] != "2.0" {
        bail!("it is no message of JSON-RPC");
    }
    Ok(())
}

fn fits(shape: &Shape, value: &Value) -> Result<()> {
    let wrong: Vec<String> = shape
        .schema
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    if !wrong.is_empty() {
        bail!("it does not fit the schema: {}", wrong.join("; "));
    }
    let through = (shape.through)(value).context("it does not fit the types")?;
    let lost = lost(value, &through, "");
    if !lost.is_empty() {
        bail!("the types do not know {}", lost.join(", "));
    }
    Ok(())
}

/// What is in a message and not in what the types make of it. What says as much as nothing may be left out by them.
fn lost(before: &Value, after: &Value, place: &str) -> Vec<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .flat_map(|(name, value)| {
                let place = format!("{place}/{name}");
                match after.get(name) {
                    Some(after) => lost(value, after, &place),
                    None if says_nothing(value) => Vec::new(),
                    None => vec![place],
                }
            })
            .collect(),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let both = before.iter().zip(after).enumerate();
            both.flat_map(|(index, (before, after))| lost(before, after, &format!("{place}/{index}")))
                .collect()
        }
        (before, after) if before == after => Vec::new(),
        _ => vec![format!("{place} ({before} became {after})")],
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::String(text) => text == "other" || text == "pending",
        _ => false,
    }
}
