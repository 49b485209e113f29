//! Answers the requests of one client.

use std::sync::{Arc, Mutex, PoisonError};

use kernel::CancellationToken;
use protocol::{ClientTransport, ErrorCode, RequestId};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    InitializeRequestParams, InitializeResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use sessions::tools::{ANSWER_LIMIT_BYTES, cut};

use super::actor;
use super::call::{Call, Reply};
use super::clients::{About, Client};
use super::connection::Connection;
use super::error::ToolError;
use super::headers::ClientHeaders;
use super::resources;
use super::tools::{self, Answer};
use crate::app::App;
use crate::http::guard::body_too_large;
use crate::http::problem::describe;
use crate::http::{Problem, STUMBLED, catch_panic};

/// The instructions for models, sent once.
const INSTRUCTIONS: &str = "\
Tidelock lets several agents work on one repository without getting in each other's way. Do not edit files of the \
repository directly: call plan_open, work in the plan with plan_read, plan_write, plan_edit, plan_delete and plan_shell \
(they see the repository with your changes; other agents don't), review plan_diff, then call plan_apply, which applies all \
of the changes to the user's files or none. plan_undo reverts them. overlaps shows what other agents are changing. context \
finds the code relevant to a question, lsp_* tools ask language servers. Long commands keep running as jobs: job_status, \
job_logs, job_cancel.";

pub(super) enum Channel {
    /// With a stream of lines, which began with these headers.
    Stream(ClientHeaders),
    /// With HTTP. Each request has its own headers.
    Http,
}

pub(super) struct Handler {
    app: Arc<App>,
    channel: Channel,
    /// Cancelled when the client can no longer receive answers.
    gone: CancellationToken,
    /// Guards the entry of a client that stays connected; held only to take it.
    connection: Mutex<Option<Connection>>,
}

impl Handler {
    pub(super) fn new(app: &Arc<App>, channel: Channel, gone: CancellationToken) -> Self {
        Self {
            app: Arc::clone(app),
            channel,
            gone,
            connection: Mutex::new(None),
        }
    }

    /// The client that sent a request. One that stays connected is added with its first request.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Client>, ErrorData> {
        if let Some(connection) = self.connection().as_ref() {
            return Ok(Arc::clone(&connection.client));
        }
        // Some don't say who they are.
        let info = context
            .client_info()
            .unwrap_or_else(|| Implementation::new("", ""));
        let protocol = context.protocol_version();
        let protocol = protocol.as_ref().map_or("", |version| version.as_str());
        match &self.channel {
            Channel::Stream(headers) => self.join(headers, &info, protocol, ClientTransport::Stdio),
            Channel::Http => {
                let headers = http_headers(context);
                let name = actor::cleaned(&info.name);
                let actor = headers.actor.clone().unwrap_or(name);
                let about = about(&headers, &info, protocol, ClientTransport::Http);
                Ok(self.app.mcp.clients.passing(&actor, &about))
            }
        }
    }

    fn join(
        &self,
        headers: &ClientHeaders,
        info: &Implementation,
        protocol: &str,
        transport: ClientTransport,
    ) -> Result<Arc<Client>, ErrorData> {
        let mut connection = self.connection();
        if let Some(connection) = connection.as_ref() {
            return Ok(Arc::clone(&connection.client));
        }
        let id = headers.id.clone().unwrap_or_else(actor::ShortId::generate);
        let about = about(headers, info, protocol, transport);
        let client = Client::new(actor::of(&info.name, &id), about).until(self.gone.clone());
        let opened = Connection::open(client, &self.app)
            .map_err(|full| ErrorData::internal_error(format!("{full}; try again later"), None))?;
        let client = Arc::clone(&opened.client);
        *connection = Some(opened);
        Ok(client)
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, tool: &tools::Entry, call: &Call<'_>, given: Value) -> Result<Answer, ToolError> {
        let Some(_permit) = call.client.begin_call() else {
            return Err(ToolError::TooManyCalls);
        };
        if text_bytes(&given) > self.app.body_limit_bytes {
            return Err(body_too_large(&self.app).into());
        }
        let work = tool.run(call, given);
        match tool.is_read_only() {
            // A tool that changes something handles its own cancellation.
            false => work.await,
            true => tokio::select! {
                biased;
                answer = work => answer,
                () = call.context.ct.cancelled() => Err(ToolError::Cancelled),
            },
        }
    }

    /// Runs a tool with what every HTTP request also has: an id, a log line if it may change something, and isolation
    /// from panics.
    async fn run_logged(
        &self,
        tool: &tools::Entry,
        call: &Call<'_>,
        given: Value,
    ) -> Result<Answer, ToolError> {
        let (request_id, began) = (RequestId::generate(), self.app.clock.now());
        let (actor, name) = (&call.client.actor, &tool.name);
        let answered = catch_panic(self.run(tool, call, given)).await;
        let answered = answered.unwrap_or_else(|panic| {
            tracing::error!(%request_id, actor, tool = name, panic, "a tool panicked");
            Err(Problem::new(ErrorCode::Internal, STUMBLED).into())
        });
        if let Err(ToolError::Problem(problem)) = &answered
            && let Some(cause) = problem.internal_cause()
        {
            tracing::error!(%request_id, actor, tool = name, cause = describe(cause), "a tool failed inside the daemon");
        }
        let outcome = outcome(&answered);
        let elapsed_us = self.app.clock.now().saturating_duration_since(began).as_micros();
        match tool.is_read_only() {
            // Agents call these thousands of times, which would flood the log.
            true => tracing::debug!(%request_id, actor, tool = name, outcome, elapsed_us, "tool call"),
            false => tracing::info!(%request_id, actor, tool = name, outcome, elapsed_us, "tool call"),
        }
        answered
    }
}

fn outcome(answered: &Result<Answer, ToolError>) -> &'static str {
    match answered {
        Ok(Answer::Reply(reply)) if reply.failed => "failed",
        Ok(Answer::Reply(_)) => "done",
        Ok(Answer::AskFirst(_)) => "asked",
        Err(error) => error.code(),
    }
}

/// The total size of the text in arguments. A line of a stream may be longer than the body of a request, but its text
/// may not.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members.values().map(text_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("tidelock", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&request)?;
        let (headers, transport) = match &self.channel {
            Channel::Stream(headers) => (headers.clone(), ClientTransport::Stdio),
            Channel::Http => (http_headers(&context), ClientTransport::HttpSession),
        };
        let protocol = answer.protocol_version.as_str();
        self.join(&headers, &request.client_info, protocol, transport)?;
        context.peer.set_peer_info(request);
        Ok(answer)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.client(&context)?;
        Ok(ListToolsResult::with_all_items(tools::list().to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            let why = format!("there is no tool `{}`; tools/list shows them all", request.name);
            return Err(ErrorData::invalid_params(why, None));
        };
        let call = Call {
            app: &self.app,
            client: self.client(&context)?,
            context: &context,
            answers: request.input_responses,
            state: request.request_state,
        };
        let given = Value::Object(request.arguments.unwrap_or_default());
        let answered = self.run_logged(tool, &call, given).await;
        self.app.metrics.mcp.called(&tool.name, outcome(&answered));
        match answered {
            Ok(Answer::Reply(reply)) => Ok(result_of(reply).into()),
            Ok(Answer::AskFirst(question)) => Ok((*question).into()),
            Err(error) => Ok(result_of(Reply::text(error.text()).failed()).into()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.client(&context)?;
        let found = resources::list(&self.app).await?;
        Ok(ListResourcesResult::with_all_items(found))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let client = self.client(&context)?;
        let read = resources::read(&self.app, &client.actor, &request.uri);
        tokio::select! {
            biased;
            found = read => found.map(Into::into),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        if let Some(connection) = self.connection().as_ref() {
            connection.client.forget_root();
        }
    }
}

/// Converts a reply for the wire, within the size limits.
fn result_of(reply: Reply) -> CallToolResult {
    let rest = "ask for less, or read the resource with the full text";
    let content = vec![ContentBlock::text(cut(reply.text, ANSWER_LIMIT_BYTES, rest))];
    let mut result = match reply.failed {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    result.structured_content = reply.value;
    result
}

fn about(
    headers: &ClientHeaders,
    info: &Implementation,
    protocol: &str,
    transport: ClientTransport,
) -> About {
    About {
        name: actor::cleaned(&info.name),
        version: info
            .version
            .chars()
            .take(60)
            .filter(|character| !character.is_control())
            .collect(),
        protocol: protocol.to_owned(),
        transport,
        directory: headers.directory.clone(),
        environment: headers.environment.clone(),
        grant: headers.grant,
    }
}

fn http_headers(context: &RequestContext<RoleServer>) -> ClientHeaders {
    match context.extensions.get::<::http::request::Parts>() {
        Some(parts) => ClientHeaders::read(&parts.headers),
        None => ClientHeaders::read(&::http::HeaderMap::new()),
    }
}
