//! A question about code.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{ContextAnswer, ContextQuestion};

use super::problems;
use crate::app::App;
use crate::context::acts;
use crate::http::body;
use crate::http::problem::Problem;

/// Finds the code relevant to a question.
///
/// Several strategies search at once, and the answer includes the result of each. A strategy that fails,
/// takes too long, or is skipped because it failed too often affects neither the answer nor the other
/// strategies. The first question about a workspace starts building its index, and doesn't wait for it. If
/// the caller disconnects, the question is cancelled.
#[utoipa::path(
    post, path = "/v1/context", operation_id = "ask_context", tag = "context", request_body = ContextQuestion,
    responses(
        (status = 200, description = "What was found, which may be nothing.", body = ContextAnswer),
        problems::Ask,
    ),
)]
pub(crate) async fn ask(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<ContextQuestion>,
) -> Result<Json<ContextAnswer>, Problem> {
    acts::ask(&app, request).await.map(Json)
}
