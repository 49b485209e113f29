//! A client's place in the book, for as long as it is connected.

use std::sync::Arc;

use super::clients::{Client, Full};
use super::farewell::farewell;
use super::inside::Inside;
use crate::app::App;

/// The place. When it is dropped, the client is forgotten, and what it held is given back.
pub(super) struct Seat {
    pub(super) client: Arc<Client>,
    number: u64,
    app: Arc<App>,
    inside: Inside,
}

impl Seat {
    pub(super) fn take(client: Client, app: &Arc<App>, inside: &Inside) -> Result<Self, Full> {
        let client = Arc::new(client);
        let number = app.mcp.clients.seat(Arc::clone(&client))?;
        tracing::info!(actor = client.actor, transport = ?client.about.transport, "a client has joined");
        Ok(Self {
            client,
            number,
            app: Arc::clone(app),
            inside: inside.clone(),
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let (client, inside) = (Arc::clone(&self.client), self.inside.clone());
        let (clients, number) = (self.app.mcp.clients.clone(), self.number);
        tracing::info!(actor = client.actor, "a client has left");
        client
            .gone
            .cancel(kernel::Cause::new("the client", "it has left"));
        self.app.mcp.tasks.spawn("farewell to a client", async move {
            farewell(&client, &inside).await;
            // Only now, so that whoever sees that it has left sees that nothing of it is left.
            clients.leave(number);
        });
    }
}
