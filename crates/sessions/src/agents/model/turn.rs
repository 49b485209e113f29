//! The loop of one turn: ask the model, call the tools it wants, ask again.

use std::time::Duration;

use kernel::Deadline;
use protocol::{ToolState, Usage};
use serde_json::{Map, Value};

use super::agent::{Core, Ready};
use super::attempt::{Arrived, Asking};
use super::conversation::{self, Conversation, Fitted};
use super::settings::{ModelLimits, ModelSettings};
use super::wire::{Call, Fault, Finish, Message, Refusal, Why};
use crate::agent::{AgentEnd, AgentTurn};
use crate::history;
use crate::sink::SinkError;
use crate::tools::ToolCall;

/// How many calls with broken arguments a turn survives. The model gets an error each time, but one that can't write
/// JSON would go on forever.
const BROKEN_CALLS_LIMIT: u32 = 5;

/// At most one part in this many of the model's context may be filled before the first step. The rest is for the work.
const OPENING_PART: u64 = 8;

/// Why a turn ends before the model is done.
#[derive(Debug)]
pub(super) enum Halt {
    /// The user cancelled it, or the turn accepts nothing more.
    Cancelled,
    /// A limit from the settings was reached.
    Limit(Limit),
    /// The server failed. `streamed` is true if part of the answer had arrived.
    Fault { fault: Fault, streamed: bool },
    /// The circuit is open, for this long if known.
    Unavailable(Option<Duration>),
    /// The model misbehaved: a stable code, and a message.
    Model(&'static str, String),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Limit {
    Steps(u32),
    Tokens(u64),
    Time(Duration),
    Cost(u64),
}

impl From<SinkError> for Halt {
    fn from(_: SinkError) -> Self {
        Self::Cancelled
    }
}

impl Limit {
    /// The limit that this usage exceeds, if any.
    pub(super) fn passed(limits: &ModelLimits, used: Usage) -> Option<Self> {
        if used.input_tokens.saturating_add(used.output_tokens) > limits.tokens {
            return Some(Self::Tokens(limits.tokens));
        }
        let cost = limits.cost_micros.filter(|limit| used.cost_micros > *limit);
        cost.map(Self::Cost)
    }

    fn end(self) -> AgentEnd {
        match self {
            Self::Steps(limit) => AgentEnd::failed(
                "limit_steps",
                format!("the model was asked {limit} times, which is all it may be in one turn"),
            ),
            Self::Tokens(limit) => {
                AgentEnd::failed("limit_tokens", format!("the turn used more than {limit} tokens"))
            }
            Self::Time(limit) => AgentEnd::failed(
                "limit_time",
                format!("the turn took longer than {} s", limit.as_secs_f64()),
            ),
            Self::Cost(limit) => AgentEnd::failed(
                "limit_cost",
                format!("the turn cost more than {:.6}", limit as f64 / 1_000_000.0),
            ),
        }
    }
}

pub(super) async fn run(core: &Core, ready: &Ready, turn: &AgentTurn) -> AgentEnd {
    let halt = match Loop::begin(core, ready, turn).await {
        Ok(mut running) => match running.go_on().await {
            Ok(()) => return AgentEnd::Done,
            Err(halt) => halt,
        },
        Err(halt) => halt,
    };
    if turn.scope.is_cancelled() {
        return AgentEnd::Cancelled;
    }
    match halt {
        Halt::Cancelled => AgentEnd::Cancelled,
        Halt::Limit(limit) => limit.end(),
        Halt::Fault { fault, streamed } => AgentEnd::failed(fault.code(streamed), core.shown(&fault.text())),
        Halt::Unavailable(left) => AgentEnd::failed("model_unavailable", unavailable(core, left)),
        Halt::Model(code, text) => AgentEnd::failed(code, text),
    }
}

fn unavailable(core: &Core, left: Option<Duration>) -> String {
    let circuit = &core.circuit;
    let reason = "the server of the model failed too often, or wants to be left alone";
    match left {
        Some(left) => {
            let until = core.wall.now().after(left).to_system_time();
            let (until, left) = (httpdate::fmt_http_date(until), left.as_secs_f64().ceil());
            format!("{reason}: it is asked again after {until} (in {left} s; circuit `{circuit}`)")
        }
        None => format!("the circuit `{circuit}` is held open by hand; see `tidelock breaker`"),
    }
}

struct Loop<'a> {
    asking: Asking<'a>,
    conversation: Conversation,
    model: String,
    broken_calls: u32,
    has_called: bool,
    has_told_cut: bool,
}

impl<'a> Loop<'a> {
    async fn begin(core: &'a Core, ready: &'a Ready, turn: &'a AgentTurn) -> Result<Self, Halt> {
        let settings = &core.settings;
        let room = conversation::room(settings.context_tokens);
        // Half of the room is for earlier turns; the rest is for this one.
        let reading = history::read(&turn.log, turn.previous, room / 2);
        let reading = futures_util::future::join(reading, conversation::prompt(&turn.log, &turn.prompt));
        let (history, (prompt, missing)) = tokio::select! {
            biased;
            _ = turn.scope.wait() => return Err(Halt::Cancelled),
            read = reading => read,
        };
        let history = match history {
            Ok(history) => history,
            Err(error) => {
                let text =
                    format!("what was said before cannot be read, so the model does not know it: {error}");
                turn.sink.trouble("model_history", text).await?;
                Vec::new()
            }
        };
        for text in missing {
            turn.sink.trouble("model_attachment", text).await?;
        }
        let most = opening_limit(settings);
        let prompt = match turn.tools.opening(&turn.prompt.text, most, &turn.sink).await {
            Some(found) => conversation::with_context(prompt, &found),
            None => prompt,
        };
        let system = conversation::system(turn.desk.directory());
        let asking = Asking {
            core,
            ready,
            turn,
            time: Deadline::after(&core.clock, settings.limits.time),
            has_told_estimate: false,
        };
        Ok(Self {
            asking,
            conversation: Conversation::new(system, history, prompt, room),
            model: turn
                .choice
                .model
                .clone()
                .unwrap_or_else(|| settings.model.clone()),
            broken_calls: 0,
            has_called: false,
            has_told_cut: false,
        })
    }

    /// Asks until the model calls no tool.
    async fn go_on(&mut self) -> Result<(), Halt> {
        let mut was_empty = false;
        for step in 0.. {
            let arrived = self.step(step).await?;
            match arrived.answer.finish {
                Some(Finish::Length) => {
                    arrived
                        .give_up(
                            ToolState::Failed,
                            "the answer of the model was cut off before the call was complete",
                        )
                        .await;
                    let text = "the model may not write a longer answer, so it is not complete";
                    return Err(Halt::Model("model_length", text.to_owned()));
                }
                Some(Finish::Filtered) => {
                    arrived
                        .give_up(ToolState::Failed, "the server of the model held the call back")
                        .await;
                    let text = "the server of the model held a part of the answer back";
                    return Err(Halt::Model("model_filtered", text.to_owned()));
                }
                Some(Finish::Complete) | None => {}
            }
            if !arrived.answer.calls.is_empty() {
                was_empty = false;
                self.call(arrived).await?;
            } else if !arrived.answer.is_empty() {
                return Ok(());
            } else if was_empty {
                return self.end_empty().await;
            } else {
                was_empty = true;
            }
        }
        Ok(())
    }

    /// The model's answer is empty. After tool calls that is a valid end; without any it's an error.
    async fn end_empty(&self) -> Result<(), Halt> {
        let text = "the model answered twice without a word";
        if !self.has_called {
            return Err(Halt::Model("model_empty", text.to_owned()));
        }
        self.asking.turn.sink.trouble("model_empty", text).await?;
        Ok(())
    }

    /// One answer, within the limits. If the server finds the conversation too long, it's shortened and sent once more.
    async fn step(&mut self, step: u32) -> Result<Arrived, Halt> {
        let turn = self.asking.turn;
        let limits = &self.asking.core.settings.limits;
        if step >= limits.steps {
            return Err(Halt::Limit(Limit::Steps(limits.steps)));
        }
        if let Some(limit) = Limit::passed(limits, turn.sink.usage()) {
            return Err(Halt::Limit(limit));
        }
        if self.asking.time.has_passed() {
            return Err(Halt::Limit(Limit::Time(limits.time)));
        }
        let tools = turn.tools.specs();
        let (request, fitted) = self.conversation.request(&self.model, &tools);
        self.tell_cut(fitted).await?;
        match self.asking.step(step, &request).await {
            Err(Halt::Fault {
                fault: Fault::Refused(Refusal {
                    why: Why::TooLong, ..
                }),
                streamed: false,
            }) if self.conversation.shorten() == Fitted::Cut => {
                self.tell_cut(Fitted::Cut).await?;
                let (request, _) = self.conversation.request(&self.model, &tools);
                self.asking.step(step, &request).await
            }
            ended => ended,
        }
    }

    async fn tell_cut(&mut self, fitted: Fitted) -> Result<(), SinkError> {
        if fitted == Fitted::Whole || self.has_told_cut {
            return Ok(());
        }
        self.has_told_cut = true;
        let text = "this is more than the model can read; what is oldest is left out";
        self.asking.turn.sink.trouble("model_context_cut", text).await
    }

    /// Calls the tools of an answer and adds their results to the conversation.
    async fn call(&mut self, arrived: Arrived) -> Result<(), Halt> {
        let turn = self.asking.turn;
        self.has_called = true;
        let count = arrived.answer.calls.len();
        let mut told: Vec<Option<String>> = vec![None; count];
        let (mut calls, mut places, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (draft, sink)) in arrived.answer.calls.into_iter().zip(arrived.calls).enumerate() {
            let Some(sink) = sink else { continue };
            let mut arguments = draft.arguments;
            match parsed(&arguments) {
                Ok(value) => {
                    places.push(place);
                    let tool = draft.name.clone();
                    orders.push((
                        ToolCall {
                            tool,
                            arguments: value,
                        },
                        sink,
                    ));
                }
                Err(error) => {
                    self.broken_calls += 1;
                    let text = format!(
                        "the arguments are not JSON ({error}); call the tool again with one JSON object"
                    );
                    sink.ended(ToolState::Failed, &text, None).await?;
                    told[place] = Some(text);
                    // Servers parse the conversation they get, and refuse arguments that they can't parse.
                    arguments = String::new();
                }
            }
            if arguments.trim().is_empty() {
                arguments = "{}".to_owned();
            }
            calls.push(Call {
                id: draft.id,
                tool: draft.name,
                arguments,
            });
        }
        // The tools watch for the turn's cancellation themselves; if this were dropped midway, they would
        // keep running.
        let (left, asked, began) = (
            self.asking.time.remaining(),
            turn.asker.asked_for(),
            turn.clock.now(),
        );
        let answers = turn.tools.call_all(orders).await;
        if let Some(left) = left {
            // Time spent waiting for the user's answer doesn't count against the model.
            let asked = turn.asker.asked_for().saturating_sub(asked);
            let took = turn.clock.now().saturating_duration_since(began);
            self.asking.time = Deadline::after(&turn.clock, (left + asked).saturating_sub(took));
        }
        for (place, answer) in places.into_iter().zip(answers) {
            told[place] = Some(match answer.full {
                Some(full) => format!("{}\n[all of it: {full}]", answer.text),
                None => answer.text,
            });
        }
        if turn.scope.is_cancelled() {
            return Err(Halt::Cancelled);
        }
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        self.conversation.push(Message::Assistant {
            text: arrived.answer.text,
            calls,
        });
        for (call, text) in ids.into_iter().zip(told) {
            let text = text.unwrap_or_default();
            self.conversation.push(Message::Tool { call, text });
        }
        if self.broken_calls > BROKEN_CALLS_LIMIT {
            let text = format!(
                "the model called tools with broken arguments {} times",
                self.broken_calls
            );
            return Err(Halt::Model("model_tool_calls", text));
        }
        Ok(())
    }
}

/// How many tokens of context a turn starts with: at most a fraction of the model's context.
fn opening_limit(settings: &ModelSettings) -> usize {
    let part = usize::try_from(settings.context_tokens / OPENING_PART).unwrap_or(usize::MAX);
    settings.opening_context_tokens.min(part)
}

/// The arguments of a call. An empty string means a tool without arguments.
fn parsed(arguments: &str) -> Result<Value, serde_json::Error> {
    if arguments.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(arguments)
}
