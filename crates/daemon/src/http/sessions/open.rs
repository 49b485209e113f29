//! Opens a session.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use protocol::{AgentChoice, OpenSession, PermissionRule};
use sessions::NewSession;

use super::look::shown;
use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::ids::id_in;
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;

/// How many rules a session may start with. They are stored in its head, and every request for permission is checked
/// against all of them.
const RULES_LIMIT: usize = 256;
/// The longest name or pattern of a rule.
const RULE_LIMIT_BYTES: usize = 4096;
/// The total size of all rules.
const RULES_LIMIT_BYTES: usize = 128 * 1024;

/// Opens a session: a conversation about a directory.
///
/// Nothing runs until the first prompt.
#[utoipa::path(
    post, path = "/v1/sessions", operation_id = "open_session", tag = "sessions", request_body = OpenSession,
    responses((status = 201, description = "The session.", body = protocol::Session), problems::Open),
)]
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    body::Json(request): body::Json<OpenSession>,
) -> Result<(StatusCode, Json<protocol::Session>), Problem> {
    let new = NewSession {
        directory: PathBuf::from(request.directory),
        title: request.title.unwrap_or_default(),
        agent: request.agent.unwrap_or_else(|| AgentChoice {
            name: app.sessions.default_agent().to_owned(),
            ..AgentChoice::default()
        }),
        rules: checked_rules(request.rules)?,
        plan: request
            .plan
            .as_deref()
            .map(|plan| id_in("plan", plan))
            .transpose()?,
        by: caller.by(),
    };
    let session = app.sessions.create(new).await?;
    Ok((StatusCode::CREATED, shown(&app, &session)))
}

fn checked_rules(rules: Vec<PermissionRule>) -> Result<Vec<PermissionRule>, Problem> {
    if rules.len() > RULES_LIMIT {
        return Err(invalid("rules", &format!("has more than {RULES_LIMIT} entries")));
    }
    for (index, rule) in rules.iter().enumerate() {
        let pattern = rule.pattern.as_deref().unwrap_or_default();
        if rule.tool.is_empty() {
            return Err(invalid(&format!("rules.{index}.tool"), "is empty"));
        }
        if rule.tool.len() > RULE_LIMIT_BYTES || pattern.len() > RULE_LIMIT_BYTES {
            let why = format!("has more than {RULE_LIMIT_BYTES} bytes");
            return Err(invalid(&format!("rules.{index}"), &why));
        }
    }
    let bytes = rules
        .iter()
        .map(|rule| rule.tool.len() + rule.pattern.as_ref().map_or(0, String::len));
    if bytes.sum::<usize>() > RULES_LIMIT_BYTES {
        let why = format!("has more than {RULES_LIMIT_BYTES} bytes in all");
        return Err(invalid("rules", &why));
    }
    Ok(rules)
}
