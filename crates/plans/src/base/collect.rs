//! Removing images that are no longer needed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eventlog::BlobId;

use super::error::BaseError;
use super::info::Info;
use super::store::{Bases, Store};
use crate::stat_cache::FileTime;
use crate::{Manifest, ManifestId};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CollectMode {
    DryRun,
    Remove,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Freed {
    /// The images to remove, least recently used first.
    pub images: Vec<ManifestId>,
    /// How many bytes of disk space that frees.
    pub bytes: u64,
    /// How many bytes of disk space the others take.
    pub kept_bytes: u64,
}

/// An image and its files. A file may have names in several images.
struct Sized {
    id: ManifestId,
    last_use: FileTime,
    /// By device and inode: the number of names it has in this image, and its size in bytes.
    files: HashMap<(u64, u64), (u64, u64)>,
}

impl Bases {
    /// Removes images until the store is within its quota, least recently used first. Images that are in `keep` or held
    /// are never removed. With a quota of zero, all others are removed.
    pub fn collect(&self, keep: &HashSet<ManifestId>, mode: CollectMode) -> Result<Freed, BaseError> {
        let store = &*self.store;
        let mut images = store.sized_images()?;
        images.sort_by_key(|image| image.last_use);
        // The number of remaining names of each file, and its size in bytes.
        let mut names: HashMap<(u64, u64), (u64, u64)> = HashMap::new();
        for (file, (count, bytes)) in images.iter().flat_map(|image| &image.files) {
            let all = names.entry(*file).or_insert((0, *bytes));
            all.0 += count;
        }
        let mut freed = Freed {
            kept_bytes: names.values().map(|(_, bytes)| bytes).sum(),
            ..Freed::default()
        };
        for image in images {
            if store.quota_bytes > 0 && freed.kept_bytes <= store.quota_bytes {
                break;
            }
            if keep.contains(&image.id) {
                continue;
            }
            let goes = match mode {
                CollectMode::DryRun => !store.is_held(image.id),
                CollectMode::Remove => store.take_away_unless_held(image.id)?,
            };
            if !goes {
                continue;
            }
            for (file, (count, bytes)) in &image.files {
                if let Some(all) = names.get_mut(file) {
                    all.0 -= count;
                    if all.0 == 0 {
                        freed.bytes += bytes;
                        freed.kept_bytes -= bytes;
                    }
                }
            }
            freed.images.push(image.id);
        }
        Ok(freed)
    }

    /// Removes images that have any of these contents, except those in `keep` or held. Returns the most bytes that this
    /// can have freed: other images may share files with them.
    pub fn drop_with(
        &self,
        contents: &BTreeSet<BlobId>,
        keep: &HashSet<ManifestId>,
    ) -> Result<u64, BaseError> {
        let mut freed = 0;
        for (id, path) in self.store.images()? {
            if keep.contains(&id) || self.store.is_held(id) {
                continue;
            }
            let read = fs::read(path.join("manifest")).map_err(BaseError::io("reading", &path))?;
            // A manifest that can't be decoded is detected, and its image removed, when it is used.
            let Ok(manifest) = Manifest::decode_named(&read, id) else {
                continue;
            };
            let mut has = manifest.iter().filter_map(|(_, entry)| entry.content());
            let is_meant = has.any(|content| contents.contains(&content));
            let bytes = Info::read(&path).map_or(0, |info| info.bytes);
            if is_meant && self.store.take_away_unless_held(id)? {
                freed += bytes;
            }
        }
        Ok(freed)
    }

    /// An upper bound on the disk space of all images together. They may share files, so it can be less.
    pub fn bytes_at_most(&self) -> Result<u64, BaseError> {
        let images = self.store.images()?;
        let sizes = images.iter().filter_map(|(_, path)| Info::read(path));
        Ok(sizes.map(|info| info.bytes).sum())
    }
}

impl Store {
    fn is_held(&self, id: ManifestId) -> bool {
        self.lock().get(&id).is_some_and(|pin| pin.strong_count() > 0)
    }

    fn images(&self) -> Result<Vec<(ManifestId, PathBuf)>, BaseError> {
        let failed = |error| BaseError::io("reading", &self.directory)(error);
        let mut images = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let id = entry.file_name().to_str().and_then(ManifestId::from_text);
            images.extend(id.map(|id| (id, entry.path())));
        }
        Ok(images)
    }

    fn sized_images(&self) -> Result<Vec<Sized>, BaseError> {
        let mut images = Vec::new();
        for (id, path) in self.images()? {
            let sized = || -> io::Result<Sized> {
                let mut files = HashMap::new();
                measure(&path, &mut files)?;
                Ok(Sized {
                    id,
                    last_use: Info::last_use(&path).unwrap_or(FileTime {
                        seconds: 0,
                        nanoseconds: 0,
                    }),
                    files,
                })
            };
            match sized() {
                Ok(sized) => images.push(sized),
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => {}
                Err(error) => return Err(BaseError::io("measuring", &path)(error)),
            }
        }
        Ok(images)
    }
}

/// Adds up the files in and below a directory.
fn measure(directory: &Path, files: &mut HashMap<(u64, u64), (u64, u64)>) -> io::Result<()> {
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        add(&fs::symlink_metadata(&directory)?, files);
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                left.push(entry.path());
            } else {
                match entry.metadata() {
                    Ok(found) => add(&found, files),
                    // The file that records when the image was last used is replaced now and then.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

fn add(found: &fs::Metadata, files: &mut HashMap<(u64, u64), (u64, u64)>) {
    let file = files
        .entry((found.dev(), found.ino()))
        .or_insert((0, found.blocks() * 512));
    file.0 += 1;
}
