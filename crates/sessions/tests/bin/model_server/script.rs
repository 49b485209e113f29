//! What the server answers.
//!
//! ```json
//! {
//!   "responses": [ RESPONSE, .. ],
//!   "rules": [ { "last_role": "tool", "contains": "TEXT", "tool": "write", "respond": RESPONSE }, .. ]
//! }
//! ```
//!
//! The first request gets the first response, and so on. Once they are used up, the first rule counts whose conditions all
//! hold: the role of the last message, a text in it, a tool that is offered. Without one, the server answers as it does
//! without a script.
//!
//! A response is an object with these members, all of them optional:
//!
//! - `status` (200) and `headers`.
//! - `body`: all of the body, as a text. The answer is then not streamed.
//! - `hang_up`: true to close the connection without an answer. `silent`: true to keep it open without one.
//! - `say`: a text, streamed word by word, with `finish`, `usage` and `[DONE]` behind it. `think`: the same, before it.
//! - `calls`: calls of tools, `{"tool", "arguments", "id"}`, with an end behind them. Arguments that are a text are sent as
//!   they are, so that they can be broken.
//! - `steps`: a list of what is streamed, one after the other: objects with one member, or names of what needs no more words:
//!
//! | step | what it does |
//! |---|---|
//! | `text`, `reasoning` | a delta |
//! | `tool` | a delta of a call: `{"index", "id", "name", "arguments"}`, each optional |
//! | `finish` | the reason, for example `"stop"` |
//! | `usage` | `{"prompt_tokens", "completion_tokens"}` |
//! | `done` | `[DONE]` |
//! | `event` | any JSON as an event |
//! | `raw` | any text, as it is |
//! | `comment` | a comment |
//! | `flood` | so many bytes without the end of a line |
//! | `pause_ms` | waits |
//! | `drip` | `{"text", "every_ms"}`: bytes one by one, as they are |
//! | `repeat` | `{"times", "steps"}` |
//! | `cut` | closes the connection in the middle of the body |
//! | `hang` | sends nothing more until the client goes away |

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Anything;
use super::request::Asked;

/// What the server answers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    #[serde(default)]
    responses: Vec<Response>,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    last_role: Option<String>,
    contains: Option<String>,
    tool: Option<String>,
    respond: Response,
}

/// One answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Response {
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) hang_up: bool,
    #[serde(default)]
    pub(crate) silent: bool,
    think: Option<String>,
    say: Option<String>,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    arguments: Value,
    id: Option<String>,
}

/// A piece of a stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Text(String),
    Reasoning(String),
    Tool(ToolDelta),
    Finish(String),
    Usage(Value),
    Done,
    Event(Value),
    Raw(String),
    Comment(String),
    Flood(usize),
    PauseMs(u64),
    Drip { text: String, every_ms: u64 },
    Repeat { times: usize, steps: Vec<Step> },
    Cut,
    Hang,
}

/// A piece of a call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolDelta {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<Value>,
}

impl Script {
    pub(crate) fn read(path: &str) -> Anything<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }

    /// The answer to the request of this number, from 0.
    pub(crate) fn response(&self, number: u64, asked: &Asked) -> Response {
        let in_turn = usize::try_from(number)
            .ok()
            .and_then(|number| self.responses.get(number));
        let by_rule = || {
            self.rules
                .iter()
                .find(|rule| rule.holds(asked))
                .map(|rule| &rule.respond)
        };
        in_turn.or_else(by_rule).cloned().unwrap_or_else(|| usual(asked))
    }
}

impl Rule {
    fn holds(&self, asked: &Asked) -> bool {
        self.last_role
            .as_ref()
            .is_none_or(|role| asked.last_role() == role)
            && self
                .contains
                .as_ref()
                .is_none_or(|text| asked.last_contains(text))
            && self
                .tool
                .as_ref()
                .is_none_or(|tool| asked.tools().contains(&tool.as_str()))
    }
}

/// What the server answers without a script.
fn usual(asked: &Asked) -> Response {
    let tools = asked.tools();
    let tool = tools.iter().find(|tool| **tool == "write").or(tools.first());
    match tool {
        Some(tool) if asked.last_role() != "tool" => Response {
            say: Some("I will write a file.".to_owned()),
            calls: vec![Call {
                tool: (*tool).to_owned(),
                arguments: json!({"path": "hello.txt", "text": "Hello from the model.\n"}),
                id: None,
            }],
            ..Response::default()
        },
        Some(_) => Response {
            say: Some("Done: hello.txt is written.".to_owned()),
            ..Response::default()
        },
        None => Response {
            say: Some("Hello from the model.".to_owned()),
            ..Response::default()
        },
    }
}

impl Response {
    /// Everything that is streamed.
    pub(crate) fn all_steps(&self) -> Vec<Step> {
        let words = |text: &str, step: fn(String) -> Step| -> Vec<Step> {
            text.split_inclusive(' ')
                .map(|word| step(word.to_owned()))
                .collect()
        };
        let mut steps = self.steps.clone();
        if let Some(text) = &self.think {
            steps.extend(words(text, Step::Reasoning));
        }
        if let Some(text) = &self.say {
            steps.extend(words(text, Step::Text));
        }
        for (index, call) in (0_u64..).zip(&self.calls) {
            let id = call.id.clone().unwrap_or_else(|| format!("call_{index}"));
            steps.push(Step::Tool(ToolDelta {
                index: Some(index),
                id: Some(id),
                name: Some(call.tool.clone()),
                arguments: Some(json!("")),
            }));
            let arguments = match &call.arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let middle = arguments.floor_char_boundary(arguments.len() / 2);
            for piece in [&arguments[..middle], &arguments[middle..]] {
                steps.push(Step::Tool(ToolDelta {
                    index: Some(index),
                    arguments: Some(json!(piece)),
                    ..ToolDelta::default()
                }));
            }
        }
        if self.think.is_some() || self.say.is_some() || !self.calls.is_empty() {
            let reason = if self.calls.is_empty() {
                "stop"
            } else {
                "tool_calls"
            };
            steps.push(Step::Finish(reason.to_owned()));
            steps.push(Step::Usage(
                json!({"prompt_tokens": 100, "completion_tokens": 10}),
            ));
            steps.push(Step::Done);
        }
        steps
    }
}
