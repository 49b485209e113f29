//! A sandbox goes away.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::repository::is_absence;

/// The size of a block that the system counts in.
const BLOCK_BYTES: u64 = 512;

/// How long a path may be before what it names is moved to a shorter one. The system takes twice as many, and a name may
/// have 255.
const LONG_BYTES: usize = 2048;

/// Removes a directory with everything in it, and says how many bytes that freed. One that is not there is no error.
///
/// What an actor left may be directories that nobody may write, and an overlay's own that nobody may even read; they are
/// ours all the same.
pub fn remove_tree(root: &Path) -> io::Result<u64> {
    let (mut freed, mut raised) = (0, 0);
    // A directory is met twice: to look into it, and when it is empty.
    let mut pending = vec![(root.to_owned(), Visit::First)];
    while let Some((path, visit)) = pending.pop() {
        match visit {
            Visit::Last => freed += gone(&path, fs::remove_dir(&path))?,
            Visit::First if path.as_os_str().len() > LONG_BYTES => {
                // Nobody can name what lies deeper, so it is brought up.
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

/// What is in a directory, which can be emptied then.
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
