//! Staging: every new content is on the disk before anything is touched.

use std::fs::File;
use std::io;

use bytes::Bytes;
use kernel::Scope;

use crate::entry::Entry;
use crate::landing::area::staging;
use crate::landing::error::LandError;
use crate::landing::hands::Hands;
use crate::landing::item::{Item, Operation};
use crate::landing::steps::StepKind;
use crate::path::RelPath;
use crate::tree::TreeError;

/// Up to how many files are brought to the disk one by one; it is also how many are open at once. Beyond that the whole
/// file system is, which takes along what others have written, but only once.
const SYNC_ONE_BY_ONE: usize = 64;

impl Hands<'_> {
    /// Writes every new content, brings it to the disk, and says so there.
    pub(super) fn stage(&self, items: &[Item], scope: &Scope) -> Result<(), LandError> {
        self.reached(StepKind::AreaMade, None);
        let mut files = Vec::new();
        for item in items {
            if scope.is_cancelled() {
                return Err(LandError::Cancelled);
            }
            let Some(after) = item
                .after
                .as_ref()
                .filter(|_| item.operation() != Operation::Nothing)
            else {
                continue;
            };
            let file = self
                .stage_one(&item.new_name(0), after, None)
                .map_err(|error| match error {
                    TreeError::Source { source, .. } => LandError::Content {
                        path: item.path.to_string(),
                        source,
                    },
                    error => staging(self.area.tree.path(), error),
                })?;
            // One more than are synced one by one tells that there are too many.
            if files.len() <= SYNC_ONE_BY_ONE {
                files.extend(file);
            }
            self.reached(StepKind::ContentStaged, Some(&item.path));
        }
        self.sync_contents(&files)
            .map_err(|error| staging(self.area.tree.path(), error))?;
        self.reached(StepKind::ContentsSynced, None);
        if scope.is_cancelled() {
            return Err(LandError::Cancelled);
        }
        self.area
            .mark_complete()
            .map_err(|error| staging(self.area.tree.path(), error))?;
        self.reached(StepKind::Complete, None);
        Ok(())
    }

    /// Writes one new content under a name of the staging directory: what was made for it, or else what its address says.
    pub(super) fn stage_one(
        &self,
        name: &RelPath,
        entry: &Entry,
        made: Option<&Bytes>,
    ) -> Result<Option<File>, TreeError> {
        let tree = &self.area.tree;
        match entry {
            Entry::Directory => tree.make_directory(name).map(|()| None),
            Entry::Symlink { target } => tree.symlink(name, target).map(|()| None),
            Entry::File { hash, size, mode } => {
                let (file, written) = tree.write_new(name, *mode, |to| match made {
                    Some(made) => to.write_all(made),
                    None => self.ground.contents.copy_to(*hash, to),
                })?;
                let mode = mode & crate::entry::MODE_MASK;
                let (hash, size) = (*hash, *size);
                if written != (Entry::File { hash, size, mode }) {
                    return Err(TreeError::Source {
                        path: name.to_string(),
                        source: io::Error::new(io::ErrorKind::InvalidData, "it is not what its address says"),
                    });
                }
                Ok(Some(file))
            }
        }
    }

    fn sync_contents(&self, files: &[File]) -> Result<(), TreeError> {
        if files.len() > SYNC_ONE_BY_ONE {
            return self.area.tree.sync_everything();
        }
        for file in files {
            file.sync_all().map_err(|source| TreeError::Io {
                what: "sync what is staged below",
                path: self.area.tree.path().display().to_string(),
                source,
            })?;
        }
        self.area.tree.sync_directory(None)
    }
}
