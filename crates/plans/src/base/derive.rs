//! Derives a base from another one, for nested plans.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use kernel::Scope;
use rustix::fs::{AtFlags, CWD};

use super::copy::{BUFFER_BYTES, NotCopied, copy_file};
use super::error::BaseError;
use super::image::Base;
use super::making::{Dress, Making};
use super::place::{Incoming, place};
use super::store::{Bases, check};
use crate::stat_cache::FileTime;
use crate::{Change, Entry, RelPath};

impl Bases {
    /// Derives a base by applying changes to another one. The contents of changed files are read from elsewhere, by
    /// their new paths; the rest is shared with the other base.
    ///
    /// # Errors
    /// A content doesn't match its change, the scope is cancelled, or a file can't be read or written. Nothing is left
    /// behind.
    pub fn derive(
        &self,
        from: &Base,
        changes: &[Change],
        read: &(dyn Fn(&RelPath) -> io::Result<File> + Sync),
        scope: &Scope,
    ) -> Result<Base, BaseError> {
        let manifest = from.manifest.with(changes);
        let id = manifest.id();
        if let Some(base) = self.find(id)? {
            return Ok(base);
        }
        let making = Making::begin(&self.store)?;
        let (mut incoming, mut buffer) = (Incoming::new(), vec![0; BUFFER_BYTES]);
        for (number, change) in changes.iter().enumerate() {
            // Only the last change of a path counts.
            let wanted = change
                .after
                .as_ref()
                .filter(|after| manifest.get(&change.path) == Some(after));
            let Some(wanted @ Entry::File { .. }) = wanted else {
                continue;
            };
            check(scope)?;
            let name = number.to_string();
            let copied = read(&change.path)
                .map_err(|source| BaseError::Io {
                    what: format!("reading `{}`", change.path),
                    source,
                })
                .and_then(|file| {
                    copy_file(&file, making.incoming(), name.as_str(), &mut buffer, scope).map_err(|error| {
                        match error {
                            NotCopied::Vanished | NotCopied::Unreadable => BaseError::Differs {
                                path: change.path.clone(),
                            },
                            NotCopied::Cancelled => BaseError::Cancelled,
                            NotCopied::Failed(error) => making.failed("filling")(error),
                        }
                    })
                })?;
            if copied.entry != *wanted {
                return Err(BaseError::Differs {
                    path: change.path.clone(),
                });
            }
            if let Some(earlier) = incoming.insert(change.path.clone(), name) {
                rustix::fs::unlinkat(making.incoming(), earlier, AtFlags::empty())
                    .map_err(|error| making.failed("filling")(error.into()))?;
            }
        }
        let directories: Vec<&RelPath> = manifest
            .iter()
            .filter_map(|(path, entry)| entry.is_directory().then_some(path))
            .collect();
        making.make_directories(directories.iter().copied())?;
        place(&making, &manifest, &from.tree, &incoming, scope)?;
        let dresses = dresses(from, &directories);
        making.dress(dresses.iter().map(|(path, dress)| (*path, *dress)))?;
        check(scope)?;
        self.store.put(making, manifest, id)
    }
}

/// Directories keep the mode and times that they have in the source base, if they exist there.
fn dresses<'a>(from: &Base, directories: &[&'a RelPath]) -> HashMap<Option<&'a RelPath>, Dress> {
    let paths = directories.iter().map(|path| Some(*path)).chain([None]);
    paths
        .map(|path| {
            let at = path.map_or(from.tree.clone(), |path| from.tree.join(path.as_path()));
            let dress = match rustix::fs::statat(CWD, at, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Dress {
                    mode: stat.st_mode,
                    modified: Some(FileTime::modified(&stat)),
                },
                Err(_) => Dress::PLAIN,
            };
            (path, dress)
        })
        .collect()
}
