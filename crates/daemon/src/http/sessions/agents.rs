//! Who can be asked.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::AgentList;

use crate::app::App;
use crate::sessions::wire;

/// The agents, by name, and what is missing of those that cannot be asked.
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "list_agents", tag = "sessions",
    responses((status = 200, description = "The agents.", body = AgentList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<AgentList> {
    Json(wire::agents_to_wire(&app.sessions))
}
