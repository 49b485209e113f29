//! Restoring rescued content to the workspace.

use std::sync::Arc;

use super::LandingQueue;
use super::begin::tree_error;
use super::target::LandingTarget;
use crate::inner::blocking;
use crate::rescued::{Shelf, Source, copy_in};
use crate::{
    FileKind, Occupied, PlanError, RelPath, RescueReason, Rescued, RescuedKind, RescuedRecord,
    RestoreRequest, Restored, Tree, TreeError,
};

impl LandingQueue {
    /// Restores a piece of rescued content to its path, or to another one in its workspace.
    pub(crate) async fn restore(
        &mut self,
        rescued: Rescued,
        order: RestoreRequest,
    ) -> Result<Restored, PlanError> {
        let workspace = self.workspace().await?;
        let workspace = self.settle(&workspace).await?;
        let target = LandingTarget::Workspace(workspace.record.root);
        let (inner, now) = (Arc::clone(&self.inner), self.inner.time.now());
        let restored = blocking(move || {
            target.with_tree(|tree| {
                let path = order.to.unwrap_or_else(|| rescued.record.path.clone());
                let shelf = inner.shelf();
                let record = RescuedRecord {
                    why: RescueReason::Replaced,
                    since: now,
                    name: format!("replaced by {}", rescued.id),
                    path: path.clone(),
                    entry: None,
                    ..rescued.record.clone()
                };
                let replaced = put(tree, &rescued, &path, order.occupied, &shelf, record)?;
                shelf
                    .remove(rescued.id)
                    .map_err(PlanError::io(format!("removing {}", rescued.at.display())))?;
                Ok::<_, PlanError>(Restored { path, replaced })
            })
        });
        restored.await??
    }
}

fn put(
    tree: &Tree,
    rescued: &Rescued,
    path: &RelPath,
    occupied: Occupied,
    shelf: &Shelf,
    record: RescuedRecord,
) -> Result<Option<Rescued>, PlanError> {
    if tree.stat(path).map_err(tree_error)?.is_some() && occupied == Occupied::Refuse {
        return Err(PlanError::RestoreOccupied {
            path: path.to_string(),
        });
    }
    tree.make_parents(path).map_err(tree_error)?;
    let passing = Tree::passing_beside(path)?;
    let put = copy_in(&rescued.at, tree, &passing)
        .and_then(|()| give(tree, &passing, path, occupied))
        .map_err(|error| match error {
            TreeError::Exists { path } => PlanError::RestoreOccupied { path },
            error => tree_error(error),
        });
    match put {
        Ok(Given::Free) => Ok(None),
        Ok(Given::Exchanged) => keep_replaced(tree, &passing, path, shelf, record).map(Some),
        Err(error) => {
            tree.remove_all(&passing).map_err(tree_error)?;
            Err(error)
        }
    }
}

enum Given {
    Free,
    Exchanged,
}

fn give(tree: &Tree, passing: &RelPath, path: &RelPath, occupied: Occupied) -> Result<Given, TreeError> {
    match tree.rename_noreplace(passing, path) {
        Ok(()) => Ok(Given::Free),
        Err(TreeError::Exists { .. }) if occupied == Occupied::Swap => {
            tree.exchange(passing, path).map(|()| Given::Exchanged)
        }
        Err(error) => Err(error),
    }
}

/// Keeps what was at the path. If that isn't possible, puts it back there.
fn keep_replaced(
    tree: &Tree,
    passing: &RelPath,
    path: &RelPath,
    shelf: &Shelf,
    record: RescuedRecord,
) -> Result<Rescued, PlanError> {
    let kept = described(tree, passing, record)
        .map_err(std::io::Error::from)
        .and_then(|record| shelf.put(&[], record, Source::At(tree.through(passing))));
    let kept = match kept {
        Ok(shelved) => Ok(shelved.into_rescued()),
        Err(source) => {
            tree.exchange(passing, path).map_err(tree_error)?;
            Err(PlanError::Io {
                what: format!("keeping what is at `{path}`"),
                source,
            })
        }
    };
    tree.remove_all(passing).map_err(tree_error)?;
    kept
}

fn described(tree: &Tree, path: &RelPath, record: RescuedRecord) -> Result<RescuedRecord, TreeError> {
    let kind = match tree.stat(path)?.map(|stat| stat.kind) {
        Some(FileKind::Symlink) => RescuedKind::Symlink,
        Some(FileKind::Directory) => RescuedKind::Directory,
        Some(FileKind::Special) => RescuedKind::Special,
        Some(FileKind::File) | None => RescuedKind::File,
    };
    let entry = match kind {
        RescuedKind::File | RescuedKind::Symlink => tree.entry(path)?,
        RescuedKind::Directory | RescuedKind::Special => None,
    };
    Ok(RescuedRecord {
        kind,
        entry,
        ..record
    })
}
