//! Merging a path again because someone saved it at the moment of its replacement.

use bytes::Bytes;
use eventlog::BlobId;

use crate::landing::item::{Item, Operation};
use crate::landing::run::{LandingRun, PathState, Stop, in_the_way};
use crate::landing::steps::StepKind;
use crate::{Conflict, ConflictKind, Effect, Entry, FileKind, RelPath, TEXT_LIMIT_BYTES, TreeError};

/// How often a path is merged again. A program that saves in every one of these instants would do so forever.
const ROUNDS: u32 = 5;

/// Merges again what someone has saved in the meantime.
pub trait Remerge: Send + Sync {
    /// Returns what the path should have, given what was found there; `None` if nothing was. It may block.
    ///
    /// # Errors
    /// It can't be merged. Then everything is rolled back.
    fn again(&self, path: &RelPath, found: Option<&SavedMeanwhile>) -> Result<Remerged, Box<Conflict>>;
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SavedMeanwhile {
    pub entry: Entry,
    /// Its content, if it is a file of at most [`TEXT_LIMIT_BYTES`].
    pub content: Option<Bytes>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Remerged {
    pub after: Option<Entry>,
    pub made: Option<Bytes>,
}

/// Merges nothing: anything saved in the meantime is a conflict.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRemerge;

impl Remerge for NoRemerge {
    fn again(&self, path: &RelPath, found: Option<&SavedMeanwhile>) -> Result<Remerged, Box<Conflict>> {
        Err(Box::new(Conflict {
            path: path.clone(),
            kind: ConflictKind::Moving,
            base: None,
            ours: found.map(|found| found.entry.clone()),
            theirs: None,
            other: None,
            hunks: Vec::new(),
        }))
    }
}

impl LandingRun<'_> {
    /// Checks what is at the path now, and changes the effect to start from that.
    pub(super) fn again(&self, item: &mut Item) -> Result<(), Stop> {
        let held = self.in_tree(&item.path)?;
        if item.round == ROUNDS {
            return Err(in_the_way(item, ConflictKind::Moving, held.as_ref()));
        }
        let is_directory = |held: &PathState| held.stat.kind == FileKind::Directory;
        if item.after == Some(Entry::Directory) && held.as_ref().is_some_and(is_directory) {
            // Someone else was faster, and may have put something into it.
            return self.let_be(item, Some(Entry::Directory));
        }
        let found = match held {
            None => None,
            Some(held) => Some(self.found(item, &held)?),
        };
        let directory = |entry: &Option<&Entry>| matches!(entry, Some(Entry::Directory));
        let entry = found.as_ref().map(|found| &found.entry);
        if entry == item.before.as_ref() {
            // It was something else for an instant, or was changed and changed back.
            let after = item.after.clone();
            return self.next(item, entry.cloned(), after, None);
        }
        if entry == item.after.as_ref() {
            let entry = entry.cloned();
            return self.next(item, entry.clone(), entry, None);
        }
        if [entry, item.before.as_ref(), item.after.as_ref()]
            .iter()
            .any(directory)
        {
            let held = self.in_tree(&item.path)?;
            return Err(in_the_way(item, ConflictKind::DirectoryAndFile, held.as_ref()));
        }
        let Remerged { after, made } = self
            .site
            .remerge
            .again(&item.path, found.as_ref())
            .map_err(Stop::Conflict)?;
        self.next(item, found.map(|found| found.entry), after, made.as_ref())
    }

    /// The effect turns out to be done already, or is no longer wanted.
    pub(super) fn let_be(&self, item: &mut Item, entry: Option<Entry>) -> Result<(), Stop> {
        self.next(item, entry.clone(), entry, None)
    }

    /// Stages the new version of the effect, then writes a note about it.
    fn next(
        &self,
        item: &mut Item,
        before: Option<Entry>,
        after: Option<Entry>,
        made: Option<&Bytes>,
    ) -> Result<(), Stop> {
        let round = item.round + 1;
        let effect = Effect {
            path: item.path.clone(),
            before,
            after,
        };
        if let Some(after) = effect.after.as_ref().filter(|_| effect.before != effect.after) {
            let name = item.new_name(round);
            // A kill may have left it there without the note.
            self.area.tree.remove_all(&name)?;
            if let Some(file) = self.stage_one(&name, after, made)? {
                file.sync_all().map_err(|source| TreeError::Io {
                    what: "sync",
                    path: name.to_string(),
                    source,
                })?;
            }
            self.reached(StepKind::AgainStaged, Some(&item.path));
        }
        let note = serde_json::to_vec(&effect).map_err(|error| TreeError::Io {
            what: "write down the effect on",
            path: item.path.to_string(),
            source: error.into(),
        })?;
        self.area.note(&item.note_name(round), &note)?;
        item.next_round(effect.before, effect.after);
        self.reached(StepKind::AgainNoted, Some(&item.path));
        Ok(())
    }

    /// What was found, with a content that is guaranteed to match its entry.
    fn found(&self, item: &Item, held: &PathState) -> Result<SavedMeanwhile, Stop> {
        let Some(entry) = held.entry.clone() else {
            let kind = match item.operation() {
                Operation::DeleteDirectory | Operation::ReplaceDirectory => ConflictKind::DirectoryAndFile,
                _ if held.stat.kind == FileKind::Directory => ConflictKind::DirectoryAndFile,
                _ => ConflictKind::Type,
            };
            return Err(in_the_way(item, kind, Some(held)));
        };
        let Entry::File { size, mode, .. } = entry else {
            return Ok(SavedMeanwhile { entry, content: None });
        };
        if size > TEXT_LIMIT_BYTES {
            return Ok(SavedMeanwhile { entry, content: None });
        }
        match self.site.tree.read(&item.path, TEXT_LIMIT_BYTES) {
            Ok(content) => {
                let (hash, size) = (BlobId::of(&content), content.len() as u64);
                Ok(SavedMeanwhile {
                    entry: Entry::File { hash, size, mode },
                    content: Some(content.into()),
                })
            }
            // It changed again. The next exchange sees the new state; here, return what was found.
            Err(_) => Ok(SavedMeanwhile { entry, content: None }),
        }
    }
}
