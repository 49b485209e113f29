//! A client's entry among those that are connected, for as long as it is.

use std::sync::Arc;

use protocol::{ChangesetState, PlanId};

use super::clients::{Client, KnownPlan, TooManyClients};
use crate::app::App;
use crate::http::Problem;
use crate::plans::acts;

/// The entry. When it is dropped, the client is forgotten, and the changesets that it has open are closed.
pub(super) struct Connection {
    pub(super) client: Arc<Client>,
    number: u64,
    app: Arc<App>,
}

impl Connection {
    pub(super) fn open(client: Client, app: &Arc<App>) -> Result<Self, TooManyClients> {
        let client = Arc::new(client);
        let number = app.mcp.clients.join(Arc::clone(&client))?;
        tracing::info!(actor = client.actor, transport = ?client.about.transport, "a client has joined");
        Ok(Self {
            client,
            number,
            app: Arc::clone(app),
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let (client, app, number) = (Arc::clone(&self.client), Arc::clone(&self.app), self.number);
        tracing::info!(actor = client.actor, "a client has left");
        client
            .gone
            .cancel(kernel::Cause::new("the client", "it has left"));
        self.app.mcp.tasks.spawn("a client that has left", async move {
            if let KnownPlan::Open(plan) = client.known_plan()
                && let Err(problem) = close_changesets(&app, &client.actor, plan.id).await
            {
                // It takes no more from anybody else anyway.
                tracing::debug!(
                    actor = client.actor,
                    ?problem,
                    "a changeset of a client that has left stays open"
                );
            }
            // Only now, so that whoever sees that it has left sees that nothing of it is left.
            app.mcp.clients.leave(number);
        });
    }
}

async fn close_changesets(app: &App, actor: &str, plan: PlanId) -> Result<(), Problem> {
    let changesets = acts::changesets(app, plan).await?.changesets;
    let is_open = |changeset: &&protocol::Changeset| {
        // That of a command is closed when the command ends.
        changeset.actor == actor && changeset.state == ChangesetState::Open && changeset.job.is_none()
    };
    for changeset in changesets.iter().filter(is_open) {
        if let Ok(id) = changeset.id.parse() {
            app.plans.close_changeset(plan, id).await?;
        }
    }
    Ok(())
}
