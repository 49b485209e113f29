//! Sends an answer, or what a broken server would send instead.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Anything;
use super::script::{Response, Step, ToolDelta};

/// Whether more can be sent.
enum Sent {
    GoesOn,
    Cut,
}

/// Sends an answer.
pub(crate) fn send(response: &Response, mut connection: TcpStream) -> Anything<()> {
    if response.hang_up {
        connection.shutdown(Shutdown::Both)?;
        return Ok(());
    }
    if response.silent {
        connection.read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let status = response.status.unwrap_or(200);
    let mut head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if response.body.is_some() || status != 200 {
        let body = response.body.clone().unwrap_or_default();
        write!(connection, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
        return Ok(());
    }
    if !response.headers.contains_key("content-type") {
        head.push_str("content-type: text/event-stream\r\n");
    }
    write!(connection, "{head}transfer-encoding: chunked\r\n\r\n")?;
    if let Sent::GoesOn = send_steps(&response.all_steps(), &mut connection)? {
        write!(connection, "0\r\n\r\n")?;
    }
    Ok(())
}

fn send_steps(steps: &[Step], connection: &mut TcpStream) -> io::Result<Sent> {
    for step in steps {
        match step {
            Step::Text(text) => delta(connection, json!({"content": text}))?,
            Step::Reasoning(text) => delta(connection, json!({"reasoning_content": text}))?,
            Step::Tool(call) => delta(connection, json!({"tool_calls": [tool(call)]}))?,
            Step::Finish(reason) => event(
                connection,
                &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
            )?,
            Step::Usage(usage) => event(connection, &json!({"choices": [], "usage": usage}))?,
            Step::Done => chunk(connection, b"data: [DONE]\n\n")?,
            Step::Event(body) => event(connection, body)?,
            Step::Raw(text) => chunk(connection, text.as_bytes())?,
            Step::Comment(text) => chunk(connection, format!(": {text}\n\n").as_bytes())?,
            Step::Flood(bytes) => {
                let block = [b'x'; 64 * 1024];
                for start in (0..*bytes).step_by(block.len()) {
                    chunk(connection, &block[..block.len().min(bytes - start)])?;
                }
            }
            Step::PauseMs(millis) => thread::sleep(Duration::from_millis(*millis)), // tidy: the script wants a pause
            Step::Drip { text, every_ms } => {
                for byte in text.bytes() {
                    chunk(connection, &[byte])?;
                    thread::sleep(Duration::from_millis(*every_ms)); // tidy: the script wants it slow
                }
            }
            Step::Repeat { times, steps } => {
                for _ in 0..*times {
                    if let Sent::Cut = send_steps(steps, connection)? {
                        return Ok(Sent::Cut);
                    }
                }
            }
            Step::Cut => return Ok(Sent::Cut),
            Step::Hang => {
                connection.read_to_end(&mut Vec::new())?;
                return Ok(Sent::Cut);
            }
        }
    }
    Ok(Sent::GoesOn)
}

fn tool(call: &ToolDelta) -> Value {
    let mut delta = json!({"type": "function", "function": {}});
    if let Some(index) = call.index {
        delta["index"] = json!(index);
    }
    if let Some(id) = &call.id {
        delta["id"] = json!(id);
    }
    if let Some(name) = &call.name {
        delta["function"]["name"] = json!(name);
    }
    if let Some(arguments) = &call.arguments {
        delta["function"]["arguments"] = arguments.clone();
    }
    delta
}

fn delta(connection: &mut TcpStream, delta: Value) -> io::Result<()> {
    event(
        connection,
        &json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
    )
}

fn event(connection: &mut TcpStream, body: &Value) -> io::Result<()> {
    chunk(connection, format!("data: {body}\n\n").as_bytes())
}

fn chunk(connection: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    connection.write_all(&framed)
}
