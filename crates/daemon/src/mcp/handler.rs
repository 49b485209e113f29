//! Answers the requests of one client.

use std::sync::{Arc, Mutex, PoisonError};

use kernel::CancellationToken;
use protocol::ClientTransport;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, InitializeRequestParams,
    InitializeResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::actor;
use super::bounds::{TEXT_LIMIT_BYTES, beginning};
use super::call::{Call, Reply};
use super::clients::{About, Client};
use super::door::{Door, Said};
use super::error::ToolError;
use super::inside::Inside;
use super::resources;
use super::seat::Seat;
use super::tools::{self, Answer};
use crate::app::App;

/// What a model is told about all of this, once.
const INSTRUCTIONS: &str = "\
Tidelock lets several agents work on one repository without getting into each other's way. Do not edit files of the \
repository directly: call plan_open, work in the plan with plan_read, plan_write, plan_edit, plan_delete and plan_shell \
(they see the repository with your changes; nobody else does), look at plan_diff, then call plan_apply, which brings all \
of it into the user's files or nothing. plan_undo takes it back. overlaps shows what other agents are touching. context \
finds code for a question, lsp_* tools ask language servers. Long commands go on as jobs: job_status, job_logs, job_cancel.";

/// Answers one client.
pub(super) struct Handler {
    app: Arc<App>,
    inside: Inside,
    door: Door,
    /// Cancelled when the client can hear no answer any more.
    gone: CancellationToken,
    /// Guards the place of a client that stays; held to take it.
    seat: Mutex<Option<Seat>>,
}

impl Handler {
    pub(super) fn new(app: &Arc<App>, inside: &Inside, door: Door, gone: CancellationToken) -> Self {
        Self {
            app: Arc::clone(app),
            inside: inside.clone(),
            door,
            gone,
            seat: Mutex::new(None),
        }
    }

    /// The client that a request is from. One that stays is taken in with its first request.
    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Client>, ErrorData> {
        if let Some(seat) = self.seat().as_ref() {
            return Ok(Arc::clone(&seat.client));
        }
        let info = context.client_info().unwrap_or_else(nobody);
        let protocol = context.protocol_version();
        let protocol = protocol.as_ref().map_or("", |version| version.as_str());
        match &self.door {
            Door::Stream(said) => self.take_seat(said, &info, protocol, ClientTransport::Stdio),
            Door::Http => {
                let said = said_over_http(context);
                let name = actor::cleaned(&info.name);
                let actor = said.actor.clone().unwrap_or(name);
                let about = about(&said, &info, protocol, ClientTransport::Http);
                Ok(self.app.mcp.clients.passing(&actor, &about))
            }
        }
    }

    fn take_seat(
        &self,
        said: &Said,
        info: &Implementation,
        protocol: &str,
        transport: ClientTransport,
    ) -> Result<Arc<Client>, ErrorData> {
        let mut seat = self.seat();
        if let Some(seat) = seat.as_ref() {
            return Ok(Arc::clone(&seat.client));
        }
        let id = said.id.clone().unwrap_or_else(actor::ShortId::generate);
        let client = Client::new(actor::of(&info.name, &id), about(said, info, protocol, transport))
            .until(self.gone.clone());
        let taken = Seat::take(client, &self.app, &self.inside)
            .map_err(|full| ErrorData::internal_error(format!("{full}; try again later"), None))?;
        let client = Arc::clone(&taken.client);
        *seat = Some(taken);
        Ok(client)
    }

    fn seat(&self) -> std::sync::MutexGuard<'_, Option<Seat>> {
        self.seat.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a tool, and says how it ended.
    async fn run(
        &self,
        tool: &tools::Entry,
        call: &Call<'_>,
        given: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Answer, ToolError> {
        let Some(_place) = call.client.begin_call() else {
            return Err(ToolError::TooManyCalls);
        };
        let work = (tool.run)(call, given);
        match tool.interruption {
            tools::Interruption::Itself => work.await,
            tools::Interruption::Dropped => tokio::select! {
                biased;
                answer = work => answer,
                () = call.context.ct.cancelled() => Err(ToolError::Cancelled),
            },
        }
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
        let (said, transport) = match &self.door {
            Door::Stream(said) => (said.clone(), ClientTransport::Stdio),
            Door::Http => (said_over_http(&context), ClientTransport::HttpSession),
        };
        self.take_seat(
            &said,
            &request.client_info,
            answer.protocol_version.as_str(),
            transport,
        )?;
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
            inside: &self.inside,
            client: self.client(&context)?,
            context: &context,
            answers: request.input_responses,
            state: request.request_state,
        };
        let answered = self.run(tool, &call, request.arguments.unwrap_or_default()).await;
        let outcome = match &answered {
            Ok(Answer::Reply(reply)) if reply.failed => "failed",
            Ok(Answer::Reply(_)) => "done",
            Ok(Answer::ComeBack(_)) => "asked",
            Err(error) => error.code(),
        };
        self.app.metrics.mcp.called(tool.name, outcome);
        match answered {
            Ok(Answer::Reply(reply)) => Ok(result_of(reply).into()),
            Ok(Answer::ComeBack(question)) => Ok((*question).into()),
            Err(error) => Ok(result_of(Reply::text(error.text()).failed()).into()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let client = self.client(&context)?;
        let found = resources::list(&self.inside, &client.actor).await?;
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
        let read = resources::read(&self.app, &self.inside, &client.actor, &request.uri);
        tokio::select! {
            biased;
            found = read => found.map(Into::into),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        if let Some(seat) = self.seat().as_ref() {
            seat.client.forget_root();
        }
    }
}

/// A reply on the wire, within its bounds.
fn result_of(reply: Reply) -> CallToolResult {
    let whole = "ask for less, or read the resource with the full text";
    let reply = Reply {
        text: beginning(reply.text, TEXT_LIMIT_BYTES, whole),
        ..reply
    };
    let mut result = match reply.failed {
        true => CallToolResult::error(reply.content()),
        false => CallToolResult::success(reply.content()),
    };
    result.structured_content = reply.value;
    result
}

fn about(said: &Said, info: &Implementation, protocol: &str, transport: ClientTransport) -> About {
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
        directory: said.directory.clone(),
        environment: said.environment.clone(),
        grant: said.grant,
    }
}

/// A client that does not say who it is.
fn nobody() -> Implementation {
    Implementation::new("", "")
}

fn said_over_http(context: &RequestContext<RoleServer>) -> Said {
    match context.extensions.get::<::http::request::Parts>() {
        Some(parts) => Said::read(&parts.headers),
        None => Said::read(&::http::HeaderMap::new()),
    }
}
