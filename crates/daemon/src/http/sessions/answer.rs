//! Answers a question of an agent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{AnswerPermission, PermissionAnswered, PermissionId, SessionId};

use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::ids::Ids;
use crate::http::problem::Problem;

/// Answers a permission request.
///
/// The first answer counts, and is returned to everyone who answers.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/permissions/{permission}", operation_id = "answer_permission", tag = "sessions",
    request_body = AnswerPermission,
    responses(
        (status = 200, description = "The answer that counts, and whose it is.", body = PermissionAnswered),
        problems::Answer,
    ),
)]
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Ids(session, permission): Ids<SessionId, PermissionId>,
    caller: Caller,
    body::Json(request): body::Json<AnswerPermission>,
) -> Result<Json<PermissionAnswered>, Problem> {
    let (answer, by) = app
        .sessions
        .answer(session, permission, request.answer, caller.by())
        .await?;
    Ok(Json(PermissionAnswered {
        permission: permission.to_string(),
        answer,
        by: by.to_string(),
    }))
}
