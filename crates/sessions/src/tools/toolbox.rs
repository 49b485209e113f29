//! The tools an agent has in a turn.

use std::sync::Arc;

use super::all;
use super::batch;
use super::error::ToolError;
use super::order::Touches;
use super::permit::permit;
use super::running::{Patience, Running};
use super::spec::{ToolAnswer, ToolCall, ToolSpec, ToolboxOptions};
use super::text::{bounded, one_line};
use super::tool::{Kind, Ready, ToolOutput};
use crate::sink::ToolSink;

/// An agent's tools. Clones share the same toolbox.
#[derive(Clone, Debug)]
pub struct Toolbox {
    options: Arc<ToolboxOptions>,
    kinds: Arc<[Kind]>,
}

impl Toolbox {
    /// Creates a toolbox for one turn.
    #[must_use]
    pub fn new(options: ToolboxOptions) -> Self {
        Self {
            kinds: all::kinds(&options.ports).into(),
            options: Arc::new(options),
        }
    }

    pub(super) fn options(&self) -> &ToolboxOptions {
        &self.options
    }

    /// The specs of all available tools.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |kind: &Kind| kind.spec(&self.options.ports);
        self.kinds.iter().map(spec).collect()
    }

    /// Calls a tool and reports everything about it to the turn's stream, from start to end, including bad arguments,
    /// denials and failures. Once it returns, nothing it started is running that could still change anything.
    ///
    /// *Cancel safety*: if dropped midway, the stream never sees the end of the call, and a command may keep running;
    /// stop the turn instead.
    pub async fn call(&self, call: ToolCall, sink: ToolSink) -> ToolAnswer {
        let ready = self.prepare(call).await;
        self.carry_out(ready, &sink).await
    }

    /// Makes several calls: those that read run together, those that write run in order for each path, and any that may
    /// write anywhere run alone. A call sees what earlier ones have written. The answers are in the order of the calls.
    ///
    /// *Cancel safety*: as for [`call`](Self::call).
    pub async fn call_all(&self, calls: Vec<(ToolCall, ToolSink)>) -> Vec<ToolAnswer> {
        let (mut touches, mut prepared) = (Vec::new(), Vec::new());
        for (call, sink) in calls {
            let ready = self.prepare(call).await;
            touches.push(match &ready {
                Ok(ready) => ready.about.touches.clone(),
                Err(_) => Touches::Nothing,
            });
            prepared.push(Some((ready, sink)));
        }
        let answers = batch::in_order(&touches, |call| {
            let taken = prepared[call].take();
            Box::pin(async move {
                match taken {
                    Some((ready, sink)) => Some(self.carry_out(ready, &sink).await),
                    None => None,
                }
            })
        });
        answers.await.into_iter().flatten().collect()
    }

    async fn prepare(&self, call: ToolCall) -> Result<Ready, ToolError> {
        if self.options.scope.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        match self.kinds.iter().find(|kind| kind.name == call.tool) {
            Some(kind) => kind.prepare(call.arguments, &self.options).await,
            None => {
                let known: Vec<&str> = self.kinds.iter().map(|kind| kind.name).collect();
                Err(ToolError::Unknown {
                    name: one_line(&call.tool),
                    known: known.join(", "),
                })
            }
        }
    }

    async fn carry_out(&self, ready: Result<Ready, ToolError>, sink: &ToolSink) -> ToolAnswer {
        let told = match ready {
            Ok(ready) => self.run(ready, sink).await,
            Err(error) => Err(error),
        };
        let told = told.unwrap_or_else(|error| ToolOutput {
            state: error.state(),
            text: error.to_string(),
            full: None,
        });
        let answer = ToolAnswer {
            state: told.state,
            text: bounded(told.text),
            full: told.full,
        };
        let ended = sink.ended(answer.state, answer.text.clone(), answer.full.clone());
        if ended.await.is_err() {
            tracing::debug!("a tool ended after its turn");
        }
        answer
    }

    async fn run(&self, ready: Ready, sink: &ToolSink) -> Result<ToolOutput, ToolError> {
        let options = &self.options;
        if options.scope.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let rules = permit(options, ready.tool, &ready.about, sink.item()).await?;
        if options.scope.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let started = sink.started(ready.about.title.clone(), ready.arguments.clone());
        // Without its stream the turn is over, and a call that can't be reported must not be made.
        started.await.map_err(|_| ToolError::Cancelled)?;
        let running = Running {
            options,
            sink,
            rules,
            patience: Patience::new(options),
        };
        ready.run(&running).await
    }
}
