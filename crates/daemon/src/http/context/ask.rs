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

/// Finds the pieces of a code base that belong to a question.
///
/// Several strategies look at once. What becomes of each is in the answer: one that fails, takes too long or is not asked
/// because it has failed too often costs neither the answer nor the others. The first question about a workspace makes its
/// index begin, and does not wait for it. A caller that goes away cancels its question.
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
