//! Files of other programs, read whole and replaced atomically.
//!
//! The owner of such a file may write it at any time, as Claude Code often does. So a change states what it expects:
//! the new file and the old one are exchanged, and the old one is compared with what was read. If it differs, they
//! are exchanged back, and the caller decides again. The old file becomes the backup, so the backup is always the
//! file that was replaced.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// The largest configuration we read. Real ones have kilobytes; anything larger is something else.
const SIZE_LIMIT_BYTES: u64 = 16 << 20;
const BACKUP: &str = ".before-tidelock";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The file itself, with links resolved.
    pub(super) path: PathBuf,
    /// Its content; `None` if there is no file.
    pub(super) text: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The new text is in the file, and the previous text in `backup`.
    Replaced { backup: PathBuf },
    /// There was no file.
    Created,
    /// The file was changed in the meantime, and nothing was done.
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    Me,
    Everybody,
}

pub(super) fn read(path: &Path) -> io::Result<Seen> {
    // Keep a link that someone made on purpose.
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.symlink_metadata().is_ok() {
                return Err(io::Error::other("it is a broken symlink"));
            }
            return Ok(Seen {
                path: path.to_owned(),
                text: None,
            });
        }
        Err(error) => return Err(error),
    };
    if !fs::metadata(&path)?.is_file() {
        return Err(io::Error::other("it isn't a file"));
    }
    let text = read_text(&path)?;
    Ok(Seen {
        path,
        text: Some(text),
    })
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(SIZE_LIMIT_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > SIZE_LIMIT_BYTES {
        return Err(io::Error::other("it is too large for a configuration"));
    }
    Ok(text)
}

pub(super) fn write(seen: &Seen, text: &str, readers: Readers) -> io::Result<Written> {
    let (directory, name) = match (seen.path.parent(), seen.path.file_name()) {
        (Some(directory), Some(name)) => (directory, name),
        _ => return Err(io::Error::other("it has no name")),
    };
    fs::create_dir_all(directory)?;
    let beside = |ending: &str| {
        let mut name: OsString = name.to_owned();
        name.push(ending);
        directory.join(name)
    };
    let temporary = beside(&format!(".{}.tidelock", std::process::id()));
    let mode = match (&seen.text, readers) {
        (Some(_), _) => fs::metadata(&seen.path)?.permissions().mode() & 0o7777,
        (None, Readers::Me) => 0o600,
        (None, Readers::Everybody) => 0o644,
    };
    let written = prepare(&temporary, text, mode).and_then(|()| match &seen.text {
        Some(before) => exchange(&temporary, seen, before, &beside(BACKUP)),
        None => create(&temporary, seen),
    });
    if !matches!(written, Ok(Written::Replaced { .. } | Written::Created)) {
        // The temporary file is harmless if it can't be removed.
        drop(fs::remove_file(&temporary));
    }
    let written = written?;
    // On file systems that don't support this, a crash of the machine may bring back the old file, whole.
    drop(File::open(directory).and_then(|directory| directory.sync_all()));
    Ok(written)
}

fn prepare(temporary: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

fn create(temporary: &Path, seen: &Seen) -> io::Result<Written> {
    match renameat_with(CWD, temporary, CWD, &seen.path, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(Written::Created),
        Err(Errno::EXIST) => Ok(Written::Stale),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match fs::hard_link(temporary, &seen.path) {
            Ok(()) => fs::remove_file(temporary).map(|()| Written::Created),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Written::Stale),
            Err(error) => Err(error),
        },
        Err(error) => Err(error.into()),
    }
}

fn exchange(temporary: &Path, seen: &Seen, before: &str, backup: &Path) -> io::Result<Written> {
    let swap = || renameat_with(CWD, temporary, CWD, &seen.path, RenameFlags::EXCHANGE);
    match swap() {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(Written::Stale),
        // Some network file systems cannot exchange. There, comparing once more has to do.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            if read_text(&seen.path)? != before {
                return Ok(Written::Stale);
            }
            fs::copy(&seen.path, backup)?;
            fs::rename(temporary, &seen.path)?;
            return Ok(Written::Replaced {
                backup: backup.to_owned(),
            });
        }
        Err(error) => return Err(error.into()),
    }
    if read_text(temporary).is_ok_and(|found| found == before) {
        fs::rename(temporary, backup)?;
        return Ok(Written::Replaced {
            backup: backup.to_owned(),
        });
    }
    swap()?;
    Ok(Written::Stale)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_what_was_there_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let file = root.join("a.json");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("a.json", root.join("link")).unwrap();
        let seen = read(&root.join("link")).unwrap();
        assert_eq!(
            seen,
            Seen {
                path: file.clone(),
                text: Some("old".to_owned())
            }
        );
        let backup = root.join("a.json.before-tidelock");
        assert_eq!(
            write(&seen, "new", Readers::Me).unwrap(),
            Written::Replaced {
                backup: backup.clone()
            }
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_to_string(&backup).unwrap(), "old");
        for file in [&file, &backup] {
            assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640);
        }
        assert!(root.join("link").symlink_metadata().unwrap().is_symlink());
        assert_eq!(names(&root), ["a.json", "a.json.before-tidelock", "link"]);
    }

    #[test]
    fn what_has_changed_since_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let file = root.join("deep/a.json");
        let missing = read(&file).unwrap();
        assert_eq!(missing.text, None);
        assert_eq!(write(&missing, "new", Readers::Me).unwrap(), Written::Created);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            write(&missing, "mine", Readers::Me).unwrap(),
            Written::Stale,
            "it is there by now"
        );
        let seen = read(&file).unwrap();
        fs::write(&file, "theirs").unwrap();
        assert_eq!(write(&seen, "mine", Readers::Me).unwrap(), Written::Stale);
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        fs::remove_file(&file).unwrap();
        // Without the file there are no permissions to keep either.
        assert!(write(&seen, "mine", Readers::Me).is_err());
        assert_eq!(names(&root.join("deep")), [""; 0]);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        symlink("nowhere", directory.path().join("link")).unwrap();
        fs::write(directory.path().join("binary"), [0xff, 0xfe]).unwrap();
        for name in ["link", ".", "binary"] {
            assert!(read(&directory.path().join(name)).is_err(), "{name}");
        }
    }
}
