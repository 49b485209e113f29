//! An editor that is made of the published client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, CloseSessionRequest, ContentBlock, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, NewSessionRequest, PermissionOptionKind, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ResourceLink, SelectedPermissionOutcome, SessionId,
    SessionNotification, TextContent,
};
use agent_client_protocol::{AcpAgent, AcpAgentConfig, Agent, Client};
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// All of it takes seconds.
const LIMIT: Duration = Duration::from_secs(120);

type Updates = Arc<Mutex<Vec<Value>>>;

pub(crate) async fn run(arguments: Vec<String>) -> Result<()> {
    let mut arguments = arguments.into_iter();
    let directory = PathBuf::from(arguments.next().context("a directory is missing")?);
    let program = arguments.next().context("a program is missing")?;
    let agent = AcpAgent::new(AcpAgentConfig::new(program).args(arguments));
    let (updates, asked) = (Updates::default(), Updates::default());
    let (hearing, asking, seen) = (Arc::clone(&updates), Arc::clone(&asked), Arc::clone(&updates));
    let talk = Client
        .v1()
        .on_receive_notification(
            async move |told: SessionNotification, _| {
                hearing
                    .lock()
                    .unwrap()
                    .push(serde_json::to_value(&told.update).unwrap());
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                asking
                    .lock()
                    .unwrap()
                    .push(serde_json::to_value(&request).unwrap());
                let mut options = request.options.iter();
                let allow = options.find(|option| option.kind == PermissionOptionKind::AllowOnce);
                responder.respond(RequestPermissionResponse::new(match allow {
                    Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                        option.option_id.clone(),
                    )),
                    None => RequestPermissionOutcome::Cancelled,
                }))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, async move |editor: ConnectionTo<Agent>| {
            let whole = whole(&editor, directory, &seen).await?;
            println!("{}", json!({ "seen": whole, "asked": *asked.lock().unwrap() }));
            Ok(())
        });
    tokio::time::timeout(LIMIT, talk)
        .await
        .context("it takes too long")??;
    Ok(())
}

fn text(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text.to_owned()))
}

/// What came since the last look.
fn taken(updates: &Updates) -> Vec<Value> {
    std::mem::take(&mut *updates.lock().unwrap())
}

/// Each step, with how it was answered and what was told meanwhile.
async fn whole(
    editor: &ConnectionTo<Agent>,
    directory: PathBuf,
    updates: &Updates,
) -> Result<Vec<Value>, agent_client_protocol::Error> {
    let mut steps = Vec::new();
    let begun = editor
        .send_request(InitializeRequest::new(ProtocolVersion::V1))
        .block_task()
        .await?;
    steps.push(json!({ "step": "initialize", "answer": begun }));
    let new = editor
        .send_request(NewSessionRequest::new(directory.clone()))
        .block_task()
        .await?;
    let session: SessionId = new.session_id.clone();
    steps.push(json!({ "step": "new", "answer": new }));
    let link = ContentBlock::ResourceLink(ResourceLink::new(
        "a.txt",
        format!("file://{}/a.txt", directory.display()),
    ));
    let asked = editor
        .send_request(PromptRequest::new(session.clone(), vec![text("change "), link]))
        .block_task()
        .await?;
    steps.push(json!({ "step": "prompt", "answer": asked, "updates": taken(updates) }));
    let applied = editor
        .send_request(PromptRequest::new(session.clone(), vec![text("/apply")]))
        .block_task()
        .await?;
    steps.push(json!({ "step": "apply", "answer": applied, "updates": taken(updates) }));
    let stopping = editor.send_request(PromptRequest::new(session.clone(), vec![text("again")]));
    editor.send_notification(CancelNotification::new(session.clone()))?;
    let stopped = stopping.block_task().await?;
    steps.push(json!({ "step": "cancel", "answer": stopped }));
    let listed = editor
        .send_request(ListSessionsRequest::new().cwd(directory.clone()))
        .block_task()
        .await?;
    steps.push(json!({ "step": "list", "answer": listed }));
    let closed = editor
        .send_request(CloseSessionRequest::new(session.clone()))
        .block_task()
        .await?;
    steps.push(json!({ "step": "close", "answer": closed }));
    taken(updates);
    let loaded = editor
        .send_request(LoadSessionRequest::new(session.clone(), directory))
        .block_task()
        .await?;
    steps.push(json!({ "step": "load", "answer": loaded, "updates": taken(updates) }));
    Ok(steps)
}
