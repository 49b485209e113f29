//! The Language Server Protocol, by hand: one message after another, over any two streams.

use std::io::{Read, Write};
use std::ops::Range;

use anyhow::{Context as _, Result, bail};
use lsp::{Decoder, Frame, FrameLimits, Message, MessageId};
use serde_json::{Value, json};

/// How much to read at once: the capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// One end of a conversation, which blocks for each answer. This is the fastest way.
pub(super) struct Speaker<R, W> {
    reader: R,
    writer: W,
    decoder: Decoder,
    buffer: Vec<u8>,
    /// What was read and has not been decoded yet.
    rest: Range<usize>,
    next_id: i64,
}

impl<R: Read, W: Write> Speaker<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self {
            reader,
            writer,
            decoder: Decoder::new(FrameLimits::default()),
            buffer: vec![0; READ_BYTES],
            rest: 0..0,
            next_id: 1,
        }
    }

    pub(super) fn initialize(&mut self, params: &Value) -> Result<()> {
        self.request("initialize", params)?;
        self.notify("initialized", &json!({}))
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        let message = lsp::encode_notification(method, params)?;
        Ok(self.writer.write_all(&message)?)
    }

    /// Sends a request, and waits for the answer. Requests from the server are answered with null in the meantime.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.next_id;
        self.next_id += 1;
        let message = lsp::encode_request(&MessageId::Number(id), method, params)?;
        self.writer.write_all(&message)?;
        loop {
            while let Some(frame) = self.decoder.next_frame()? {
                let Frame::Body(body) = frame else {
                    bail!("an answer to `{method}` was too long");
                };
                match Message::parse(&body)? {
                    Message::Response {
                        id: Some(of),
                        outcome,
                    } if of == MessageId::Number(id) => {
                        let result = outcome.with_context(|| format!("`{method}` failed"))?;
                        return Ok(serde_json::from_str(result.get())?);
                    }
                    Message::Request { id, method, params } => {
                        let params = params.map_or("null", |params| params.get());
                        let answer = nothing(&method, &serde_json::from_str(params)?);
                        let message = lsp::encode_response(&id, Ok(&answer))?;
                        self.writer.write_all(&message)?;
                    }
                    Message::Response { .. } | Message::Notification { .. } => {}
                }
            }
            if self.rest.is_empty() {
                self.rest = 0..self.reader.read(&mut self.buffer)?;
                if self.rest.is_empty() {
                    bail!("the server ended before it answered `{method}`");
                }
            }
            self.rest.start += self.decoder.feed(&self.buffer[self.rest.clone()]);
        }
    }
}

/// The answer to a request from the server: as many nulls as it asked for values.
fn nothing(method: &str, params: &Value) -> Value {
    match (method, params["items"].as_array()) {
        ("workspace/configuration", Some(items)) => vec![Value::Null; items.len()].into(),
        _ => Value::Null,
    }
}

pub(super) fn initialize_params(root: &std::path::Path) -> Result<Value> {
    let uri = lsp::uri_of_path(root)?;
    Ok(json!({
        "processId": std::process::id(),
        "rootUri": uri,
        "workspaceFolders": [{"uri": uri, "name": "bench"}],
        "capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown"]}}},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_among_everything_else() {
        let said = [
            lsp::encode_notification("hello", &json!({})),
            lsp::encode_request(
                &MessageId::Number(1),
                "workspace/configuration",
                &json!({"items": [1, 2]}),
            ),
            lsp::encode_response(&MessageId::Number(7), Ok(&json!("another"))),
            lsp::encode_response(&MessageId::Number(1), Ok(&json!("this"))),
        ];
        let said: Vec<u8> = said.into_iter().flat_map(|message| message.unwrap()).collect();
        let mut written = Vec::new();
        let answer = Speaker::new(&*said, &mut written).request("ask", &json!({}));
        assert_eq!(answer.unwrap(), json!("this"));
        let expected = [
            lsp::encode_request(&MessageId::Number(1), "ask", &json!({})),
            lsp::encode_response(&MessageId::Number(1), Ok(&json!([null, null]))),
        ];
        let expected: Vec<u8> = expected
            .into_iter()
            .flat_map(|message| message.unwrap())
            .collect();
        assert_eq!(String::from_utf8(written), String::from_utf8(expected));
        let ended = Speaker::new(&b""[..], Vec::new()).request("ask", &json!({}));
        assert_eq!(
            ended.unwrap_err().to_string(),
            "the server ended before it answered `ask`"
        );
    }
}
