//! What an agent has in a turn.

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

/// What an agent can do. Clones are the same toolbox.
#[derive(Clone, Debug)]
pub struct Toolbox {
    options: Arc<ToolboxOptions>,
    kinds: Arc<[Kind]>,
}

impl Toolbox {
    /// A toolbox for one turn.
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

    /// What there is.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |kind: &Kind| kind.spec(&self.options.ports);
        self.kinds.iter().map(spec).collect()
    }

    /// Calls a tool, and tells the turn's stream everything about it, from its start to its end: bad arguments, a denial and
    /// a failure too. When it returns, nothing of it runs any more that could change anything.
    ///
    /// *Cancel safety*: dropped half-way, the stream is not told of its end, and a command may go on; stop the turn instead.
    pub async fn call(&self, call: ToolCall, sink: ToolSink) -> ToolAnswer {
        let ready = self.prepare(call).await;
        self.carry_out(ready, &sink).await
    }

    /// Calls several: those that read run together, those that write run in order for each path, and what may write anywhere
    /// runs alone. A call sees what those before it have written. The answers are in the order of the calls.
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
        // Without its stream the turn is over, and what nobody is told must not be done.
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
