//! Staging: every new content is on disk before anything is touched.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use bytes::Bytes;
use eventlog::BlobId;
use kernel::Scope;

use crate::landing::area::staging;
use crate::landing::error::LandError;
use crate::landing::item::{Item, Operation};
use crate::landing::run::LandingRun;
use crate::landing::steps::StepKind;
use crate::{Entry, RelPath, TreeError};

/// The maximum number of files to sync one by one, which is also how many are open at once. Beyond that, the whole file
/// system is synced, which includes what others have written, but only once.
const SYNC_ONE_BY_ONE: usize = 64;
/// How many small contents are read at a time. Requesting one takes longer than reading it.
const READ_TOGETHER: usize = 64;
/// The maximum size of a small content: one batch fits in 4 MiB.
const SMALL_BYTES: u64 = 64 * 1024;

impl LandingRun<'_> {
    /// Writes every new content, syncs it to disk, and writes the marker.
    pub(super) fn stage(&self, items: &[Item], scope: &Scope) -> Result<(), LandError> {
        self.reached(StepKind::AreaMade, None);
        let mut files = Vec::new();
        let wanted = items.iter().filter(|item| item.operation() != Operation::Nothing);
        let wanted: Vec<(&Item, &Entry)> = wanted
            .filter_map(|item| Some((item, item.after.as_ref()?)))
            .collect();
        for some in wanted.chunks(READ_TOGETHER) {
            let read = self.read_small(some);
            for (item, after) in some {
                if scope.is_cancelled() {
                    return Err(LandError::Cancelled);
                }
                let content = after.content().and_then(|content| read.get(&content));
                let file =
                    self.stage_one(&item.new_name(0), after, content)
                        .map_err(|error| match error {
                            TreeError::Source { source, .. } => LandError::Content {
                                path: item.path.to_string(),
                                source,
                            },
                            error => staging(self.area.tree.path(), error),
                        })?;
                // One file over the limit shows that there are too many.
                if files.len() <= SYNC_ONE_BY_ONE {
                    files.extend(file);
                }
                self.reached(StepKind::ContentStaged, Some(&item.path));
            }
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

    /// Reads the small contents of a batch all at once. If that fails, none are read: each is then read alone, which
    /// names the one that fails.
    fn read_small(&self, some: &[(&Item, &Entry)]) -> HashMap<BlobId, Bytes> {
        let small = some.iter().filter_map(|(_, after)| match after {
            Entry::File { hash, size, .. } => (*size <= SMALL_BYTES).then_some(*hash),
            Entry::Directory | Entry::Symlink { .. } => None,
        });
        let ids: Vec<BlobId> = small.collect();
        match self.site.contents.get_all(&ids) {
            Ok(contents) => ids.into_iter().zip(contents).collect(),
            Err(_) => HashMap::new(),
        }
    }

    /// Writes one new content to a name in the staging directory, from memory if it is there, otherwise by its address.
    pub(super) fn stage_one(
        &self,
        name: &RelPath,
        entry: &Entry,
        at_hand: Option<&Bytes>,
    ) -> Result<Option<File>, TreeError> {
        let tree = &self.area.tree;
        match entry {
            Entry::Directory => tree.make_directory(name).map(|()| None),
            Entry::Symlink { target } => tree.symlink(name, target).map(|()| None),
            Entry::File { hash, size, mode } => {
                let (file, written) = tree.write_new(name, *mode, |to| match at_hand {
                    Some(content) => to.write_all(content),
                    None => self.site.contents.copy_to(*hash, to),
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
