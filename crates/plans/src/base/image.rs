//! A base that is in use.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::{Manifest, ManifestId};

/// A base: an image of a workspace that never changes. Its files exist as long as the base is held.
#[derive(Clone, Debug)]
pub struct Base {
    pub id: ManifestId,
    pub manifest: Arc<Manifest>,
    /// The directory with its files, including their contents, permissions and times.
    pub tree: PathBuf,
    /// While this is held, the image is not collected. A tree outside the store has no pin.
    pub(super) pin: Option<Arc<Pin>>,
}

#[derive(Debug)]
pub(super) struct Pin {
    pub(super) id: ManifestId,
    /// The image's manifest, once it was loaded and found sound.
    pub(super) manifest: OnceLock<Arc<Manifest>>,
}

impl Base {
    /// A base with files outside the store. The caller must ensure that they stay and don't change.
    #[must_use]
    pub fn outside(manifest: Arc<Manifest>, tree: PathBuf) -> Self {
        Self {
            id: manifest.id(),
            manifest,
            tree,
            pin: None,
        }
    }
}
