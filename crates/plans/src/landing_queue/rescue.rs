//! Keeping other people's content that can't stay in the workspace where they can find it, and reporting it.

use super::LandingQueue;
use super::begin::{ActiveLanding, land_error};
use crate::PlanEvent;
use crate::landing::{LandingId, LandingSite, Leftover, LeftoverSource};
use crate::landings::LandingRecord;
use crate::rescued::{Shelf, Shelved, Source};
use crate::{Attempt, FileKind, PlanError, RescueReason, Rescued, RescuedKind, RescuedRecord};

/// How many paths are named in one event.
const NAMED: usize = 5;

impl LandingQueue {
    /// Copies what is kept to the shelf. What an interrupted attempt has already copied isn't copied again.
    pub(super) async fn save_kept(
        &self,
        begun: &ActiveLanding,
        kept: &[Leftover],
    ) -> Result<Vec<Rescued>, PlanError> {
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let (id, kept, about) = (begun.landing.id.clone(), kept.to_vec(), self.about(begun));
        let saved = self.at_site(&begun.target, move |inner, site| {
            let mut keeping = Keeping::new(inner.shelf(), about)?;
            keeping.keep_all(site, &id, &kept)?;
            Ok(keeping.rescued)
        });
        saved.await?
    }

    /// Removes the staged files. What someone has written into them in the meantime is kept, and noted in the history
    /// of the plans.
    pub(super) async fn clean(
        &self,
        begun: &ActiveLanding,
        seen: Vec<Leftover>,
    ) -> Result<Vec<Rescued>, PlanError> {
        let (landing, about) = (begun.landing.clone(), self.about(begun));
        let cleaned = self.at_site(&begun.target, move |inner, site| {
            let mut keeping = Keeping::new(inner.shelf(), about)?;
            site.clean(&landing, &seen, &mut |kept, at| keeping.keep(kept, at))
                .map_err(land_error)?;
            Ok::<_, PlanError>(keeping.rescued)
        });
        let rescued = cleaned.await??;
        let events = rescued_events(begun, &rescued);
        for plan in begun.stored.record.plans.iter().filter(|_| !rescued.is_empty()) {
            let events = events.clone();
            let tell = self.inner.change_plan(*plan, move |_, record, now| {
                let mut next = record.clone();
                next.changed_at = now;
                Ok((next, events.clone()))
            });
            tell.await?;
        }
        Ok(rescued)
    }

    pub(super) fn about(&self, begun: &ActiveLanding) -> About {
        About {
            workspace: self.id,
            root: begun.root.clone(),
            landing: begun.landing.id.to_string(),
            record: begun.stored.record.clone(),
            why: None,
            now: self.inner.time.now(),
        }
    }
}

/// What everything kept of one landing has in common.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) workspace: protocol::WorkspaceId,
    pub(super) root: String,
    pub(super) landing: String,
    pub(super) record: LandingRecord,
    pub(super) why: Option<RescueReason>,
    pub(super) now: eventlog::UnixMs,
}

#[derive(Debug)]
pub(super) struct Keeping {
    shelf: Shelf,
    about: About,
    known: Vec<Rescued>,
    pub(super) rescued: Vec<Rescued>,
}

impl Keeping {
    pub(super) fn new(shelf: Shelf, about: About) -> Result<Self, PlanError> {
        let list = shelf.list().map_err(PlanError::io("listing rescued content"))?;
        Ok(Self {
            shelf,
            about,
            known: list.rescued,
            rescued: Vec::new(),
        })
    }

    pub(super) fn keep_all(
        &mut self,
        site: &LandingSite<'_>,
        id: &LandingId,
        kept: &[Leftover],
    ) -> Result<(), PlanError> {
        for kept in kept {
            site.with_kept(id, kept, |path| self.keep(kept, LeftoverSource::Path(path)))
                .map_err(land_error)?;
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, kept: &Leftover, at: LeftoverSource) -> std::io::Result<()> {
        let kind = match kept.kind {
            FileKind::File => RescuedKind::File,
            FileKind::Symlink => RescuedKind::Symlink,
            FileKind::Directory => RescuedKind::Directory,
            FileKind::Special => RescuedKind::Special,
        };
        let why = self.about.why.unwrap_or(match kept.was_there {
            true => RescueReason::NotPutBack,
            false => RescueReason::WrittenMeanwhile,
        });
        let source = match at {
            LeftoverSource::Path(path) => Source::At(path),
            LeftoverSource::File(file) => Source::Open(file),
        };
        let record = RescuedRecord {
            workspace: self.about.workspace,
            root: self.about.root.clone(),
            what: self.about.record.what,
            landing: self.about.landing.clone(),
            name: kept.name(),
            plans: self.about.record.plans.clone(),
            path: kept.path.clone(),
            kind,
            entry: kept.entry.clone(),
            why,
            since: self.about.now,
        };
        let shelved = self.shelf.put(&self.known, record, source)?;
        self.rescued.push(Shelved::into_rescued(shelved));
        Ok(())
    }
}

pub(super) fn rescued_note(rescued: &Rescued) -> String {
    let what = match rescued.record.why {
        RescueReason::WrittenMeanwhile => "what was written to it meanwhile",
        RescueReason::NotPutBack | RescueReason::SetAside => "what was there before",
        RescueReason::Replaced => "what was there",
    };
    format!(
        "`{}`: {what} is kept as {}; restore it with: tidelock workspace rescued restore {}",
        rescued.record.path, rescued.id, rescued.id
    )
}

pub(super) fn rescued_events(begun: &ActiveLanding, rescued: &[Rescued]) -> Vec<PlanEvent> {
    if rescued.is_empty() {
        return Vec::new();
    }
    let mut paths: Vec<String> = rescued
        .iter()
        .take(NAMED)
        .map(|rescued| rescued.record.path.to_string())
        .collect();
    if rescued.len() > NAMED {
        paths.push(format!("{} more", rescued.len() - NAMED));
    }
    let what = match begun.stored.record.what {
        Attempt::Undo => "undo",
        Attempt::Apply | Attempt::Refresh => "apply",
    };
    let text = format!("the {what} kept content of {}", paths.join(", "));
    vec![PlanEvent::new("rescued", &begun.stored.record.by, text)]
}
