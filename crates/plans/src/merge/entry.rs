//! The three-way merge of one path: the base, and what each side has made of it. Nothing here considers other paths.

use std::io;

use bytes::Bytes;
use eventlog::BlobId;
use protocol::PlanConflictHunk;

use super::text::{TextMerge, merge_text, merge_union};
use super::types::{ConflictKind, MergeDriver};
use crate::{Contents, Entry, TEXT_LIMIT_BYTES};

/// A NUL in this many bytes at the start makes a file binary, as in git.
const BINARY_LOOK_BYTES: usize = 8000;

/// Whether a content is text, for merges and for diffs.
#[must_use]
pub fn is_text(content: &[u8]) -> bool {
    let start = &content[..content.len().min(BINARY_LOOK_BYTES)];
    !start.contains(&0) && content.len() as u64 <= TEXT_LIMIT_BYTES
}

#[derive(Debug)]
pub(super) enum EntryMerge {
    Keep,
    Take,
    /// Both changed it, and this combines both; with its content if neither side had it.
    Combine(Entry, Option<Bytes>),
    Conflict(ConflictKind, Vec<PlanConflictHunk>),
}

impl EntryMerge {
    fn conflict(kind: ConflictKind) -> Self {
        Self::Conflict(kind, Vec::new())
    }
}

pub(super) fn merge_entry(
    base: Option<&Entry>,
    ours: Option<&Entry>,
    theirs: Option<&Entry>,
    texts: &mut Texts<'_>,
) -> io::Result<EntryMerge> {
    use Entry::{Directory, File, Symlink};
    if ours == theirs || base == theirs {
        return Ok(EntryMerge::Keep);
    }
    if ours == base {
        return Ok(EntryMerge::Take);
    }
    Ok(match (base, ours, theirs) {
        // A directory is only a container. Deleting one, or replacing it with a file, says nothing about what
        // else happened at that path.
        (Some(Directory), _, None) => EntryMerge::Keep,
        (Some(Directory), None, Some(_)) => EntryMerge::Take,
        (_, None, Some(Directory)) => EntryMerge::Take,
        (_, Some(Directory), None) => EntryMerge::Keep,
        (_, Some(Directory), Some(_)) | (_, Some(_), Some(Directory)) => {
            EntryMerge::conflict(ConflictKind::DirectoryAndFile)
        }
        (_, Some(_), None) => EntryMerge::conflict(ConflictKind::DeletedByPlan),
        (_, None, _) => EntryMerge::conflict(ConflictKind::DeletedByWorkspace),
        (None | Some(Directory), Some(ours), Some(theirs)) => both_added(ours, theirs, texts)?,
        (Some(base @ File { .. }), Some(ours @ File { .. }), Some(theirs @ File { .. })) => {
            merge_file(base, ours, theirs, texts)?
        }
        (Some(File { .. } | Symlink { .. }), Some(_), Some(_)) => EntryMerge::conflict(ConflictKind::Type),
    })
}

fn merge_file(base: &Entry, ours: &Entry, theirs: &Entry, texts: &mut Texts<'_>) -> io::Result<EntryMerge> {
    let (base, ours, theirs) = (FileEntry::of(base), FileEntry::of(ours), FileEntry::of(theirs));
    let (Some(base), Some(ours), Some(theirs)) = (base, ours, theirs) else {
        return Ok(EntryMerge::conflict(ConflictKind::Type));
    };
    // Bit by bit, so that the sides can never disagree: if both changed a bit, both changed it to the same
    // value.
    let mode = ours.mode ^ ((base.mode ^ theirs.mode) & !(base.mode ^ ours.mode));
    let kept = |file: FileEntry| EntryMerge::Combine(file.entry(mode), None);
    if ours.hash == theirs.hash || base.hash == theirs.hash {
        return Ok(kept(ours));
    }
    if base.hash == ours.hash {
        return Ok(kept(theirs));
    }
    Ok(match texts.merge(Some(base), ours, theirs)? {
        FileMerge::NotText => EntryMerge::conflict(ConflictKind::Binary),
        FileMerge::Text(TextMerge::Clean(merged)) => combined(merged, mode),
        FileMerge::Text(TextMerge::Conflicted(hunks)) => EntryMerge::Conflict(ConflictKind::Content, hunks),
    })
}

fn combined(merged: Vec<u8>, mode: u32) -> EntryMerge {
    let hash = BlobId::of(&merged);
    let size = merged.len() as u64;
    EntryMerge::Combine(Entry::File { hash, size, mode }, Some(merged.into()))
}

/// Two files that the two sides created at one path: a conflict, with the differing regions if they are text, unless
/// the union driver takes all lines of both.
fn both_added(ours: &Entry, theirs: &Entry, texts: &mut Texts<'_>) -> io::Result<EntryMerge> {
    let added = |hunks| EntryMerge::Conflict(ConflictKind::BothAdded, hunks);
    let (Some(ours), Some(theirs)) = (FileEntry::of(ours), FileEntry::of(theirs)) else {
        return Ok(added(Vec::new()));
    };
    let is_union = (texts.driver)() == MergeDriver::Union;
    Ok(match texts.merge(None, ours, theirs)? {
        FileMerge::Text(TextMerge::Conflicted(hunks)) => added(hunks),
        FileMerge::Text(TextMerge::Clean(merged)) if is_union => combined(merged, ours.mode),
        FileMerge::Text(TextMerge::Clean(_)) | FileMerge::NotText => added(Vec::new()),
    })
}

/// How the files at one path are merged.
pub(super) struct Texts<'a> {
    pub(super) files: &'a mut dyn MergeFiles,
    /// Called only if both sides have changed the file.
    pub(super) driver: &'a dyn Fn() -> MergeDriver,
}

impl Texts<'_> {
    fn merge(
        &mut self,
        base: Option<FileEntry>,
        ours: FileEntry,
        theirs: FileEntry,
    ) -> io::Result<FileMerge> {
        match (self.driver)() {
            MergeDriver::Binary => Ok(FileMerge::NotText),
            driver => self.files.merge(base, ours, theirs, driver),
        }
    }
}

/// How file contents are merged. It is a trait because the overlap detector only needs to know whether they can be.
pub(crate) trait MergeFiles {
    /// Merges two files; without a base, both started empty. With the union driver, all lines of both sides are
    /// taken where they changed the same ones.
    fn merge(
        &mut self,
        base: Option<FileEntry>,
        ours: FileEntry,
        theirs: FileEntry,
        driver: MergeDriver,
    ) -> io::Result<FileMerge>;
}

#[derive(Debug)]
pub(crate) enum FileMerge {
    /// One of them isn't text, or is too large to compare.
    NotText,
    Text(TextMerge),
}

impl MergeFiles for &dyn Contents {
    fn merge(
        &mut self,
        base: Option<FileEntry>,
        ours: FileEntry,
        theirs: FileEntry,
        driver: MergeDriver,
    ) -> io::Result<FileMerge> {
        let Some([base, ours, theirs]) = texts_of([base, Some(ours), Some(theirs)], *self)? else {
            return Ok(FileMerge::NotText);
        };
        Ok(FileMerge::Text(match driver {
            MergeDriver::Union => TextMerge::Clean(merge_union(&base, &ours, &theirs)),
            MergeDriver::Text | MergeDriver::Binary => merge_text(&base, &ours, &theirs),
        }))
    }
}

fn texts_of(files: [Option<FileEntry>; 3], contents: &dyn Contents) -> io::Result<Option<[Bytes; 3]>> {
    let mut texts = [const { Bytes::new() }; 3];
    for (text, file) in texts.iter_mut().zip(files) {
        let Some(file) = file else { continue };
        match text_of(file.hash, file.size, contents)? {
            Some(content) => *text = content,
            None => return Ok(None),
        }
    }
    Ok(Some(texts))
}

pub(crate) fn text_of(hash: BlobId, size: u64, contents: &dyn Contents) -> io::Result<Option<Bytes>> {
    if size > TEXT_LIMIT_BYTES {
        return Ok(None);
    }
    let content = contents.get(hash)?;
    Ok(is_text(&content).then_some(content))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FileEntry {
    pub(crate) hash: BlobId,
    pub(crate) size: u64,
    pub(crate) mode: u32,
}

impl FileEntry {
    pub(crate) fn of(entry: &Entry) -> Option<Self> {
        match *entry {
            Entry::File { hash, size, mode } => Some(Self { hash, size, mode }),
            Entry::Symlink { .. } | Entry::Directory => None,
        }
    }

    fn entry(self, mode: u32) -> Entry {
        let Self { hash, size, .. } = self;
        Entry::File { hash, size, mode }
    }
}
