//! What is done for a client that has left: what it held is given back, and its plan stays.

use protocol::{ChangesetList, ChangesetState};
use serde_json::{Value, json};

use super::clients::{Client, Known};
use super::inside::{Inside, Refused};

/// Closes the changesets that a client has open in its plan.
pub(super) async fn farewell(client: &Client, inside: &Inside) {
    let Known::Plan(ground) = client.known_plan() else {
        return;
    };
    if let Err(error) = close_changesets(&client.actor, &ground.id, inside).await {
        // It takes no more from anybody else anyway.
        tracing::debug!(actor = client.actor, %error, "a changeset of a client that has left stays open");
    }
}

async fn close_changesets(actor: &str, plan: &str, inside: &Inside) -> Result<(), Refused> {
    let path = format!("/v1/plans/{plan}/changesets");
    let ChangesetList { changesets } = inside.get(actor, &path).await?;
    let is_open = |changeset: &&protocol::Changeset| {
        // That of a command is closed when the command ends.
        changeset.actor == actor && changeset.state == ChangesetState::Open && changeset.job.is_none()
    };
    for changeset in changesets.iter().filter(is_open) {
        let path = format!("{path}/{}/close", changeset.id);
        let _closed: Value = inside.post(actor, &path, &json!({})).await?;
    }
    Ok(())
}
