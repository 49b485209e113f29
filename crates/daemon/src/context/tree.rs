//! Finds the tree to search.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use context::{ContextError, DiskView, View};
use kernel::Deadline;
use plans::{PlanError, Plans};
use protocol::PlanId;

use super::plan_view::PlanView;
use super::service::QuestionError;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TreeRef {
    /// The workspace, repository or directory that contains this one, as it is on disk.
    Directory(PathBuf),
    Plan(PlanId),
}

#[derive(Debug)]
pub(super) struct SearchedTree {
    pub(super) root: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) view: Arc<dyn View>,
}

impl TreeRef {
    /// Finds the tree. If a plan is being applied, this waits for it until the deadline.
    pub(super) async fn find(self, plans: &Plans, deadline: Deadline) -> Result<SearchedTree, QuestionError> {
        match self {
            Self::Directory(directory) => on_disk(plans, directory).await,
            Self::Plan(plan) => {
                let sandbox = tokio::select! {
                    sandbox = plans.look(plan) => sandbox?,
                    () = deadline.passed() => {
                        let by = "its sandbox was not to be had in time".to_owned();
                        return Err(PlanError::Busy { plan, by }.into());
                    }
                };
                let root = sandbox.root().to_owned();
                Ok(SearchedTree {
                    directory: root.clone(),
                    root,
                    view: Arc::new(PlanView(sandbox)),
                })
            }
        }
    }
}

async fn on_disk(plans: &Plans, directory: PathBuf) -> Result<SearchedTree, QuestionError> {
    let root = plans.root_of(directory.clone()).await?;
    let looked = blocking(move || {
        must_be_readable(&root)?;
        Ok(SearchedTree {
            directory: directory.canonicalize().unwrap_or(directory),
            view: Arc::new(DiskView::new(root.clone())),
            root,
        })
    });
    looked.await?
}

fn must_be_readable(root: &Path) -> Result<(), QuestionError> {
    match std::fs::read_dir(root) {
        Ok(_) => Ok(()),
        Err(source) => Err(QuestionError::Context(ContextError::Unreadable {
            root: root.to_owned(),
            source,
        })),
    }
}

/// Runs a short blocking operation. *Cancel safety*: if dropped, the operation still runs to its end.
pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, QuestionError> {
    let done = tokio::task::spawn_blocking(work).await;
    // It ends early only if the runtime shuts down.
    done.map_err(|_| QuestionError::Context(ContextError::Cancelled))
}
