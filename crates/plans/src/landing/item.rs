//! One effect in progress, and its names in the staging directory.

use std::collections::HashMap;

use crate::landing::error::LandError;
use crate::landing::journal::Landing;
use crate::{Effect, Entry, FileAttributes, FileStat, RelPath};

/// One effect in progress. Its entries are those of the current round.
#[derive(Debug)]
pub(super) struct Item {
    /// Its index in the journal, which its files are named after.
    pub(super) index: usize,
    pub(super) path: RelPath,
    pub(super) round: u32,
    pub(super) before: Option<Entry>,
    pub(super) after: Option<Entry>,
    /// What we expected at the path, and what we put there, in the rounds before this one.
    pub(super) earlier: Vec<(Option<Entry>, Option<Entry>)>,
    /// The metadata it gets beside its content, if it doesn't replace a file.
    pub(super) attributes: Option<FileAttributes>,
    /// The stat data of what came out, from the last check.
    pub(super) out: Option<FileStat>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operation {
    Nothing,
    Create,
    /// Something replaces a file or symlink.
    Replace,
    /// A file or symlink is removed.
    Delete,
    /// An empty directory is removed.
    DeleteDirectory,
    /// A file or symlink replaces an empty directory.
    ReplaceDirectory,
}

impl Item {
    pub(super) fn operation(&self) -> Operation {
        match (&self.before, &self.after) {
            (before, after) if before == after => Operation::Nothing,
            (None, _) => Operation::Create,
            (Some(Entry::Directory), None) => Operation::DeleteDirectory,
            (Some(Entry::Directory), Some(_)) => Operation::ReplaceDirectory,
            (Some(_), None) => Operation::Delete,
            (Some(_), Some(_)) => Operation::Replace,
        }
    }

    pub(super) fn effect(&self) -> Effect {
        Effect {
            path: self.path.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
        }
    }

    pub(super) fn next_round(&mut self, before: Option<Entry>, after: Option<Entry>) {
        let earlier = (
            std::mem::replace(&mut self.before, before),
            std::mem::replace(&mut self.after, after),
        );
        self.earlier.push(earlier);
        self.round += 1;
        self.out = None;
    }

    /// The new file of a round, and after an exchange what came out.
    pub(super) fn new_name(&self, round: u32) -> RelPath {
        self.name(round, "new")
    }

    pub(super) fn old_name(&self, round: u32) -> RelPath {
        self.name(round, "old")
    }

    /// What was moved out of the way in a round; see `exchange.rs`.
    pub(super) fn aside_name(&self, round: u32) -> RelPath {
        self.name(round, "aside")
    }

    pub(super) fn note_name(&self, round: u32) -> RelPath {
        self.name(round, "effect")
    }

    /// Its names in the staging directory in each round; not all of them have to exist.
    pub(super) fn names(&self) -> impl Iterator<Item = (u32, RelPath)> + use<> {
        let index = self.index;
        (0..=self.round).flat_map(move |round| {
            ["new", "old", "aside"].map(|what| (round, plain_name(&format!("{index}.{round}.{what}"))))
        })
    }

    fn name(&self, round: u32, what: &str) -> RelPath {
        plain_name(&format!("{}.{round}.{what}", self.index))
    }
}

/// A name that we made ourselves, from letters, digits and dots, as a path.
pub(super) fn plain_name(name: &str) -> RelPath {
    match RelPath::from_bytes(name.as_bytes()) {
        Ok(path) => path,
        Err(bad) => panic!("a name that we made is a path: {bad}"),
    }
}

/// The effects in the order in which they are carried out: removals first, the deepest first; then additions,
/// directories before their contents. It is the order of the journal's effects, whatever they became in later rounds.
pub(super) fn in_order(landing: &Landing) -> Result<Vec<Item>, LandError> {
    let attributes: HashMap<&RelPath, &FileAttributes> = landing
        .attributes
        .iter()
        .map(|(path, known)| (path, known))
        .collect();
    let mut by_path: Vec<_> = landing.effects.iter().enumerate().collect();
    // In byte order, a directory comes before everything in it.
    by_path.sort_by(|(_, one), (_, other)| one.path.cmp(&other.path));
    if let Some(pair) = by_path.windows(2).find(|pair| pair[0].1.path == pair[1].1.path) {
        return Err(LandError::Twice {
            path: pair[0].1.path.to_string(),
        });
    }
    let item = |(index, effect): &(usize, &Effect)| Item {
        index: *index,
        path: effect.path.clone(),
        round: 0,
        before: effect.before.clone(),
        after: effect.after.clone(),
        earlier: Vec::new(),
        attributes: attributes.get(&effect.path).map(|known| (*known).clone()),
        out: None,
    };
    let goes = |(_, effect): &&(usize, &Effect)| effect.after.is_none();
    let going = by_path.iter().filter(goes).rev().map(item);
    let coming = by_path.iter().filter(|effect| !goes(effect)).map(item);
    Ok(going.chain(coming).collect())
}
