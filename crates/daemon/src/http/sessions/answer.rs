//! A question of an agent is answered.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use http::request::Parts;
use protocol::{AnswerPermission, ErrorCode, PermissionAnswered, PermissionId, SessionId};

use super::problems::session_problem_of;
use super::{no_session, session_id};
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::problem::Problem;

/// Answers a question. The first answer counts, and is told to all who answer.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/permissions/{permission}", operation_id = "answer_permission", tag = "sessions",
    request_body = AnswerPermission,
    params(
        ("id" = String, Path, description = "The id of the session."),
        ("permission" = String, Path, description = "The id of the question."),
    ),
    responses(
        (status = 200, description = "The answer that counts, and whose it is.", body = PermissionAnswered),
        (status = 404, description = "`session_not_found` or `permission_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    ThePermission(session, permission): ThePermission,
    Actor(actor): Actor,
    body::Json(request): body::Json<AnswerPermission>,
) -> Result<Json<PermissionAnswered>, Problem> {
    match app
        .conversations
        .answer(session, permission, request.answer, actor.into())
        .await
    {
        Ok((answer, by)) => Ok(Json(PermissionAnswered {
            permission: permission.to_string(),
            answer: answer,
            by: by.to_string(),
        })),
        Err(error) => Err(session_problem_of(&app, error).await),
    }
}

/// The question that a request is about, and its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThePermission(SessionId, PermissionId);

impl FromRequestParts<Arc<App>> for ThePermission {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, app).await;
        let Ok(Path((session, permission))) = path else {
            return Err(no_session(
                "The id of the session or of the question is not UTF-8.",
            ));
        };
        let session = session_id(&session)?;
        let permission = permission.parse().map_err(|_| {
            let detail = format!("`{}` is not the id of a question.", permission.escape_debug());
            Problem::new(ErrorCode::PermissionNotFound, detail)
        })?;
        Ok(Self(session, permission))
    }
}
