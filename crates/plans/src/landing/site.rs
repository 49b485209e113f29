//! Where a landing happens, and the three things that can be done there.

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

/// Where a landing happens. Everything here blocks, and nothing but staging can be cancelled.
#[derive(Clone, Copy)]
pub struct LandingSite<'a> {
    pub tree: &'a Tree,
    /// Where it is staged, if that is on the same file system. Otherwise it is staged in `.tidelock` inside the tree.
    pub staging: &'a Path,
    pub contents: &'a dyn Contents,
    /// Who merges again when somebody has saved meanwhile.
    pub remerge: &'a dyn Remerge,
    pub steps: &'a dyn Steps,
}

/// A landing that is staged: nothing of the tree has been touched yet.
#[derive(Debug)]
pub struct Staged {
    pub(super) area: Area,
    pub(super) items: Vec<Item>,
}

impl LandingSite<'_> {
    /// Finds out how files are exchanged here, where a landing would be staged. Nothing stays of that.
    pub fn probe(&self) -> Result<Exchange, LandError> {
        let area = Area::make(self.tree, self.staging, &LandingId::generate())?;
        let probed = area.can_exchange();
        area.remove(self.tree)?;
        probed.map_err(|error| staging(area.tree.path(), error))
    }

    /// Stages a landing: afterwards everything that is needed to carry it out is on the disk. When this fails, nothing is
    /// left of it.
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

    /// Carries a staged landing out, or takes it back. Commit the outcome, and then [`clean`](Self::clean).
    ///
    /// # Errors
    /// It could neither be finished nor taken back. [`recover`](Self::recover) it later.
    pub fn carry_out(&self, staged: Staged) -> Result<LandingEnd, LandError> {
        let Staged { area, mut items } = staged;
        let run = LandingRun {
            site: self,
            area: &area,
        };
        run.carry_out(&mut items)
    }

    /// Brings a landing to its end whose process was killed after the journal was committed and before the outcome was.
    /// It may be killed and done again.
    pub fn recover(&self, landing: &Landing) -> Result<LandingEnd, LandError> {
        crate::landing::recover::recover(self, landing)
    }

    /// Removes what a landing has staged, after its outcome was committed. What somebody has written into an old file since
    /// it was last looked at goes to `keep`, unless it was `seen` before. None there is no error.
    pub fn clean(&self, landing: &Landing, seen: &[Leftover], keep: &mut Keep<'_>) -> Result<(), LandError> {
        crate::landing::leftover::clean(self, landing, seen, keep)
    }

    /// Says what there is to keep of a landing that can neither be finished nor taken back, and how far the tree is.
    /// Nothing is changed.
    pub fn look_at_rest(&self, landing: &Landing) -> Result<AbandonedLanding, LandError> {
        crate::landing::aside::look_at_rest(self, landing)
    }

    /// Removes what a landing has staged, whatever is in it.
    pub fn discard(&self, id: &LandingId) -> Result<(), LandError> {
        match Area::find(self.tree, self.staging, id)? {
            Some(area) => area.remove(self.tree),
            None => Ok(()),
        }
    }

    /// Does something with what was kept, through a path that is good for as long as that takes. It is there until the
    /// landing is cleaned.
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
