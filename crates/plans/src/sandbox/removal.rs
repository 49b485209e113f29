//! Removing a sandbox.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::repository::is_absence;

/// The block size in which the system counts.
const BLOCK_BYTES: u64 = 512;

/// The longest path that is used before what it names is moved to a shorter one. The system supports twice as much, and
/// a name may have 255 bytes.
const LONG_BYTES: usize = 2048;

/// Removes a directory with everything in it, and returns how many bytes that freed. It is not an error if it
/// doesn't exist.
///
/// An actor may leave read-only directories, and an overlay has directories that can't even be read; we own them, so
/// they can be removed anyway.
pub fn remove_tree(root: &Path) -> io::Result<u64> {
    let (mut freed, mut raised) = (0, 0);
    // A directory is visited twice: to list it, and when it is empty.
    let mut pending = vec![(root.to_owned(), Visit::First)];
    while let Some((path, visit)) = pending.pop() {
        match visit {
            Visit::Last => freed += gone(&path, fs::remove_dir(&path))?,
            Visit::First if path.as_os_str().len() > LONG_BYTES => {
                // A path can't name what lies deeper, so move it up.
                let place = root.join(format!("removed-{raised}"));
                raised += 1;
                fs::rename(&path, &place).map_err(|error| at(&path, error))?;
                pending.push((place, Visit::First));
            }
            Visit::First => match open_up(&path) {
                Ok(items) => {
                    pending.push((path, Visit::Last));
                    for item in items {
                        let (path, kind) = item?;
                        if kind.is_dir() {
                            pending.push((path, Visit::First));
                        } else {
                            let size = fs::symlink_metadata(&path).map_or(0, |stat| match stat.nlink() {
                                1 => stat.blocks() * BLOCK_BYTES,
                                _ => 0,
                            });
                            freed += gone(&path, fs::remove_file(&path)).map(|_| size)?;
                        }
                    }
                }
                Err(error) if is_absence(&error) => {}
                Err(error) => return Err(at(&path, error)),
            },
        }
    }
    Ok(freed)
}

#[derive(Clone, Copy)]
enum Visit {
    First,
    Last,
}

type Items = Vec<io::Result<(PathBuf, fs::FileType)>>;

/// Lists a directory, and makes it writable so that it can be emptied.
fn open_up(path: &Path) -> io::Result<Items> {
    let list = || -> io::Result<Items> {
        let items = fs::read_dir(path)?;
        Ok(items
            .map(|item| item.and_then(|item| Ok((item.path(), item.file_type()?))))
            .collect())
    };
    let stat = fs::symlink_metadata(path)?;
    if stat.is_dir() && stat.mode() & 0o700 != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    list()
}

fn gone(path: &Path, removed: io::Result<()>) -> io::Result<u64> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path, error)),
        _ => Ok(0),
    }
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
