//! What others wrote and what must not be lost with the staging directory.

use std::collections::HashSet;

use crate::entry::Entry;
use crate::landing::area::{Area, staging};
use crate::landing::error::LandError;
use crate::landing::ground::Ground;
use crate::landing::hands::{Hands, Held};
use crate::landing::item::{self, Item};
use crate::landing::journal::Landing;
use crate::landing::steps::StepKind;
use crate::path::RelPath;
use crate::tree::{FileKind, FileStat, TreeError};

/// How much older the time of a content must be than that of the file's last rename, so that the two times alone prove that
/// it was not written since. The clocks of file systems tick in up to 10 ms.
const SURELY_OLDER_NS: i128 = 100_000_000;
/// How deep a directory is looked into that somebody filled where a landing had one of its own.
const DEPTH: usize = 64;

/// A content that somebody wrote and that is not in the tree. It is in the staging directory until that is cleaned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept {
    /// The path that it was written to.
    pub path: RelPath,
    /// What it is.
    pub entry: Entry,
    /// Where it is in the staging directory.
    pub(super) at: RelPath,
}

/// What became of the staging directory.
#[derive(Debug, Eq, PartialEq)]
pub enum Cleaned {
    /// It is gone.
    Gone,
    /// Somebody has written into an old file meanwhile. Keep these and clean again.
    More(Vec<Kept>),
}

/// How a landing ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Landed,
    TakenBack,
}

pub(super) fn clean(ground: &Ground<'_>, landing: &Landing, seen: &[Kept]) -> Result<Cleaned, LandError> {
    let Some(area) = Area::find(ground.tree, ground.staging, &landing.id)? else {
        return Ok(Cleaned::Gone);
    };
    let hands = Hands { ground, area: &area };
    if area.is_complete()? {
        let mut items = item::in_order(&landing.effects)?;
        for item in &mut items {
            hands.read_notes(item)?;
            // They were all looked at when the outcome was found; what is asked here is whether somebody wrote since.
            item.out = hands.unwritten(item);
        }
        let verdict = if area.is_back()? {
            Verdict::TakenBack
        } else {
            Verdict::Landed
        };
        let mut more = hands
            .kept(&items, verdict)
            .map_err(|error| staging(area.tree.path(), error))?;
        more.retain(|kept| !seen.contains(kept));
        if !more.is_empty() {
            return Ok(Cleaned::More(more));
        }
    }
    hands.reached(StepKind::Cleaning, None);
    area.remove(ground.tree)?;
    hands.reached(StepKind::Cleaned, None);
    Ok(Cleaned::Gone)
}

impl Hands<'_> {
    /// Everything in the staging directory that is neither what was expected at its path nor what was to be there.
    pub(super) fn kept(&self, items: &[Item], verdict: Verdict) -> Result<Vec<Kept>, TreeError> {
        let names: HashSet<_> = self
            .area
            .tree
            .list(None)?
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let mut kept = Vec::new();
        for item in items {
            for round in 0..=item.round {
                for name in [item.new_name(round), item.old_name(round)] {
                    if names.contains(name.name())
                        && !(verdict == Verdict::Landed
                            && round == item.round
                            && self.is_as_seen(item, &name)?)
                    {
                        self.keep(item, name, verdict, &mut kept)?;
                    }
                }
            }
        }
        Ok(kept)
    }

    fn keep(
        &self,
        item: &Item,
        name: RelPath,
        verdict: Verdict,
        kept: &mut Vec<Kept>,
    ) -> Result<(), TreeError> {
        match self.in_area(&name)? {
            None
            | Some(Held {
                entry: Some(Entry::Directory),
                ..
            }) => Ok(()),
            Some(Held {
                entry: Some(entry), ..
            }) => {
                if !self.is_known(item, &entry, verdict)? {
                    kept.push(Kept {
                        path: item.path.clone(),
                        entry,
                        at: name,
                    });
                }
                Ok(())
            }
            Some(Held { stat, .. }) if stat.kind == FileKind::Directory => {
                self.keep_below(&item.path, &name, DEPTH, kept)
            }
            // A pipe, a socket or a device has no content.
            Some(_) => Ok(()),
        }
    }

    /// Whether nothing is lost with a content: it is ours, or was merged, or is in the tree.
    fn is_known(&self, item: &Item, entry: &Entry, verdict: Verdict) -> Result<bool, TreeError> {
        let rounds = || {
            let present = (&item.before, &item.after);
            let earlier = item.earlier.iter().map(|(before, after)| (before, after));
            earlier.chain([present])
        };
        let is = |known: &Option<Entry>| known.as_ref() == Some(entry);
        if rounds().any(|(_, after)| is(after)) {
            return Ok(true);
        }
        match verdict {
            Verdict::Landed => Ok(rounds().any(|(before, _)| is(before))),
            Verdict::TakenBack => Ok(self.in_tree(&item.path)?.is_some_and(|held| held.is(Some(entry)))),
        }
    }

    /// Everything in a directory that somebody filled.
    fn keep_below(
        &self,
        path: &RelPath,
        at: &RelPath,
        depth: usize,
        kept: &mut Vec<Kept>,
    ) -> Result<(), TreeError> {
        for (name, kind) in self.area.tree.list(Some(at))? {
            let (Ok(path), Ok(at)) = (path.join(&name), at.join(&name)) else {
                continue;
            };
            if kind == FileKind::Directory && depth > 0 {
                self.keep_below(&path, &at, depth - 1, kept)?;
            } else if let Some(Held {
                entry: Some(entry), ..
            }) = self.in_area(&at)?
            {
                kept.push(Kept { path, entry, at });
            }
        }
        Ok(())
    }

    /// Whether what came out is as it was when it was looked at, as far as times can prove it.
    fn is_as_seen(&self, item: &Item, name: &RelPath) -> Result<bool, TreeError> {
        let Some(seen) = item.out.filter(surely_unwritten) else {
            return Ok(false);
        };
        Ok(self.area.tree.stat(name)? == Some(seen))
    }

    /// What the file system says of what came out, if its times prove that nobody wrote it since.
    fn unwritten(&self, item: &Item) -> Option<FileStat> {
        [item.new_name(item.round), item.old_name(item.round)]
            .iter()
            .find_map(|name| self.area.tree.stat(name).ok().flatten())
            .filter(surely_unwritten)
    }
}

/// A rename sets the time of the last change and leaves that of the content. If the two are apart, every write since
/// would have brought them together.
fn surely_unwritten(stat: &FileStat) -> bool {
    stat.changed_ns - stat.modified_ns > SURELY_OLDER_NS
}
