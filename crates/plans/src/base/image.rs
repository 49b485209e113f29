//! A base in someone's run.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::{Manifest, ManifestId};

/// A base: an image of a workspace that never changes. Its files are there as long as somebody holds it.
#[derive(Clone, Debug)]
pub struct Base {
    pub id: ManifestId,
    pub manifest: Arc<Manifest>,
    /// The directory that holds its files, with their contents, permissions and times.
    pub tree: PathBuf,
    /// While this is held, the image is not collected. A tree outside of the store has none.
    pub(super) pin: Option<Arc<Pin>>,
}

/// Keeps an image from being collected.
#[derive(Debug)]
pub(super) struct Pin {
    pub(super) id: ManifestId,
    /// What is in the image, once somebody has looked and has found it sound.
    pub(super) manifest: OnceLock<Arc<Manifest>>,
}

impl Base {
    /// A base whose files are outside of the store. Whoever makes it sees to it that they stay and do not change.
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
