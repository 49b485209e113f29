//! What a client asks.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::{Map, Value, json};

use super::Anything;

/// The largest request that is read.
const BODY_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// A request.
pub(crate) struct Asked {
    path: String,
    headers: Map<String, Value>,
    body: Value,
}

impl Asked {
    /// Reads one.
    pub(crate) fn read(connection: &mut TcpStream) -> Anything<Self> {
        let mut reader = BufReader::new(connection);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut headers = Map::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), json!(value.trim()));
        }
        let length = headers.get("content-length").and_then(Value::as_str);
        let length: u64 = length.unwrap_or("0").parse()?;
        let mut body = Vec::new();
        reader.take(length.min(BODY_LIMIT_BYTES)).read_to_end(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Self { path, headers, body })
    }

    /// As it stands in the log.
    pub(crate) fn to_line(&self, number: u64) -> String {
        json!({"number": number, "path": self.path, "headers": self.headers, "body": self.body}).to_string()
    }

    /// The role of the last message.
    pub(crate) fn last_role(&self) -> &str {
        self.last_message()["role"].as_str().unwrap_or_default()
    }

    /// Whether a text stands in the last message.
    pub(crate) fn last_contains(&self, text: &str) -> bool {
        self.last_message()["content"].to_string().contains(text)
    }

    /// The names of the tools that are offered.
    pub(crate) fn tools(&self) -> Vec<&str> {
        let tools = self.body["tools"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        tools
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect()
    }

    fn last_message(&self) -> &Value {
        let messages = self.body["messages"].as_array();
        messages
            .and_then(|messages| messages.last())
            .unwrap_or(&Value::Null)
    }
}
