//! Who is connected over the Model Context Protocol.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::ClientList;

use crate::app::App;

/// The clients that are connected over the Model Context Protocol, the newest first.
#[utoipa::path(
    get, path = "/v1/clients", operation_id = "list_clients", tag = "daemon",
    responses((status = 200, description = "The clients.", body = ClientList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<ClientList> {
    Json(ClientList {
        clients: app.mcp.clients.list(),
    })
}
