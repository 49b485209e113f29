//! Reading a configuration file, within bounds.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::error::ConfigError;

/// The repository's configuration, at the top of the workspace.
const REPOSITORY_FILE: &str = ".lsp.json";
/// A handwritten configuration has a hundredth of this. Larger files are refused, so that a repository can't use up the
/// daemon's memory.
const LARGEST_FILE_BYTES: u64 = 256 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// There is no such file.
    Absent,
    /// Its content. The same bytes are hashed and parsed.
    Content(Vec<u8>),
    Refused(ConfigError),
}

/// The user's file. It may be a link, because people keep their configuration elsewhere.
pub(crate) fn read_user(path: &Path) -> Read {
    read(path, OFlags::empty())
}

/// The repository's file. A link isn't followed: an error message could then reveal any file of the user.
pub(crate) fn read_repository(workspace: &Path) -> (PathBuf, Read) {
    let path = workspace.join(REPOSITORY_FILE);
    let read = read(&path, OFlags::NOFOLLOW);
    (path, read)
}

fn read(path: &Path, flags: OFlags) -> Read {
    // Opened without blocking, because a pipe of that name would never answer; checked once it is open.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | flags;
    let refused = |reason: String| {
        Read::Refused(ConfigError::Unreadable {
            path: path.to_path_buf(),
            reason,
        })
    };
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Read::Absent,
        Err(rustix::io::Errno::LOOP) => return refused("it is a link, and must be a plain file".to_owned()),
        Err(error) => return refused(io::Error::from(error).to_string()),
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return refused("it is no plain file".to_owned()),
        Err(error) => return refused(error.to_string()),
    }
    let mut content = Vec::new();
    if let Err(error) = file.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut content) {
        return refused(error.to_string());
    }
    if content.len() as u64 > LARGEST_FILE_BYTES {
        return Read::Refused(ConfigError::TooLarge {
            path: path.to_path_buf(),
            limit: LARGEST_FILE_BYTES,
        });
    }
    Read::Content(content)
}
