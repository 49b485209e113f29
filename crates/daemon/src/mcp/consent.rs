//! Asks the user before something changes their files.
//!
//! If the client can ask, it shows a form: before protocol version 2026-07-28 in response to a request of ours, since
//! then in response to a result that says what is missing. A fingerprint identifies what the user was shown, so that
//! nothing else is applied.

use std::time::Duration;

use kernel::Deadline;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use serde_json::{Value, json};

use super::call::Call;
use super::error::ToolError;
use super::headers::Grant;
use crate::configuration::ApplyWord;

/// How long a user may take to answer. They may be at lunch; the plan waits anyway.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The name of the question, and of the only field in its form.
const QUESTION: &str = "confirm";

/// Whether the user allows a client to do something.
#[derive(Clone, Debug)]
pub(super) enum Consent {
    Given,
    Declined,
    /// The client can't ask its user.
    CannotAsk,
    /// The client has to ask its user this, then call again.
    AskFirst(Box<InputRequiredResult>),
}

/// Asks the user for consent if needed. `seen` identifies what it is about, and stays with the question.
pub(super) async fn consent(call: &Call<'_>, question: &str, seen: &str) -> Result<Consent, ToolError> {
    match (call.app.mcp.section.apply(), call.client.about.grant) {
        (ApplyWord::Never, _) => {
            return Err(ToolError::NotAllowed(
                "agents can't change the workspace here (`mcp.apply` is `never` in config.toml); plan_shell works \
                 in the plan"
                    .to_owned(),
            ));
        }
        (ApplyWord::Allow, _) | (ApplyWord::Ask, Grant::Allowed) => return Ok(Consent::Given),
        (ApplyWord::Ask, Grant::AsConfigured) => {}
    }
    if !can_ask(call) {
        return Ok(Consent::CannotAsk);
    }
    let Some(form) = form(question) else {
        return Ok(Consent::CannotAsk);
    };
    let is_since_2026 = call
        .context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    match is_since_2026 {
        true => Ok(later(call, form, seen)),
        false => now(call, form).await,
    }
}

/// Whether the client can show a form.
fn can_ask(call: &Call<'_>) -> bool {
    let capabilities = call.context.client_capabilities();
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    // Forms were the only kind for a long time, so a client that names no kind supports them.
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

fn form(question: &str) -> Option<ElicitRequestParams> {
    let schema = json!({
        "type": "object",
        "properties": {
            QUESTION: {
                "type": "boolean",
                "title": "Go ahead?",
                "description": "Yes goes ahead; no changes nothing.",
                "default": true,
            },
        },
        "required": [QUESTION],
    });
    let Value::Object(schema) = schema else {
        return None;
    };
    let requested_schema = ElicitationSchema::from_json_schema(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.to_owned(),
        requested_schema,
    })
}

/// Asks with a request of ours, and waits for the answer.
async fn now(call: &Call<'_>, form: ElicitRequestParams) -> Result<Consent, ToolError> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let answer = tokio::select! {
        answer = call.context.peer.send_request(request) => answer,
        () = call.interrupted() => return Err(ToolError::Cancelled),
        () = Deadline::after(&call.app.clock, PATIENCE).passed() => return Ok(Consent::CannotAsk),
    };
    match answer {
        Ok(ClientResult::ElicitResult(result)) => Ok(match result.action {
            ElicitationAction::Accept => answer_in(result.content.as_ref()),
            _ => Consent::Declined,
        }),
        Ok(other) => {
            tracing::debug!(?other, "a client answered something else than it was asked");
            Ok(Consent::CannotAsk)
        }
        Err(error) => {
            tracing::debug!(%error, "a client cannot ask its user");
            Ok(Consent::CannotAsk)
        }
    }
}

/// Asks with a result that says what is missing, unless this call already brings the answer.
fn later(call: &Call<'_>, form: ElicitRequestParams, seen: &str) -> Consent {
    let answer = call.answers.as_ref().and_then(|answers| answers.get(QUESTION));
    match answer {
        // An answer counts only for what was shown with the question. If that has changed, ask again.
        Some(answer) if call.state.as_deref() == Some(seen) => match answer.get("action") {
            Some(action) if action == "accept" => answer_in(answer.get("content")),
            _ => Consent::Declined,
        },
        _ => {
            let question = InputRequest::Elicitation(ElicitRequest::new(form));
            let questions = InputRequests::from([(QUESTION.to_owned(), question)]);
            Consent::AskFirst(Box::new(InputRequiredResult::new(
                Some(questions),
                Some(seen.to_owned()),
            )))
        }
    }
}

fn answer_in(content: Option<&Value>) -> Consent {
    match content.and_then(|content| content.get(QUESTION)) {
        Some(Value::Bool(true)) => Consent::Given,
        _ => Consent::Declined,
    }
}
