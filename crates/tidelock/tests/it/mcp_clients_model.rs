//! A model that says what a test wants, for agents of others: chat completions (opencode) and responses (codex).
//!
//! A prompt names a task; a task is a list of calls. How many of them have been answered is in every request, so the model
//! remembers nothing, and several agents can ask it at once.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

/// What an agent does when its prompt has this word in it.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) word: &'static str,
    /// Tools, by the end of their names, and what they are called with.
    pub(crate) calls: Vec<(&'static str, Value)>,
}

/// What the model says when all calls have been answered.
pub(crate) const DONE: &str = "Everything is done.";
/// A request that ends the server.
const QUIT: &str = "QUIT";

/// The server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Model {
    address: SocketAddr,
    server: Option<JoinHandle<()>>,
    /// Guards what was asked, for a test that wants to see it; held to add or to copy.
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub(crate) fn start(tasks: Vec<Task>) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (tasks, noted) = (Arc::new(tasks), Arc::clone(&asked));
        let server = thread::spawn(move || {
            for connection in listener.incoming() {
                let connection = connection.unwrap();
                let Ok(Some((path, body))) = read(&connection) else {
                    break;
                };
                noted.lock().unwrap().push(body.clone());
                let tasks = Arc::clone(&tasks);
                // A client that goes away is no fault of the server.
                thread::spawn(move || answer(connection, &path, &body, &tasks).ok());
            }
        });
        Model {
            address,
            server: Some(server),
            asked,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The last request, for the message of a test that fails.
    pub(crate) fn last_request(&self) -> String {
        self.asked
            .lock()
            .unwrap()
            .last()
            .map(Value::to_string)
            .unwrap_or_default()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let told = TcpStream::connect(self.address).and_then(|mut stream| writeln!(stream, "{QUIT}"));
        if let (Ok(()), Some(server)) = (told, self.server.take()) {
            server.join().ok();
        }
    }
}

/// Reads a request; nothing if it is the last one. Whatever is not understood is an empty one.
fn read(connection: &TcpStream) -> io::Result<Option<(String, Value)>> {
    let mut reader = BufReader::new(connection);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    if first.trim() == QUIT {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some((path, serde_json::from_slice(&body).unwrap_or_default())))
}

fn answer(mut connection: TcpStream, path: &str, body: &Value, tasks: &[Task]) -> io::Result<()> {
    let events = match path.rsplit('/').next() {
        Some("completions") => completions(&next(body, tasks)),
        Some("responses") => responses(&next(body, tasks)),
        _ => {
            let models = json!({ "object": "list", "data": [], "models": [] }).to_string();
            let length = models.len();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            return connection.write_all(format!("{head}{models}").as_bytes());
        }
    };
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
    connection.write_all(format!("{head}{events}").as_bytes())
}

/// What the model does next.
#[derive(Debug)]
enum Next {
    Say(String),
    /// The name as it is offered, what holds it if something does, and the arguments.
    Call {
        name: String,
        space: Option<String>,
        arguments: Value,
        number: usize,
    },
}

fn next(body: &Value, tasks: &[Task]) -> Next {
    let items = body["messages"].as_array().or_else(|| body["input"].as_array());
    let items = items.map(Vec::as_slice).unwrap_or_default();
    let from_user = items.iter().filter(|item| item["role"] == "user");
    let prompts: String = from_user.map(|item| item["content"].to_string()).collect();
    let is_answer = |item: &&Value| {
        item["role"] == "tool"
            || item["type"]
                .as_str()
                .is_some_and(|kind| kind.ends_with("_call_output"))
    };
    let number = items.iter().filter(is_answer).count();
    let task = tasks.iter().find(|task| prompts.contains(task.word));
    let Some((tool, arguments)) = task.and_then(|task| task.calls.get(number)) else {
        return Next::Say(DONE.to_owned());
    };
    match offered(body, tool) {
        Some((space, name)) => Next::Call {
            name,
            space,
            arguments: arguments.clone(),
            number,
        },
        None => Next::Say(format!("There is no tool {tool}.")),
    }
}

/// A tool that is offered, by the end of its name, and the name of the group that it is in.
fn offered(body: &Value, tool: &str) -> Option<(Option<String>, String)> {
    let all = body["tools"].as_array()?;
    let name_of = |offer: &Value| {
        let name = offer["name"]
            .as_str()
            .or_else(|| offer["function"]["name"].as_str())?;
        name.ends_with(tool).then(|| name.to_owned())
    };
    let alone = all.iter().find_map(|offer| Some((None, name_of(offer)?)));
    let in_groups = || {
        all.iter().find_map(|group| {
            let name = group["tools"].as_array()?.iter().find_map(name_of)?;
            Some((group["name"].as_str().map(str::to_owned), name))
        })
    };
    alone.or_else(in_groups)
}

fn completions(next: &Next) -> String {
    let (delta, reason) = match next {
        Next::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Next::Call {
            name,
            arguments,
            number,
            ..
        } => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
    };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        let chunk =
            json!({ "id": "c", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice] });
        format!("data: {chunk}\n\n")
    };
    format!(
        "{}{}data: [DONE]\n\n",
        chunk(delta, Value::Null),
        chunk(json!({}), json!(reason))
    )
}

fn responses(next: &Next) -> String {
    let item = match next {
        Next::Say(text) => json!({
            "type": "message", "id": "m", "role": "assistant", "content": [{ "type": "output_text", "text": text }],
        }),
        Next::Call {
            name,
            space,
            arguments,
            number,
        } => {
            let mut call = json!({
                "type": "function_call", "id": format!("f{number}"), "call_id": format!("call_{number}"), "name": name,
                "arguments": arguments.to_string(),
            });
            if let Some(space) = space {
                call["namespace"] = json!(space);
            }
            call
        }
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null,
        "total_tokens": 2,
    });
    let events = [
        json!({ "type": "response.created", "response": { "id": "r" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": { "id": "r", "usage": usage } }),
    ];
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect()
}
