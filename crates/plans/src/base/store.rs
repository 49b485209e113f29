//! The store of images.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kernel::Scope;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

use super::error::BaseError;
use super::image::{Base, Pin};
use super::info::Info;
use super::making::Making;
use super::verify::is_sound;
use crate::scan::random_name;
use crate::stat_cache::FileTime;
use crate::{Manifest, ManifestId};

pub(super) const MAKING_PREFIX: &str = "making-";
const LEAVING_PREFIX: &str = "leaving-";

/// All images, in one directory that nothing else uses. Everything here blocks.
#[derive(Clone, Debug)]
pub struct Bases {
    pub(super) store: Arc<Store>,
}

#[derive(Debug)]
pub(super) struct Store {
    pub(super) directory: PathBuf,
    pub(super) quota_bytes: u64,
    /// Larger files in a workspace are left out.
    pub(super) max_file_bytes: u64,
    /// Guards which images exist and which are held: an image is put in place, pinned or removed only under this lock.
    /// It is held for a single lookup or rename, never while files are read or written.
    pins: Mutex<HashMap<ManifestId, Weak<Pin>>>,
    /// Guards the manifests that are in memory; held for one lookup or insert. They don't have to be read again.
    at_hand: Mutex<HashMap<ManifestId, Weak<Manifest>>>,
}

impl Bases {
    /// Opens the store, creating it if needed. Removes what a killed process left unfinished.
    pub fn open(directory: PathBuf, quota_bytes: u64) -> Result<Self, BaseError> {
        Self::open_within(directory, quota_bytes, u64::MAX)
    }

    /// Opens the store with a size limit for single files: larger ones are left out of images.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_within(directory: PathBuf, quota_bytes: u64, max_file_bytes: u64) -> Result<Self, BaseError> {
        let failed = |error| BaseError::io("opening", &directory)(error);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(failed)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if [MAKING_PREFIX, LEAVING_PREFIX]
                .iter()
                .any(|prefix| name.starts_with(prefix))
            {
                remove_tree(&entry.path())?;
            }
        }
        let store = Store {
            directory,
            quota_bytes,
            max_file_bytes,
            pins: Mutex::default(),
            at_hand: Mutex::default(),
        };
        Ok(Self {
            store: Arc::new(store),
        })
    }

    /// Returns the image of a manifest, if it exists. An image from before a power loss is verified first, unless
    /// it was [settled](Self::settle), and removed if it is incomplete.
    pub fn find(&self, id: ManifestId) -> Result<Option<Base>, BaseError> {
        match self.store.pin(id)? {
            Some(pin) => self.store.hold(pin),
            None => Ok(None),
        }
    }

    /// Waits until an image is on disk, so that it can be used after a power loss without being verified. This waits
    /// for everything that is being written to that file system, so call it in the background.
    pub fn settle(&self, base: &Base) -> Result<(), BaseError> {
        let image = self.store.image(base.id);
        let Some(info) = Info::read(&image).filter(|info| base.pin.is_some() && !info.is_settled) else {
            return Ok(());
        };
        let settled = Info {
            is_settled: true,
            ..info
        };
        fs::File::open(&image)
            .and_then(|opened| Ok(rustix::fs::syncfs(opened)?))
            .and_then(|()| settled.write(&image))
            .map_err(BaseError::io("syncing", &image))
    }
}

impl Store {
    pub(super) fn image(&self, id: ManifestId) -> PathBuf {
        self.directory.join(id.to_string())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<ManifestId, Weak<Pin>>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins an image if it exists, without verifying it.
    pub(super) fn pin(&self, id: ManifestId) -> Result<Option<Arc<Pin>>, BaseError> {
        let image = self.image(id);
        let mut pins = self.lock();
        if let Some(pin) = pins.get(&id).and_then(Weak::upgrade) {
            return Ok(Some(pin));
        }
        match image.try_exists() {
            Ok(true) => Ok(Some(new_pin(&mut pins, id))),
            Ok(false) => Ok(None),
            Err(error) => Err(BaseError::io("looking for", &image)(error)),
        }
    }

    /// The base of a pinned image. `None` if the image is incomplete; then it is removed.
    pub(super) fn hold(&self, pin: Arc<Pin>) -> Result<Option<Base>, BaseError> {
        let image = self.image(pin.id);
        let manifest = match pin.manifest.get().cloned().or_else(|| self.at_hand(pin.id)) {
            Some(manifest) => Arc::clone(pin.manifest.get_or_init(|| manifest)),
            None => match self.load(&image, pin.id)? {
                Some(manifest) => self.remember(&pin, manifest),
                None => {
                    self.take_away(pin.id)?;
                    return Ok(None);
                }
            },
        };
        Info::touch(&image).map_err(BaseError::io("touching", &image))?;
        Ok(Some(Base {
            id: pin.id,
            manifest,
            tree: image.join("tree"),
            pin: Some(pin),
        }))
    }

    fn at_hand(&self, id: ManifestId) -> Option<Arc<Manifest>> {
        let at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        at_hand.get(&id).and_then(Weak::upgrade)
    }

    /// Caches the manifest of a sound image.
    fn remember(&self, pin: &Pin, manifest: Manifest) -> Arc<Manifest> {
        let manifest = Arc::clone(pin.manifest.get_or_init(|| Arc::new(manifest)));
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        at_hand.retain(|_, known| known.strong_count() > 0);
        at_hand.insert(pin.id, Arc::downgrade(&manifest));
        manifest
    }

    /// Reads an image's manifest, and verifies the whole image if it can't be trusted otherwise.
    fn load(&self, image: &Path, id: ManifestId) -> Result<Option<Manifest>, BaseError> {
        let manifest = match fs::read(image.join("manifest")) {
            Ok(bytes) => match Manifest::decode_named(&bytes, id) {
                Ok(manifest) => manifest,
                Err(bad) => {
                    tracing::warn!(%id, %bad, "an image is removed");
                    return Ok(None);
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BaseError::io("reading", &image.join("manifest"))(error)),
        };
        if Info::read(image).is_some_and(|info| info.is_trusted()) {
            return Ok(Some(manifest));
        }
        if !is_sound(&image.join("tree"), &manifest)? {
            tracing::warn!(%id, "an image is not whole, and removed");
            return Ok(None);
        }
        let info = Info::of_this_boot(manifest.bytes());
        info.write(image).map_err(BaseError::io("writing", image))?;
        Ok(Some(manifest))
    }

    /// Puts a complete image in place. If it already exists, the existing one is used.
    pub(super) fn put(
        &self,
        mut making: Making,
        manifest: Manifest,
        id: ManifestId,
    ) -> Result<Base, BaseError> {
        making.write(&manifest)?;
        let image = self.image(id);
        let pin = {
            let mut pins = self.lock();
            match fs::rename(making.path(), &image) {
                Ok(()) => {
                    making.run_id();
                    Some(new_pin(&mut pins, id))
                }
                // Another task was faster. A rename can't replace a directory that isn't empty.
                Err(_) if image.exists() => None,
                Err(error) => return Err(BaseError::io("placing", &image)(error)),
            }
        };
        match pin {
            Some(pin) => {
                let manifest = self.remember(&pin, manifest);
                Ok(Base {
                    id,
                    manifest,
                    tree: image.join("tree"),
                    pin: Some(pin),
                })
            }
            None => {
                let found = self.pin(id)?.map(|pin| self.hold(pin)).transpose()?.flatten();
                found.ok_or_else(|| BaseError::io("placing", &image)(io::ErrorKind::AlreadyExists.into()))
            }
        }
    }

    /// Removes an image even if it is held.
    fn take_away(&self, id: ManifestId) -> Result<(), BaseError> {
        let leaving = {
            let mut pins = self.lock();
            pins.remove(&id);
            self.rename_away(id)?
        };
        leaving.map_or(Ok(()), |leaving| remove_tree(&leaving))
    }

    /// Removes an image unless it is held; returns whether it did.
    pub(super) fn take_away_unless_held(&self, id: ManifestId) -> Result<bool, BaseError> {
        let leaving = {
            let mut pins = self.lock();
            if pins.get(&id).is_some_and(|pin| pin.strong_count() > 0) {
                return Ok(false);
            }
            pins.remove(&id);
            self.rename_away(id)?
        };
        leaving.map_or(Ok(false), |leaving| remove_tree(&leaving).map(|()| true))
    }

    fn rename_away(&self, id: ManifestId) -> Result<Option<PathBuf>, BaseError> {
        let image = self.image(id);
        let leaving = self.directory.join(format!("{LEAVING_PREFIX}{}", random_name()));
        match fs::rename(&image, &leaving) {
            Ok(()) => Ok(Some(leaving)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BaseError::io("removing", &image)(error)),
        }
    }

    /// The directories that no base may contain, by device and inode: this store, and its parent.
    pub(super) fn own_directories(&self) -> Vec<(u64, u64)> {
        let directories = [Some(self.directory.as_path()), self.directory.parent()];
        let found = directories
            .into_iter()
            .flatten()
            .filter_map(|path| fs::metadata(path).ok());
        found.map(|found| (found.dev(), found.ino())).collect()
    }

    /// The current time by the kernel's file clock, which lags behind the precise one.
    pub(super) fn file_clock(&self) -> Result<FileTime, BaseError> {
        let path = self.directory.join("clock");
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        let told = || -> io::Result<FileTime> {
            let file = fs::OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)?;
            rustix::fs::futimens(&file, &times)?;
            Ok(FileTime::modified(&rustix::fs::fstat(&file)?))
        };
        told().map_err(BaseError::io("touching", &path))
    }
}

fn new_pin(pins: &mut HashMap<ManifestId, Weak<Pin>>, id: ManifestId) -> Arc<Pin> {
    let pin = Arc::new(Pin {
        id,
        manifest: Default::default(),
    });
    pins.retain(|_, pin| pin.strong_count() > 0);
    pins.insert(id, Arc::downgrade(&pin));
    pin
}

pub(super) fn remove_tree(path: &Path) -> Result<(), BaseError> {
    crate::sandbox::remove_tree(path).map_err(BaseError::io("removing", path))?;
    Ok(())
}

/// Fails if the work was cancelled.
pub(super) fn check(scope: &Scope) -> Result<(), BaseError> {
    if scope.is_cancelled() {
        return Err(BaseError::Cancelled);
    }
    Ok(())
}
