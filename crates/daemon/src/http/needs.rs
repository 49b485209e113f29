//! What waits for a person.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::NeedList;

use crate::app::App;
use crate::needs;

/// What waits for a person, most urgent first: questions of agents, plans to review, and what is broken.
///
/// It is looked for each time. Whoever wants to know when it changes follows `/v1/activity/events` and asks again.
#[utoipa::path(
    get, path = "/v1/needs", operation_id = "list_needs", tag = "daemon",
    responses((status = 200, description = "What waits.", body = NeedList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<NeedList> {
    Json(needs::read(&app).await.to_wire())
}
