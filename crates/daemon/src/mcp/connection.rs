//! A client's entry in the list of connected clients, for as long as it is connected.

use std::sync::Arc;

use protocol::{ChangesetState, PlanId};

use super::clients::{Client, KnownPlan, TooManyClients};
use crate::app::App;
use crate::http::Problem;
use crate::plans::acts;

/// The entry. Dropping it forgets the client, and closes the client's open changesets.
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
                // It doesn't accept changes from others anyway.
                tracing::debug!(
                    actor = client.actor,
                    ?problem,
                    "a changeset of a client that has left stays open"
                );
            }
            // Last, so that once the client is no longer listed, everything is cleaned up.
            app.mcp.clients.leave(number);
        });
    }
}

async fn close_changesets(app: &App, actor: &str, plan: PlanId) -> Result<(), Problem> {
    let changesets = acts::changesets(app, plan).await?.changesets;
    let is_open = |changeset: &&protocol::Changeset| {
        // A command's changeset is closed when the command ends.
        changeset.actor == actor && changeset.state == ChangesetState::Open && changeset.job.is_none()
    };
    for changeset in changesets.iter().filter(is_open) {
        if let Ok(id) = changeset.id.parse() {
            app.plans.close_changeset(plan, id).await?;
        }
    }
    Ok(())
}
