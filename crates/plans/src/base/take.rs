//! Taking a base: an image of the current workspace.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use kernel::Scope;
use rustix::fs::{Mode, OFlags};
use watch::Tripwire;

use super::cached_scan::{CachedScan, Uncovered};
use super::error::BaseError;
use super::image::{Base, Pin};
use super::left_out::{Ignored, LeftOut, WhyLeftOut};
use super::making::{Dress, Making};
use super::place::{Incoming, place};
use super::read::{Read, To, read_files};
use super::store::{Bases, Store, check};
use super::times::forward;
use crate::scan::{Scan, ScannedDirectory, Work, in_parallel, scan};
use crate::stat_cache::{Cached, FileTime, StatCache};
use crate::{Entry, IgnoreSources, LinkTarget, MODE_MASK, Manifest, ManifestId};

/// A base that was taken, and what exists beside it.
#[derive(Clone, Debug)]
pub struct Taken {
    pub base: Base,
    pub ignored: Ignored,
    pub left_out: Vec<LeftOut>,
    pub files_read: u64,
}

/// A base that was taken, and what the next take can reuse.
#[derive(Debug)]
pub(crate) struct Retaken {
    pub(crate) taken: Taken,
    /// `None` if the next take has to check every file again.
    pub(crate) kept: Option<CachedScan>,
    pub(crate) look: BaseSource,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BaseSource {
    CachedScan,
    FullScan,
}

impl Bases {
    /// Takes a base of the current workspace. Files that match the cache are not read. Those that are read are copied
    /// in the same step, so that the manifest matches the image even if someone writes in the meantime. A file that
    /// grows or shrinks during the copy is recorded as it was read. If there is no matching image, a new one is made
    /// from the workspace's last one.
    ///
    /// The cache is a file that only this function writes. Two takes of one workspace can run at the same time.
    ///
    /// # Errors
    /// The workspace doesn't exist, the scope is cancelled, or a file can't be read or written. Nothing is left behind.
    pub fn take(&self, workspace: &Path, cache: &Path, scope: &Scope) -> Result<Taken, BaseError> {
        Ok(self.take_again(workspace, cache, None, scope)?.taken)
    }

    /// Takes a base, reusing the last scan. If nothing has changed since, no file is checked.
    pub(crate) fn take_again(
        &self,
        workspace: &Path,
        cache: &Path,
        kept: Option<CachedScan>,
        scope: &Scope,
    ) -> Result<Retaken, BaseError> {
        let store = &*self.store;
        if let Some(kept) = kept
            && let Some(taken) = kept.taken(store, workspace)?
        {
            return Ok(Retaken {
                taken,
                kept: Some(kept),
                look: BaseSource::CachedScan,
            });
        }
        let tripwire = Tripwire::new().inspect_err(|error| {
            tracing::debug!(%error, "the scan of a workspace is not kept");
        });
        let tripwire = tripwire.ok();
        let began = store.file_clock()?;
        check(scope)?;
        // Meanwhile, git is asked for its settings.
        let (sources, (cached, previous)) = thread::scope(|threads| {
            let asking = threads.spawn(|| IgnoreSources::of_workspace(workspace));
            let known = known_image(store, cache);
            let sources = asking
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (sources, known)
        });
        let sources = sources.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => BaseError::Gone {
                workspace: workspace.to_owned(),
            },
            _ => BaseError::io("reading the ignore rules of", workspace)(error),
        })?;
        let mut found = scan(
            workspace,
            &sources,
            &cached,
            &store.own_directories(),
            tripwire.as_ref(),
            scope,
        )
        .map_err(|error| BaseError::of_scan(error, workspace))?;
        leave_out_large(&mut found, store.max_file_bytes);
        drop(cached);
        let uncovered = Uncovered::of(workspace, &mut found, sources, began);
        let taken = self.take_found(found, began, previous, cache, scope)?;
        let kept = tripwire
            .zip(uncovered)
            .map(|(tripwire, uncovered)| CachedScan::of(tripwire, uncovered, &taken));
        Ok(Retaken {
            taken,
            kept,
            look: BaseSource::FullScan,
        })
    }

    fn take_found(
        &self,
        found: Scan,
        began: FileTime,
        previous: Option<Arc<Pin>>,
        cache: &Path,
        scope: &Scope,
    ) -> Result<Taken, BaseError> {
        let store = &*self.store;
        if let Some(previous) = previous.as_ref().filter(|_| found.is_as_cached)
            && let Some(base) = store.hold(Arc::clone(previous))?
        {
            return Ok(Taken {
                base,
                ignored: found.ignored,
                left_out: found.left_out,
                files_read: 0,
            });
        }
        Take {
            store,
            found,
            began,
            scope,
        }
        .make(previous, cache)
    }
}

/// Leaves out files that are larger than a plan can carry.
fn leave_out_large(found: &mut Scan, max_file_bytes: u64) {
    let Scan {
        directories,
        left_out,
        ..
    } = found;
    for directory in directories {
        directory.files.retain(|file| {
            let is_large = file.key.size > max_file_bytes;
            if is_large {
                left_out.push(LeftOut::at(&file.path, WhyLeftOut::TooLarge));
            }
            !is_large
        });
    }
}

fn known_image(store: &Store, cache: &Path) -> (StatCache, Option<Arc<Pin>>) {
    let cached = StatCache::read(cache);
    match cached.image.map(|image| store.pin(image)) {
        Some(Ok(Some(pin))) => (cached, Some(pin)),
        _ => (StatCache::default(), None),
    }
}

/// A workspace that was scanned and has changed.
struct Take<'a> {
    store: &'a Store,
    found: Scan,
    began: FileTime,
    scope: &'a Scope,
}

impl Take<'_> {
    fn make(mut self, previous: Option<Arc<Pin>>, cache: &Path) -> Result<Taken, BaseError> {
        // The last image must be verified before its files are used.
        let previous = previous.map(|pin| self.store.hold(pin)).transpose()?.flatten();
        if previous.is_none() {
            for file in self
                .found
                .directories
                .iter_mut()
                .flat_map(|directory| &mut directory.files)
            {
                file.known = None;
            }
        }
        self.found
            .directories
            .sort_by(|one, other| one.path.cmp(&other.path));
        let making = Making::begin(self.store)?;
        let to = if previous.is_some() {
            To::Incoming
        } else {
            To::Place
        };
        if let To::Place = to {
            making.make_directories(
                self.found
                    .directories
                    .iter()
                    .filter_map(|directory| directory.path.as_ref()),
            )?;
        }
        let mut read = read_files(&self.found, &making, to, self.scope)?;
        let manifest = self.manifest(&read);
        let id = manifest.id();
        let base = match self
            .store
            .pin(id)?
            .map(|pin| self.store.hold(pin))
            .transpose()?
            .flatten()
        {
            Some(base) => {
                let is_previous = previous.as_ref().is_some_and(|previous| previous.id == id);
                self.move_times(&base, is_previous)?;
                drop(making);
                base
            }
            None => self.put(making, manifest, id, previous.as_ref(), &mut read.incoming)?,
        };
        let files_read = read.copied.len() as u64;
        let new_cache = self.cache(&base, &read);
        if let Err(error) = new_cache.write(cache) {
            tracing::warn!(cache = %cache.display(), %error, "the next base of this workspace takes longer");
        }
        let mut left_out = std::mem::take(&mut self.found.left_out);
        left_out.append(&mut read.left_out);
        left_out.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Taken {
            base,
            ignored: self.found.ignored,
            left_out,
            files_read,
        })
    }

    /// The manifest of the workspace, from the cache and from what was read.
    fn manifest(&self, read: &Read) -> Manifest {
        let mut entries = Vec::new();
        for directory in &self.found.directories {
            entries.extend(directory.path.clone().map(|path| (path, Entry::Directory)));
            for file in &directory.files {
                let entry = match file.known {
                    Some(hash) => Some(Entry::File {
                        hash,
                        size: file.key.size,
                        mode: file.key.mode & MODE_MASK,
                    }),
                    None => read.copied.get(&file.path).map(|copied| copied.entry.clone()),
                };
                entries.extend(entry.map(|entry| (file.path.clone(), entry)));
            }
            entries.extend(directory.links.iter().map(|link| {
                let target = LinkTarget(link.target.clone());
                (link.path.clone(), Entry::Symlink { target })
            }));
        }
        Manifest {
            entries: entries.into_iter().collect(),
        }
    }

    /// Makes a new image from the incoming files and the last image.
    fn put(
        &self,
        making: Making,
        manifest: Manifest,
        id: ManifestId,
        previous: Option<&Base>,
        incoming: &mut Incoming,
    ) -> Result<Base, BaseError> {
        let directories = &self.found.directories;
        match previous {
            Some(previous) => {
                making
                    .make_directories(directories.iter().filter_map(|directory| directory.path.as_ref()))?;
                // Files that were rewritten with the same content are shared with the last image too.
                incoming.retain(|path, _| previous.manifest.get(path) != manifest.get(path));
                place(&making, &manifest, &previous.tree, incoming, self.scope)?;
                let unknown = directories.iter().flat_map(|directory| &directory.files);
                for file in unknown.filter(|file| file.known.is_none() && !incoming.contains_key(&file.path))
                {
                    forward(making.tree(), file.path.as_path(), file.key.modified)
                        .map_err(making.failed("filling"))?;
                }
            }
            // The files are already in place.
            None => {
                for link in directories.iter().flat_map(|directory| &directory.links) {
                    rustix::fs::symlinkat(&*link.target, making.tree(), link.path.as_path())
                        .map_err(|error| making.failed("filling")(error.into()))?;
                }
            }
        }
        making.dress(
            directories
                .iter()
                .map(|directory| (directory.path.as_ref(), dress(directory))),
        )?;
        check(self.scope)?;
        self.store.put(making, manifest, id)
    }

    /// Moves the times in an image forward to those of the workspace. In the workspace's last image, only files that
    /// weren't in the cache can have an earlier time.
    fn move_times(&self, base: &Base, is_previous: bool) -> Result<(), BaseError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |error| BaseError::io("moving times in", &base.tree)(error);
        let tree =
            rustix::fs::open(&base.tree, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let failures = in_parallel(
            self.found.directories.iter().collect(),
            || None,
            |failure, directory| {
                let moved = || -> std::io::Result<()> {
                    if let Some(path) = &directory.path {
                        forward(tree.as_fd(), path.as_path(), directory.modified)?;
                    }
                    for file in directory
                        .files
                        .iter()
                        .filter(|file| !is_previous || file.known.is_none())
                    {
                        forward(tree.as_fd(), file.path.as_path(), file.key.modified)?;
                    }
                    Ok(())
                };
                match moved() {
                    Ok(()) => Work::Continue,
                    Err(error) => {
                        *failure = Some(error);
                        Work::Stop
                    }
                }
            },
        );
        failures
            .into_iter()
            .flatten()
            .next()
            .map_or(Ok(()), |error| Err(failed(error)))
    }

    /// The cache for the next scan.
    fn cache(&self, base: &Base, read: &Read) -> StatCache {
        let mut entries = HashMap::new();
        for directory in &self.found.directories {
            if let Some(path) = &directory.path {
                let cached = Cached::Directory {
                    mode: directory.mode,
                    modified: directory.modified,
                };
                entries.insert(path.as_bytes().into(), cached);
            }
            for file in &directory.files {
                let known = match (file.known, read.copied.get(&file.path)) {
                    (Some(hash), _) => Some((file.key, hash)),
                    (None, Some(copied)) => copied.key.zip(copied.entry.content()),
                    (None, None) => None,
                };
                if let Some((key, hash)) = known.filter(|(key, _)| key.is_settled_by(self.began)) {
                    entries.insert(file.path.as_bytes().into(), Cached::File { key, hash });
                }
            }
            for link in &directory.links {
                let target = link.target.clone();
                entries.insert(link.path.as_bytes().into(), Cached::Symlink { target });
            }
        }
        StatCache {
            image: Some(base.id),
            image_entries: base.manifest.len() as u64,
            entries,
        }
    }
}

fn dress(directory: &ScannedDirectory) -> Dress {
    Dress {
        mode: directory.mode,
        modified: Some(directory.modified),
    }
}
