//! A diff of changes as a patch for `git apply`.

use std::io::{self, Write};

use protocol::DiffLineKind;

use super::binary::{git_object_id, write_binary};
use super::file::start;
use super::hunks::Compared;
use super::name::{prefixed, quoted};
use super::sides::{Content, Shown};
use crate::{Change, Contents, RelPath};

const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// Writes a patch that `git apply` applies and `git apply -R` reverts; a reverted symlink becomes a file, as with git's
/// own patches.
///
/// It carries what git can carry: no directories, and the executable bit as the only permission. A file that is too
/// large to diff is listed, so that `git apply` refuses the patch rather than skip the file.
pub fn write_patch(changes: &[Change], contents: &dyn Contents, to: &mut dyn Write) -> io::Result<()> {
    for change in changes {
        let old_path = change.from.as_ref().unwrap_or(&change.path);
        let (before, after) = Shown::both(change);
        let is_other_type = matches!(
            (&before, &after),
            (Shown::File(_), Shown::Symlink(_)) | (Shown::Symlink(_), Shown::File(_))
        );
        if is_other_type {
            // To git, that is one file deleted and another created.
            write_file(old_path, old_path, &before, &Shown::Nothing, contents, to)?;
            write_file(&change.path, &change.path, &Shown::Nothing, &after, contents, to)?;
        } else {
            write_file(old_path, &change.path, &before, &after, contents, to)?;
        }
    }
    Ok(())
}

fn write_file(
    old_path: &RelPath,
    new_path: &RelPath,
    before: &Shown<'_>,
    after: &Shown<'_>,
    contents: &dyn Contents,
    to: &mut dyn Write,
) -> io::Result<()> {
    let (is_rename, is_same) = (old_path != new_path, before.is_same_content(after));
    let (old_mode, new_mode) = (before.git_mode(), after.git_mode());
    if is_same && !is_rename && old_mode == new_mode {
        return Ok(());
    }
    let (old_name, new_name) = (prefixed("a/", old_path), prefixed("b/", new_path));
    write_words(to, &[b"diff --git", &old_name, &new_name])?;
    match (old_mode, new_mode) {
        (None, Some(mode)) => writeln!(to, "new file mode {mode:06o}")?,
        (Some(mode), None) => writeln!(to, "deleted file mode {mode:06o}")?,
        (Some(old), Some(new)) if old != new => writeln!(to, "old mode {old:06o}\nnew mode {new:06o}")?,
        _ => {}
    }
    if is_same {
        return if is_rename {
            write_rename(old_path, new_path, 100, to)
        } else {
            Ok(())
        };
    }
    let (before, after) = (before.content(contents)?, after.content(contents)?);
    let compared = match (&before, &after) {
        (Content::Text(old), Content::Text(new)) => Some(Compared::new(old, new)),
        _ => None,
    };
    if is_rename {
        let similar = compared.as_ref().map_or(0, Compared::similarity_percent);
        write_rename(old_path, new_path, similar.min(99), to)?;
    }
    let (Some(old), Some(new)) = (before.bytes(), after.bytes()) else {
        return write_words(to, &[b"Binary files", &old_name, b"and", &new_name, b"differ"]);
    };
    let old_id = old_mode.map_or(NO_OBJECT.to_owned(), |_| git_object_id(old));
    let new_id = new_mode.map_or(NO_OBJECT.to_owned(), |_| git_object_id(new));
    match old_mode.zip(new_mode).filter(|(old, new)| old == new) {
        Some((mode, _)) => writeln!(to, "index {old_id}..{new_id} {mode:06o}")?,
        None => writeln!(to, "index {old_id}..{new_id}")?,
    }
    match compared {
        None => write_binary(old, new, to),
        // An empty file has no lines to show.
        Some(compared) if compared.is_empty() => Ok(()),
        Some(compared) => {
            write_side(b"---", old_mode.map(|_| old_name), to)?;
            write_side(b"+++", new_mode.map(|_| new_name), to)?;
            write_hunks(&compared, to)
        }
    }
}

fn write_rename(old: &RelPath, new: &RelPath, similarity_percent: u64, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "similarity index {similarity_percent}%")?;
    write_words(to, &[b"rename from", &quoted(old.as_bytes())])?;
    write_words(to, &[b"rename to", &quoted(new.as_bytes())])
}

/// Writes the line that names a side. A name with a space in it ends with a tab, so that other programs can tell
/// where it ends.
fn write_side(mark: &[u8], name: Option<Vec<u8>>, to: &mut dyn Write) -> io::Result<()> {
    let mut name = name.unwrap_or_else(|| b"/dev/null".to_vec());
    if name.contains(&b' ') {
        name.push(b'\t');
    }
    write_words(to, &[mark, &name])
}

fn write_hunks(compared: &Compared<'_>, to: &mut dyn Write) -> io::Result<()> {
    for group in compared.groups() {
        let span = |lines: &std::ops::Range<u32>| match lines.len() {
            1 => start(lines).to_string(),
            count => format!("{},{count}", start(lines)),
        };
        writeln!(to, "@@ -{} +{} @@", span(&group.before), span(&group.after))?;
        for (kind, line) in compared.lines(&group) {
            to.write_all(match kind {
                DiffLineKind::Context => b" ",
                DiffLineKind::Added => b"+",
                DiffLineKind::Removed => b"-",
            })?;
            to.write_all(line)?;
            if !line.ends_with(b"\n") {
                to.write_all(b"\n\\ No newline at end of file\n")?;
            }
        }
    }
    Ok(())
}

fn write_words(to: &mut dyn Write, words: &[&[u8]]) -> io::Result<()> {
    to.write_all(&words.join(&b' '))?;
    to.write_all(b"\n")
}
