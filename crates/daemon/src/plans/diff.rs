//! Shows the changes of a plan.

use std::io;

use plans::{PlanError, Plans};
use protocol::{ChangesetId, DiffSummary, FileDiff, PlanDiff, PlanId};

use super::wire::kind_name;

/// The difference, file by file.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn diff(
    plans: &Plans,
    id: PlanId,
    changeset: Option<ChangesetId>,
) -> Result<PlanDiff, PlanError> {
    let plan = plans.get(id).await?;
    let changes = plans.changes(id, changeset).await?;
    let contents = plans.contents();
    let found = blocking(move || plans::diff(&changes, &*contents)).await?;
    Ok(PlanDiff {
        plan: id.to_string(),
        fingerprint: plan.record.fingerprint.to_string(),
        summary: DiffSummary {
            files: found.files.len() as u64 + found.files_left_out,
            added_lines: Some(found.added_lines),
            removed_lines: Some(found.removed_lines),
        },
        files: found.files.into_iter().map(file).collect(),
    })
}

/// The same as a patch that `git apply` takes.
///
/// *Cancel safety*: it only reads.
pub(crate) async fn patch(
    plans: &Plans,
    plan: PlanId,
    changeset: Option<ChangesetId>,
) -> Result<Vec<u8>, PlanError> {
    let changes = plans.changes(plan, changeset).await?;
    let contents = plans.contents();
    blocking(move || {
        let mut text = Vec::new();
        plans::write_patch(&changes, &*contents, &mut text)?;
        Ok(text)
    })
    .await
}

/// Runs a blocking operation on its own thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, PlanError> {
    let failed = |source| PlanError::Io {
        what: "reading the contents of a plan".to_owned(),
        source,
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(failed),
        // This fails only if the operation panicked or the daemon is ending.
        Err(error) => Err(failed(io::Error::other(error))),
    }
}

fn file(file: plans::FileDiff) -> FileDiff {
    FileDiff {
        path: file.path.to_string(),
        from: file.from.map(|from| from.to_string()),
        kind: kind_name(file.kind).to_owned(),
        old_mode: file.old_mode.map(|mode| format!("{mode:06o}")),
        new_mode: file.new_mode.map(|mode| format!("{mode:06o}")),
        binary: file.binary,
        added_lines: file.added_lines,
        removed_lines: file.removed_lines,
        hunks: file.hunks,
        cut: file.cut,
    }
}
