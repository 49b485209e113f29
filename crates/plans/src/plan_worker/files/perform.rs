//! One write to a sandbox, and the resulting changes.

use std::io::Cursor;

use crate::{
    Change, Entry, FileKind, FileOperation, LinkTarget, PlanError, RelPath, SeenFile, TEXT_LIMIT_BYTES, Tree,
    TreeError,
};

const NEW_FILE: u32 = 0o644;
/// The executable bits.
const EXECUTABLE: u32 = 0o111;

#[derive(Debug, Default)]
pub(super) struct Performed {
    pub(super) changes: Vec<Change>,
    pub(super) failed: Option<PlanError>,
}

/// Performs one write. It blocks.
pub(super) fn perform(tree: &Tree, operation: FileOperation) -> Performed {
    let mut changes = Vec::new();
    let done = match operation {
        FileOperation::Write {
            path,
            content,
            executable,
            seen,
        } => write(tree, path, &content, (executable, seen), &mut changes),
        FileOperation::Edit { path, find, replace } => edit(tree, path, &find, &replace, &mut changes),
        FileOperation::Delete { path } => delete(tree, &path, &mut changes),
        FileOperation::Rename { from, path } => rename(tree, &from, &path, &mut changes),
        FileOperation::Symlink { path, target } => symlink(tree, path, target, &mut changes),
        FileOperation::Chmod { path, executable } => chmod(tree, path, executable, &mut changes),
    };
    Performed {
        changes,
        failed: done.err(),
    }
}

fn refused(path: &RelPath, why: impl Into<String>) -> PlanError {
    PlanError::FileRefused {
        path: path.to_string(),
        why: why.into(),
    }
}

fn said(path: &RelPath) -> impl Fn(TreeError) -> PlanError + '_ {
    move |error| match error.kind() {
        std::io::ErrorKind::NotFound => PlanError::FileNotFound {
            path: path.to_string(),
        },
        _ => refused(path, error.to_string()),
    }
}

fn change(path: RelPath, before: Option<Entry>, after: Option<Entry>) -> Change {
    Change {
        path,
        before,
        after,
        from: None,
    }
}

fn make_parents(tree: &Tree, path: &RelPath, changes: &mut Vec<Change>) -> Result<(), PlanError> {
    for directory in path.ancestors() {
        match tree.stat(&directory).map_err(said(path))? {
            Some(stat) if stat.kind == FileKind::Directory => {}
            Some(_) => return Err(refused(path, format!("`{directory}` is not a directory"))),
            None => {
                tree.make_directory(&directory).map_err(said(path))?;
                changes.push(change(directory, None, Some(Entry::Directory)));
            }
        }
    }
    Ok(())
}

fn write(
    tree: &Tree,
    path: RelPath,
    content: &[u8],
    (executable, seen): (Option<bool>, Option<SeenFile>),
    changes: &mut Vec<Change>,
) -> Result<(), PlanError> {
    let before = tree.entry(&path).map_err(said(&path))?;
    check_seen(&path, before.as_ref(), seen)?;
    let old_mode = match &before {
        Some(Entry::Directory) => return Err(refused(&path, "it is a directory")),
        Some(Entry::File { mode, .. }) => *mode,
        Some(Entry::Symlink { .. }) | None => NEW_FILE,
    };
    let mode = with_executable(old_mode, executable);
    make_parents(tree, &path, changes)?;
    let after = tree
        .write(&path, Cursor::new(content), mode)
        .map_err(said(&path))?;
    if before.as_ref() != Some(&after) {
        changes.push(change(path, before, Some(after)));
    }
    Ok(())
}

fn check_seen(path: &RelPath, found: Option<&Entry>, seen: Option<SeenFile>) -> Result<(), PlanError> {
    let is_as_seen = match (&seen, found) {
        (None, _) | (Some(SeenFile::Nothing), None) => true,
        (Some(SeenFile::File(hash)), Some(entry)) => entry.content() == Some(*hash),
        (Some(_), _) => false,
    };
    if is_as_seen {
        return Ok(());
    }
    Err(PlanError::FileStale {
        path: path.to_string(),
        hash: found.and_then(Entry::content).map(|hash| hash.to_string()),
    })
}

/// Everyone who may read an executable file may execute it.
fn with_executable(mode: u32, executable: Option<bool>) -> u32 {
    match executable {
        None => mode,
        Some(true) => mode | (mode >> 2 & EXECUTABLE),
        Some(false) => mode & !EXECUTABLE,
    }
}

fn edit(
    tree: &Tree,
    path: RelPath,
    find: &str,
    replace: &str,
    changes: &mut Vec<Change>,
) -> Result<(), PlanError> {
    if find.is_empty() {
        return Err(refused(&path, "the text to be replaced is empty"));
    }
    let content = tree.read(&path, TEXT_LIMIT_BYTES).map_err(said(&path))?;
    let mut places = content
        .windows(find.len())
        .enumerate()
        .filter(|(_, window)| *window == find.as_bytes());
    let place = match (places.next(), places.next()) {
        (Some((place, _)), None) => place,
        (None, _) => return Err(refused(&path, "the text to be replaced does not occur in it")),
        (Some(_), Some(_)) => {
            let count = 2 + places.count();
            return Err(refused(
                &path,
                format!("the text to be replaced occurs {count} times in it; give more of it"),
            ));
        }
    };
    let seen = SeenFile::File(eventlog::BlobId::of(&content));
    let edited = [
        &content[..place],
        replace.as_bytes(),
        &content[place + find.len()..],
    ]
    .concat();
    write(tree, path, &edited, (None, Some(seen)), changes)
}

fn delete(tree: &Tree, path: &RelPath, changes: &mut Vec<Change>) -> Result<(), PlanError> {
    let gone = everything(tree, path)?;
    // Innermost first, so that every step can be recorded.
    for (path, entry) in gone.into_iter().rev() {
        tree.remove(&path).map_err(said(&path))?;
        changes.push(change(path, Some(entry), None));
    }
    Ok(())
}

/// Everything at and below a path, outermost first.
fn everything(tree: &Tree, path: &RelPath) -> Result<Vec<(RelPath, Entry)>, PlanError> {
    let missing = || PlanError::FileNotFound {
        path: path.to_string(),
    };
    let entry = tree.entry(path).map_err(said(path))?.ok_or_else(missing)?;
    let is_directory = entry.is_directory();
    let mut found = vec![(path.clone(), entry)];
    if is_directory {
        for (name, _) in tree.list(Some(path)).map_err(said(path))? {
            found.extend(everything(tree, &path.join(&name)?)?);
        }
    }
    Ok(found)
}

fn rename(tree: &Tree, from: &RelPath, path: &RelPath, changes: &mut Vec<Change>) -> Result<(), PlanError> {
    if path == from || path.is_below(from) {
        return Err(refused(path, format!("`{from}` cannot be moved into itself")));
    }
    if tree.stat(path).map_err(said(path))?.is_some() {
        return Err(refused(path, "there is something already"));
    }
    let moved = everything(tree, from)?;
    make_parents(tree, path, changes)?;
    // File by file: a directory of a lower layer cannot be renamed as a whole.
    for (old, entry) in &moved {
        let new = RelPath::from_bytes(&[path.as_bytes(), &old.as_bytes()[from.as_bytes().len()..]].concat())?;
        if entry.is_directory() {
            tree.make_directory(&new).map_err(said(&new))?;
            changes.push(change(new, None, Some(Entry::Directory)));
        } else {
            tree.rename_noreplace(old, &new).map_err(said(&new))?;
            changes.push(Change {
                path: new,
                before: Some(entry.clone()),
                after: Some(entry.clone()),
                from: Some(old.clone()),
            });
        }
    }
    for (old, entry) in moved.into_iter().rev().filter(|(_, entry)| entry.is_directory()) {
        tree.remove(&old).map_err(said(&old))?;
        changes.push(change(old, Some(entry), None));
    }
    Ok(())
}

fn symlink(tree: &Tree, path: RelPath, target: String, changes: &mut Vec<Change>) -> Result<(), PlanError> {
    if leads_out(&path, &target) {
        return Err(refused(&path, "its target lies outside of the workspace"));
    }
    let before = tree.entry(&path).map_err(said(&path))?;
    let target = LinkTarget(target.into_bytes().into());
    let after = Entry::Symlink {
        target: target.clone(),
    };
    match &before {
        Some(Entry::Directory) => return Err(refused(&path, "it is a directory")),
        Some(entry) if *entry == after => return Ok(()),
        Some(_) => tree.remove(&path).map_err(said(&path))?,
        None => make_parents(tree, &path, changes)?,
    }
    tree.symlink(&path, &target).map_err(said(&path))?;
    changes.push(change(path, before, Some(after)));
    Ok(())
}

/// Whether a symlink at a path would lead out of the tree, judging by its text.
fn leads_out(path: &RelPath, target: &str) -> bool {
    let mut depth = path.ancestors().count();
    if target.is_empty() || target.starts_with('/') || target.contains('\0') {
        return true;
    }
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn chmod(tree: &Tree, path: RelPath, executable: bool, changes: &mut Vec<Change>) -> Result<(), PlanError> {
    let before = tree.entry(&path).map_err(said(&path))?;
    let (hash, size, mode) = match &before {
        Some(Entry::File { hash, size, mode }) => (*hash, *size, *mode),
        Some(_) => return Err(refused(&path, "it is not a file")),
        None => {
            return Err(PlanError::FileNotFound {
                path: path.to_string(),
            });
        }
    };
    let mode_after = with_executable(mode, Some(executable));
    if mode_after != mode {
        tree.set_mode(&path, mode_after).map_err(said(&path))?;
        let after = Entry::File {
            hash,
            size,
            mode: mode_after,
        };
        changes.push(change(path, before, Some(after)));
    }
    Ok(())
}
