//! One prompt, from opening the agent's session to the end of its answer.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kernel::{CancellationToken, Cause, Deadline};
use process::Tasks;
use protocol::{PlanId, ToolState, TurnError, Usage};
use serde_json::{Value, json};

use super::files::{Files, Roots};
use super::history;
use super::memory::{Memory, Remembered};
use super::permission::Ends;
use super::requests::{Request, Requests, parsed};
use super::server::AcpServer;
use super::settings::AcpSettings;
use super::terminals::Terminals;
use super::updates::Updates;
use super::wire::{
    CallEnd, Closed, ConfigOption, Connection, Incoming, Message, PromptEnd, RequestPermission, RpcError,
    StopReason,
};
use crate::agent::{AgentEnd, AgentTurn};
use crate::ports::Ports;
use crate::prompt::StoredAttachment;

/// The most bytes of an attached text or image that go into the prompt itself.
const ATTACHMENT_LIMIT_BYTES: u64 = 4 * 1024 * 1024;

/// One prompt, and everything it needs.
pub(super) struct Drive {
    turn: AgentTurn,
    settings: AcpSettings,
    server: AcpServer,
    connection: Connection,
    workspace: PathBuf,
    ports: Ports,
    tasks: Tasks,
}

/// A session of the agent.
struct Prepared {
    id: String,
    /// Its config options.
    choices: Vec<ConfigOption>,
    /// Text to put before the prompt, if the agent doesn't know the conversation.
    before: Option<String>,
}

impl Drive {
    pub(super) fn new(
        turn: AgentTurn,
        settings: AcpSettings,
        server: AcpServer,
        connection: Connection,
        workspace: PathBuf,
        ports: Ports,
        tasks: Tasks,
    ) -> Self {
        Self {
            turn,
            settings,
            server,
            connection,
            workspace,
            ports,
            tasks,
        }
    }

    /// Runs the prompt to its end. The process lives on, but none of its requests do.
    pub(super) async fn run(mut self) -> AgentEnd {
        let Some(plan) = self.turn.desk.opened() else {
            return AgentEnd::failed("acp_plan", "there is no plan to work in");
        };
        let prepared = match self.prepare().await {
            Ok(prepared) => prepared,
            Err(end) => return end,
        };
        let blocks = match self.blocks(&prepared).await {
            Ok(blocks) => blocks,
            Err(end) => return end,
        };
        self.prompt(plan, prepared.id, blocks).await
    }

    /// Opens a session of the agent: the previous one, if the agent can resume it and knows the whole conversation.
    async fn prepare(&mut self) -> Result<Prepared, AgentEnd> {
        let memory = Memory::read(&self.turn.log, self.turn.session).await;
        let memory = memory.map_err(|error| AgentEnd::failed("acp_session", error.to_string()))?;
        let known = memory.usable(&self.settings.name, self.turn.previous);
        let known = known.map(|known| known.id.clone());
        let taken_up = match known {
            Some(id) => self.take_up(id).await?,
            None => None,
        };
        let prepared = match taken_up {
            Some(prepared) => prepared,
            None => {
                let before = history::before(&self.turn.log, self.turn.previous).await;
                let before = before.unwrap_or_else(|error| {
                    tracing::warn!(%error, turn = %self.turn.turn, "what was said before cannot be read");
                    None
                });
                let prepared = self.new_session().await?;
                Prepared { before, ..prepared }
            }
        };
        self.choose_model(&prepared).await?;
        let remembered = Remembered {
            agent: self.settings.name.clone(),
            id: prepared.id.clone(),
            after: self.turn.turn,
        };
        memory.write(remembered).await;
        Ok(prepared)
    }

    async fn take_up(&mut self, id: String) -> Result<Option<Prepared>, AgentEnd> {
        let capabilities = &self.server.initialized().agent_capabilities;
        let method = match (
            &capabilities.session_capabilities.resume,
            capabilities.load_session,
        ) {
            (Some(_), _) => "session/resume",
            (None, true) => "session/load",
            (None, false) => return Ok(None),
        };
        let params = json!({ "sessionId": id, "cwd": self.server.directory(), "mcpServers": [] });
        match self.call(method, &params).await {
            Ok(answer) => Ok(Some(Prepared {
                id,
                choices: ConfigOption::of(&answer),
                before: None,
            })),
            Err(CallEnd::Refused(error)) => {
                tracing::info!(%error, "an agent cannot take its session up again");
                Ok(None)
            }
            Err(end) => Err(self.ended(end).await),
        }
    }

    async fn new_session(&mut self) -> Result<Prepared, AgentEnd> {
        let params = json!({ "cwd": self.server.directory(), "mcpServers": [] });
        let answer = match self.call("session/new", &params).await {
            Ok(answer) => answer,
            Err(end) => return Err(self.ended(end).await),
        };
        match answer.get("sessionId").and_then(Value::as_str) {
            Some(id) => Ok(Prepared {
                id: id.to_owned(),
                choices: ConfigOption::of(&answer),
                before: None,
            }),
            None => Err(AgentEnd::failed(
                "acp_protocol",
                "the agent's answer to `session/new` names no session",
            )),
        }
    }

    /// Selects the model that the user wants, if the agent offers a choice.
    async fn choose_model(&mut self, prepared: &Prepared) -> Result<(), AgentEnd> {
        let Some(model) = self.turn.choice.model.clone() else {
            return Ok(());
        };
        let no_choice = |text| AgentEnd::failed("acp_model", text);
        let choice = prepared.choices.iter().find(|choice| choice.is_model());
        let choice = choice.ok_or_else(|| no_choice("the agent offers no choice of models".to_owned()))?;
        let params = json!({ "sessionId": prepared.id, "configId": choice.id, "value": model });
        match self.call("session/set_config_option", &params).await {
            Ok(_) => Ok(()),
            Err(CallEnd::Refused(error)) => Err(no_choice(format!(
                "the agent has no model `{model}`: {}",
                error.in_words()
            ))),
            Err(end) => Err(self.ended(end).await),
        }
    }

    async fn call(&mut self, method: &str, params: &Value) -> Result<Value, CallEnd> {
        let deadline = Deadline::after(&self.turn.clock, self.settings.start_timeout);
        let scope = self.turn.scope.clone();
        self.connection.call(method, params, &deadline, &scope).await
    }

    /// The prompt as content blocks of the protocol.
    async fn blocks(&self, prepared: &Prepared) -> Result<Vec<Value>, AgentEnd> {
        let text = &self.turn.prompt.text;
        let text = match &prepared.before {
            Some(before) => history::with(before, text),
            None => text.clone(),
        };
        let mut blocks = vec![json!({ "type": "text", "text": text })];
        for attachment in &self.turn.prompt.attachments {
            match self.attached(attachment).await {
                Ok(block) => blocks.push(block),
                Err(text) => {
                    let text = format!("`{}` cannot be given to the agent: {text}", attachment.about.name);
                    return Err(AgentEnd::failed("acp_attachment", text));
                }
            }
        }
        Ok(blocks)
    }

    async fn attached(&self, attachment: &StoredAttachment) -> Result<Value, String> {
        if attachment.about.size_bytes > ATTACHMENT_LIMIT_BYTES {
            return Err(format!("it has more than {ATTACHMENT_LIMIT_BYTES} bytes"));
        }
        let contents = self.turn.log.read_blobs(&[attachment.content]).await;
        let contents = contents.map_err(|error| error.to_string())?;
        let content = contents.into_iter().next().ok_or("its content is gone")?;
        let can = &self.server.initialized().agent_capabilities.prompt_capabilities;
        let (name, media_type) = (&attachment.about.name, &attachment.about.media_type);
        if media_type.starts_with("image/") {
            return match can.image {
                true => {
                    Ok(json!({ "type": "image", "data": BASE64.encode(content), "mimeType": media_type }))
                }
                false => Err("the agent takes no pictures".to_owned()),
            };
        }
        let text = String::from_utf8(content).map_err(|_| "it is neither text nor a picture")?;
        if can.embedded_context {
            let resource =
                json!({ "uri": format!("attachment:///{name}"), "mimeType": media_type, "text": text });
            return Ok(json!({ "type": "resource", "resource": resource }));
        }
        Ok(json!({ "type": "text", "text": format!("{name}:\n\n{text}") }))
    }

    async fn prompt(&mut self, plan: PlanId, session: String, blocks: Vec<Value>) -> AgentEnd {
        let token = CancellationToken::new();
        let roots = Roots {
            seen: self.server.root().to_owned(),
            workspace: self.workspace.clone(),
        };
        let terminals = Arc::new(Terminals::new(
            Arc::clone(&self.ports.shell),
            self.turn.desk.clone(),
            plan,
            roots.clone(),
            self.tasks.clone(),
            token.clone(),
        ));
        let files = Files {
            desk: self.turn.desk.clone(),
            plan,
            tool: self.settings.name.clone(),
            roots: roots.clone(),
        };
        let requests = Requests::new(
            self.connection.outbox().clone(),
            files,
            Arc::clone(&terminals),
            self.turn.asker.clone(),
            self.tasks.clone(),
            Ends {
                over: token.scope(),
                stopped: self.turn.scope.clone(),
            },
        );
        let mut updates = Updates::new(self.turn.sink.clone(), Arc::clone(&terminals), roots);
        let params = json!({ "sessionId": session, "prompt": blocks });
        let ours = self.connection.request("session/prompt", &params).await;
        let end = self.answer(ours, &session, &requests, &mut updates, &token).await;
        // Everything the agent still has running through us ends before the turn does.
        token.cancel(Cause::new("the turn", "it is over"));
        requests.all_ended().await;
        terminals.all_ended().await;
        let end = match end {
            Ok(answer) => self.done(answer).await,
            Err(end) => self.ended(end).await,
        };
        let state = match end {
            AgentEnd::Cancelled => ToolState::Cancelled,
            _ => ToolState::Failed,
        };
        updates.finish(state).await.ok();
        end
    }

    /// Listens until the prompt is answered. When the turn should stop, the agent is notified and gets some time to
    /// finish.
    async fn answer(
        &mut self,
        ours: u64,
        session: &str,
        requests: &Requests,
        updates: &mut Updates,
        token: &CancellationToken,
    ) -> Result<Value, CallEnd> {
        let mut grace = None;
        loop {
            let patience = grace.clone().unwrap_or_else(Deadline::never);
            let incoming = tokio::select! {
                biased;
                _ = self.turn.scope.wait(), if grace.is_none() => {
                    grace = Some(Deadline::after(&self.turn.clock, self.settings.cancel_grace));
                    token.cancel(Cause::new("the turn", "it is to stop"));
                    // The agent may not be reading its input, and must not delay the stop.
                    let params = json!({ "sessionId": session });
                    tokio::select! {
                        biased;
                        () = self.connection.outbox().notify("session/cancel", &params) => {}
                        () = patience_of(&grace).passed() => {}
                    }
                    continue;
                }
                () = patience.passed() => return Err(CallEnd::Cancelled),
                incoming = self.connection.next() => incoming,
            };
            let message = match incoming {
                Incoming::Message(message) => message,
                Incoming::Closed(closed) => return Err(CallEnd::Closed(closed)),
            };
            let taken = match message {
                Message::Response { id, result } if id == Some(ours) => {
                    return result.map_err(CallEnd::Refused);
                }
                Message::Response { .. } => Ok(()),
                Message::Notification { method, mut params } if method == "session/update" => {
                    updates.take(params["update"].take()).await
                }
                Message::Notification { .. } => Ok(()),
                Message::Request { id, method, params } if method == "session/request_permission" => {
                    match parsed::<RequestPermission>(params) {
                        Ok(request) => match updates.wish(request.tool_call.clone()).await {
                            Ok(wish) => {
                                requests
                                    .take(id, Request::Permission(Box::new(request), wish))
                                    .await;
                                Ok(())
                            }
                            Err(error) => Err(error),
                        },
                        Err(error) => {
                            self.connection.outbox().answer(&id, Err(error)).await;
                            Ok(())
                        }
                    }
                }
                Message::Request { id, method, params } => {
                    requests.take(id, Request::Other { method, params }).await;
                    Ok(())
                }
            };
            // The turn accepts nothing more. Its scope is cancelled then, too.
            if taken.is_err() {
                return Err(CallEnd::Cancelled);
            }
        }
    }

    async fn done(&self, answer: Value) -> AgentEnd {
        let end: PromptEnd = match serde_json::from_value(answer) {
            Ok(end) => end,
            Err(error) => {
                let text = format!("the agent's answer to the prompt cannot be read: {error}");
                return AgentEnd::failed("acp_protocol", text);
            }
        };
        if let Some(usage) = end.usage {
            let used = Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                requests: 1,
                cost_micros: 0,
            };
            self.turn.sink.used(used).await.ok();
        }
        if self.turn.scope.is_cancelled() {
            return AgentEnd::Cancelled;
        }
        match end.stop_reason {
            StopReason::EndTurn | StopReason::Other => AgentEnd::Done,
            StopReason::MaxTokens => AgentEnd::failed(
                "acp_max_tokens",
                "the agent has used up the tokens that it may use",
            ),
            StopReason::MaxTurnRequests => AgentEnd::failed(
                "acp_max_requests",
                "the agent has asked its model as often as it may",
            ),
            StopReason::Refusal => AgentEnd::failed("acp_refusal", "the agent does not want to go on"),
            StopReason::Cancelled => {
                AgentEnd::failed("acp_cancelled", "the agent stopped, and nobody here asked it to")
            }
        }
    }

    /// The agent will not answer.
    async fn ended(&self, end: CallEnd) -> AgentEnd {
        if self.turn.scope.is_cancelled() {
            return AgentEnd::Cancelled;
        }
        match end {
            CallEnd::Cancelled => AgentEnd::Cancelled,
            CallEnd::Closed(Closed::EndOfFile | Closed::Broken(_)) => AgentEnd::Interrupted(TurnError {
                code: "acp_ended".to_owned(),
                text: self.server.how_it_ended().await.to_string(),
            }),
            CallEnd::Closed(closed) => {
                AgentEnd::failed("acp_protocol", format!("the agent was stopped: {closed}"))
            }
            CallEnd::TimedOut => {
                let seconds = self.settings.start_timeout.as_secs();
                let text = format!("the agent did not open a session within {seconds} s");
                AgentEnd::failed("acp_no_answer", text)
            }
            CallEnd::Refused(error) if error.code == RpcError::AUTH_REQUIRED => {
                AgentEnd::failed("acp_auth", self.how_to_sign_in(&error))
            }
            CallEnd::Refused(error) => AgentEnd::failed("acp_error", error.in_words()),
        }
    }

    fn how_to_sign_in(&self, error: &RpcError) -> String {
        let mut text = format!("sign in to the agent first: {}", error.in_words());
        for method in &self.server.initialized().auth_methods {
            let description = method.description.as_deref().unwrap_or_default();
            text.push_str(&format!("; {} {description}", method.name));
        }
        text.trim_end().to_owned()
    }
}

fn patience_of(grace: &Option<Deadline>) -> Deadline {
    grace.clone().unwrap_or_else(Deadline::never)
}
