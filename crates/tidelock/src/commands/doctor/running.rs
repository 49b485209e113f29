//! The running daemon, if any: its lock, its socket, and its answer.

use daemon::{Liveness, Owner, read_owner};

use super::Check;
use crate::client::{Client, ClientError};
use crate::context::{Context, version_skew};
use crate::error::{Failure, chain};

pub(super) fn check(client: &Client) -> Vec<Check> {
    let owner = read_owner(&client.context.home);
    let holder = owner.as_ref().filter(|owner| owner.liveness() == Liveness::Alive);
    let answer = client.get::<protocol::Status>("/v1/status");
    vec![
        lock(owner.as_ref(), holder),
        socket(&client.context, holder),
        daemon(holder, answer),
    ]
}

fn lock(owner: Option<&Owner>, holder: Option<&Owner>) -> Check {
    let id = "lock";
    match (holder, owner) {
        (Some(holder), _) => {
            let (pid, boot_id, version) = (holder.pid, holder.boot_id, &holder.version);
            Check::ok(
                id,
                format!("held by pid {pid} ({boot_id}, version {version}), which is alive"),
            )
        }
        (None, Some(owner)) if !owner.has_stopped_cleanly() => {
            let detail = format!(
                "free; its last holder (pid {}) ended without cleaning up",
                owner.pid
            );
            Check::warning(id, detail, "nothing to do; that daemon's log may say why")
        }
        (None, _) => Check::ok(id, "free"),
    }
}

fn socket(context: &Context, holder: Option<&Owner>) -> Check {
    let id = "socket";
    let path = context.home.socket();
    let shown = path.display();
    match (path.symlink_metadata().is_ok(), holder) {
        (true, Some(_)) => Check::ok(id, format!("{shown} exists")),
        (false, None) => Check::ok(id, format!("{shown} doesn't exist because no daemon is running")),
        (true, None) => Check::warning(
            id,
            format!("{shown} was left behind by a daemon that is gone"),
            "nothing to do; the next start replaces it",
        ),
        (false, Some(holder)) => Check::failed(
            id,
            format!("{shown} is missing although pid {} is alive", holder.pid),
            "if it doesn't appear in a moment, restart the daemon: `tidelock down && tidelock up`",
        ),
    }
}

fn daemon(holder: Option<&Owner>, answer: Result<protocol::Status, ClientError>) -> Check {
    let id = "daemon";
    match (answer, holder) {
        (Ok(status), _) => match version_skew(&status.version) {
            None => Check::ok(
                id,
                format!("answers (pid {}, version {})", status.pid, status.version),
            ),
            Some(advice) => Check::warning(id, format!("answers with version {}", status.version), advice),
        },
        (Err(ClientError::Unreachable { .. }), None) => Check::ok(id, "not running; `tidelock up` starts it"),
        (Err(error), _) => {
            let detail = chain(&error);
            let advice = Failure::from(error)
                .advice
                .unwrap_or_else(|| "see its log".to_owned());
            Check::failed(id, detail, advice)
        }
    }
}
