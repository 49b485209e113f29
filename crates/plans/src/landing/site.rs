//! Where a landing happens, and its operations.

use std::io;
use std::path::{Path, PathBuf};

use kernel::Scope;

use crate::landing::area::{Area, Exchange, staging};
use crate::landing::aside::AbandonedLanding;
use crate::landing::error::{LandError, LandingEnd};
use crate::landing::item::{self, Item};
use crate::landing::journal::{Landing, LandingId};
use crate::landing::leftover::{Keep, Leftover};
use crate::landing::remerge::Remerge;
use crate::landing::run::LandingRun;
use crate::landing::steps::Steps;
use crate::{Contents, Tree, TreeError};

/// Where a landing happens. Everything here blocks, and only staging can be cancelled.
#[derive(Clone, Copy)]
pub struct LandingSite<'a> {
    pub tree: &'a Tree,
    /// The staging directory, if it is on the same file system. Otherwise, landings are staged in `.tidelock` inside
    /// the tree.
    pub staging: &'a Path,
    pub contents: &'a dyn Contents,
    /// Merges again when someone has saved in the meantime.
    pub remerge: &'a dyn Remerge,
    pub steps: &'a dyn Steps,
}

/// A staged landing: nothing in the tree has been touched yet.
#[derive(Debug)]
pub struct Staged {
    pub(super) area: Area,
    pub(super) items: Vec<Item>,
}

impl LandingSite<'_> {
    /// Determines how files are exchanged here, where a landing would be staged. Leaves nothing behind.
    pub fn probe(&self) -> Result<Exchange, LandError> {
        let area = Area::make(self.tree, self.staging, &LandingId::generate())?;
        let probed = area.can_exchange();
        area.remove(self.tree)?;
        probed.map_err(|error| staging(area.tree.path(), error))
    }

    /// Stages a landing: afterwards, everything needed to carry it out is on disk. If this fails, nothing is left
    /// behind.
    pub fn stage(&self, landing: &Landing, scope: &Scope) -> Result<Staged, LandError> {
        let items = item::in_order(landing)?;
        let area = Area::make(self.tree, self.staging, &landing.id)?;
        let run = LandingRun {
            site: self,
            area: &area,
        };
        match run.stage(&items, scope) {
            Ok(()) => Ok(Staged { area, items }),
            Err(error) => {
                if let Err(left) = area.remove(self.tree) {
                    tracing::warn!(landing = %landing.id, error = %left, "a staging directory stays behind");
                }
                Err(error)
            }
        }
    }

    /// Carries out a staged landing, or rolls it back. Commit the outcome, then call [`clean`](Self::clean).
    ///
    /// # Errors
    /// It could be neither finished nor rolled back. Call [`recover`](Self::recover) later.
    pub fn carry_out(&self, staged: Staged) -> Result<LandingEnd, LandError> {
        let Staged { area, mut items } = staged;
        let run = LandingRun {
            site: self,
            area: &area,
        };
        run.carry_out(&mut items)
    }

    /// Finishes a landing after its process was killed between committing the journal and committing the outcome. It
    /// may be killed and repeated.
    pub fn recover(&self, landing: &Landing) -> Result<LandingEnd, LandError> {
        crate::landing::recover::recover(self, landing)
    }

    /// Removes the staged files of a landing after its outcome was committed. What someone has written to an old file
    /// since the last check is passed to `keep`, unless it is in `seen`. It is not an error if nothing is staged.
    pub fn clean(&self, landing: &Landing, seen: &[Leftover], keep: &mut Keep<'_>) -> Result<(), LandError> {
        crate::landing::leftover::clean(self, landing, seen, keep)
    }

    /// Reports what there is to keep of a landing that can be neither finished nor rolled back, and how far the tree
    /// is. Changes nothing.
    pub fn look_at_rest(&self, landing: &Landing) -> Result<AbandonedLanding, LandError> {
        crate::landing::aside::look_at_rest(self, landing)
    }

    /// Removes the staged files of a landing, whatever they are.
    pub fn discard(&self, id: &LandingId) -> Result<(), LandError> {
        match Area::find(self.tree, self.staging, id)? {
            Some(area) => area.remove(self.tree),
            None => Ok(()),
        }
    }

    /// Calls a function with a path to something that was kept. The path is valid only during the call; the content
    /// exists until the landing is cleaned.
    pub fn with_kept<R>(
        &self,
        id: &LandingId,
        kept: &Leftover,
        work: impl FnOnce(PathBuf) -> io::Result<R>,
    ) -> Result<R, LandError> {
        let not_there = || TreeError::NotFound {
            path: kept.at.to_string(),
        };
        let area = Area::find(self.tree, self.staging, id)?;
        let area = area.ok_or_else(|| staging(self.staging, not_there()))?;
        work(area.tree.through(&kept.at)).map_err(|source| LandError::Keeping {
            path: kept.path.to_string(),
            source,
        })
    }
}

impl std::fmt::Debug for LandingSite<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("LandingSite")
            .field("tree", self.tree)
            .field("staging", &self.staging)
            .finish_non_exhaustive()
    }
}
