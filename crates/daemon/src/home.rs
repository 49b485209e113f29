//! The two directories that belong to one daemon: where they are, and whether they can be trusted.
//!
//! The runtime directory holds the socket and the locks; the state directory holds what outlives a daemon. Anyone who
//! can write to either can act as the daemon, so [`Home::prepare`] refuses directories that another user owns or can
//! change. Their location is a pure function of the environment.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The longest path that a Unix socket address can carry: `sun_path` has 108 bytes, and the last one is NUL.
pub const SOCKET_PATH_LIMIT: usize = 107;

/// Write permission for the group or for everybody.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const WRITABLE_BY_ALL: u32 = 0o002;
/// In a directory with this bit, only the owner of an entry may rename or remove it.
const STICKY: u32 = 0o1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Holds the socket and the locks. It may be emptied when the machine restarts.
    pub runtime: PathBuf,
    /// Holds the token and the log. It outlives daemons and restarts of the machine.
    pub state: PathBuf,
}

impl Home {
    /// Locates the directories from the variables `TIDELOCK_HOME`, `XDG_RUNTIME_DIR`, `XDG_STATE_HOME` and `HOME`. It
    /// doesn't access the disk.
    ///
    /// # Errors
    /// [`HomeError::NotAbsolute`] for a relative `TIDELOCK_HOME`: the daemon works in `/`, so a relative path would
    /// mean another directory there. [`HomeError::NoHomeDirectory`] if no variable leads to a state directory.
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Home, HomeError> {
        let path = |name: &str| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        // The XDG specification says to ignore relative paths in its variables.
        let absolute = |name: &str| path(name).filter(|path| path.is_absolute());

        if let Some(home) = path("TIDELOCK_HOME") {
            if !home.is_absolute() {
                return Err(HomeError::NotAbsolute { path: home });
            }
            return Ok(Home {
                runtime: home.join("run"),
                state: home.join("state"),
            });
        }
        let runtime = match absolute("XDG_RUNTIME_DIR") {
            Some(directory) => directory.join("tidelock"),
            None => PathBuf::from(format!("/tmp/tidelock-{}", rustix::process::geteuid().as_raw())),
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .ok_or(HomeError::NoHomeDirectory)?
            .join("tidelock");
        Ok(Home { runtime, state })
    }

    /// Creates missing directories (mode 0700) and refuses those that can't be trusted.
    ///
    /// # Errors
    /// Every variant of [`HomeError`] that names a directory; see [`HomeError::advice`] for what to do.
    pub fn prepare(&self) -> Result<(), HomeError> {
        self.check_socket_path()?;
        for directory in [&self.runtime, &self.state] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .map_err(|source| HomeError::Create {
                    path: directory.clone(),
                    source,
                })?;
            check_directory(directory)?;
        }
        Ok(())
    }

    /// Removes both directories and everything in them, and returns how many bytes that freed. No daemon may run in
    /// them.
    ///
    /// Commands may have left directories in sandboxes without read or write permission, which `rm -r` can't remove.
    ///
    /// # Errors
    /// They belong to another user, or something in them can't be removed.
    pub fn remove(&self) -> Result<u64, HomeError> {
        let mut freed = 0;
        for directory in [&self.runtime, &self.state] {
            if !directory.exists() {
                continue;
            }
            check_directory(directory)?;
            freed += plans::remove_tree(directory).map_err(|source| HomeError::Remove {
                path: directory.clone(),
                source,
            })?;
        }
        Ok(freed)
    }

    /// Refuses a socket path that doesn't fit into a socket address.
    ///
    /// # Errors
    /// [`HomeError::SocketPathTooLong`].
    pub fn check_socket_path(&self) -> Result<(), HomeError> {
        let path = self.socket();
        let length = path.as_os_str().as_bytes().len();
        if length > SOCKET_PATH_LIMIT {
            return Err(HomeError::SocketPathTooLong { path, length });
        }
        Ok(())
    }

    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime.join("tidelock.sock")
    }

    /// Where language servers cache their data about workspaces.
    #[must_use]
    pub fn language_server_data(&self) -> PathBuf {
        self.state.join("language-servers")
    }

    /// For files that live as long as a daemon.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.runtime.join("scratch")
    }

    /// The lock that a daemon holds as long as it lives.
    #[must_use]
    pub fn daemon_lock(&self) -> PathBuf {
        self.runtime.join("daemon.lock")
    }

    /// The lock that is held while a daemon is being started, by the process that starts it.
    #[must_use]
    pub fn start_lock(&self) -> PathBuf {
        self.runtime.join("start.lock")
    }

    /// The bearer token, created at the first start.
    #[must_use]
    pub fn token_file(&self) -> PathBuf {
        self.state.join("token")
    }

    /// The durable log, unless a database server stores it.
    #[must_use]
    pub fn log_database(&self) -> PathBuf {
        self.state.join("log.sqlite3")
    }

    /// The data that only this machine needs, if a database server stores the log.
    #[must_use]
    pub fn machine_database(&self) -> PathBuf {
        self.state.join("machine.sqlite3")
    }

    /// Where sandboxes and their base content are kept.
    #[must_use]
    pub fn plans(&self) -> PathBuf {
        self.state.join("plans")
    }

    /// Where the environments of unfinished commands are kept.
    #[must_use]
    pub fn environments(&self) -> PathBuf {
        self.state.join("environments")
    }

    #[must_use]
    pub fn context(&self) -> PathBuf {
        self.state.join("context")
    }

    /// The existing paths that a command in a sandbox must not change: anyone who can replace the socket, the token or
    /// the configuration can act as the daemon or reconfigure it.
    #[must_use]
    pub fn guarded(&self, configuration: Option<&Path>) -> Vec<PathBuf> {
        let mut guarded = vec![self.runtime.clone(), self.state.clone()];
        // With `TIDELOCK_HOME`, this is the directory that contains the others.
        guarded.extend(configuration.and_then(Path::parent).map(Path::to_owned));
        guarded.retain(|directory| directory.is_dir());
        guarded
    }

    /// The id of this home, created at the first start.
    #[must_use]
    pub fn home_id_file(&self) -> PathBuf {
        self.state.join(crate::durable::HOME_ID_FILE)
    }

    /// Where a background daemon writes its log output.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.state.join("daemon.log")
    }
}

/// Refuses a directory that another user owns, may write to, or may replace.
///
/// # Errors
/// [`HomeError::Inspect`], [`HomeError::NotADirectory`], [`HomeError::ForeignOwner`] or
/// [`HomeError::WritableByOthers`].
pub fn check_directory(path: &Path) -> Result<(), HomeError> {
    // A symlink is fine if we made it. In a shared directory such as /tmp, another user could have put it
    // there to lead us to a directory of their choice.
    let entry = inspect(path, fs::symlink_metadata)?;
    check_owner(path, &entry)?;
    let target = inspect(path, fs::metadata)?;
    if !target.is_dir() {
        return Err(HomeError::NotADirectory {
            path: path.to_owned(),
        });
    }
    check_owner(path, &target)?;
    if target.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(HomeError::WritableByOthers {
            path: path.to_owned(),
            mode: target.mode() & 0o7777,
        });
    }
    // Anyone who can write to the parent directory could replace ours. Write permission for the group is
    // allowed there, because it's common on systems where every user has their own group.
    if let Some(parent) = path.parent() {
        let above = inspect(parent, fs::metadata)?;
        if above.mode() & WRITABLE_BY_ALL != 0 && above.mode() & STICKY == 0 {
            return Err(HomeError::WritableByOthers {
                path: parent.to_owned(),
                mode: above.mode() & 0o7777,
            });
        }
    }
    Ok(())
}

fn inspect(path: &Path, look: impl Fn(PathBuf) -> io::Result<Metadata>) -> Result<Metadata, HomeError> {
    look(path.to_owned()).map_err(|source| HomeError::Inspect {
        path: path.to_owned(),
        source,
    })
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), HomeError> {
    let ours = rustix::process::geteuid().as_raw();
    if metadata.uid() == ours {
        Ok(())
    } else {
        Err(HomeError::ForeignOwner {
            path: path.to_owned(),
            owner: metadata.uid(),
            ours,
        })
    }
}

/// Why there is no usable home.
#[derive(Debug, Error)]
pub enum HomeError {
    #[error("there is no directory to keep state in: neither TIDELOCK_HOME, XDG_STATE_HOME nor HOME is set")]
    NoHomeDirectory,
    #[error("TIDELOCK_HOME is `{path}`, which is not an absolute path", path = .path.display())]
    NotAbsolute { path: PathBuf },
    #[error("the directory `{path}` cannot be created", path = .path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("the directory `{path}` cannot be removed", path = .path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("the directory `{path}` cannot be inspected", path = .path.display())]
    Inspect { path: PathBuf, source: io::Error },
    #[error("`{path}` is not a directory", path = .path.display())]
    NotADirectory { path: PathBuf },
    #[error("the directory `{path}` belongs to user {owner}, not to you (user {ours})", path = .path.display())]
    ForeignOwner { path: PathBuf, owner: u32, ours: u32 },
    #[error("the directory `{path}` can be written to by others (mode {mode:04o})", path = .path.display())]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error("the socket path `{path}` has {length} bytes; the system allows {SOCKET_PATH_LIMIT}", path = .path.display())]
    SocketPathTooLong {
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
}

impl HomeError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::NoHomeDirectory => "set TIDELOCK_HOME to a directory of your own".to_owned(),
            Self::NotAbsolute { .. } => "give TIDELOCK_HOME an absolute path".to_owned(),
            Self::Remove { .. } => "stop whatever still uses it, and try again".to_owned(),
            Self::Create { .. } | Self::Inspect { .. } | Self::NotADirectory { .. } => {
                "make sure that you can write there, or set TIDELOCK_HOME to a directory of your own"
                    .to_owned()
            }
            Self::ForeignOwner { .. } => {
                "set TIDELOCK_HOME to a directory of your own, or run as the user who owns this one"
                    .to_owned()
            }
            Self::WritableByOthers { path, .. } => {
                format!(
                    "run `chmod go-w '{}'`, or set TIDELOCK_HOME to a private directory",
                    path.display()
                )
            }
            Self::SocketPathTooLong { .. } => {
                "set TIDELOCK_HOME (or XDG_RUNTIME_DIR) to a directory with a shorter path".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn home(runtime: &str, state: &str) -> Home {
        Home {
            runtime: runtime.into(),
            state: state.into(),
        }
    }

    fn from(variables: &[(&str, &str)]) -> Result<Home, String> {
        let look = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        };
        Home::from_environment(&look).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_decides_where_the_directories_are() {
        let fallback = format!("/tmp/tidelock-{}", rustix::process::geteuid().as_raw());
        let cases = [
            (
                vec![("TIDELOCK_HOME", "/t"), ("XDG_RUNTIME_DIR", "/r"), ("HOME", "/h")],
                home("/t/run", "/t/state"),
            ),
            (
                vec![
                    ("XDG_RUNTIME_DIR", "/r"),
                    ("XDG_STATE_HOME", "/s"),
                    ("HOME", "/h"),
                ],
                home("/r/tidelock", "/s/tidelock"),
            ),
            (
                vec![("XDG_RUNTIME_DIR", "/r"), ("HOME", "/h")],
                home("/r/tidelock", "/h/.local/state/tidelock"),
            ),
            (vec![("HOME", "/h")], home(&fallback, "/h/.local/state/tidelock")),
            // Empty is unset, and a relative XDG path is ignored.
            (
                vec![
                    ("TIDELOCK_HOME", ""),
                    ("XDG_RUNTIME_DIR", "r"),
                    ("XDG_STATE_HOME", "s"),
                    ("HOME", "/h"),
                ],
                home(&fallback, "/h/.local/state/tidelock"),
            ),
        ];
        for (variables, expected) in cases {
            assert_eq!(from(&variables), Ok(expected), "{variables:?}");
        }
    }

    #[test]
    fn an_environment_without_a_usable_directory_is_refused() {
        let cases = [
            (vec![], HomeError::NoHomeDirectory),
            (vec![("HOME", "h")], HomeError::NoHomeDirectory),
            (
                vec![("TIDELOCK_HOME", "t"), ("HOME", "/h")],
                HomeError::NotAbsolute { path: "t".into() },
            ),
        ];
        for (variables, expected) in cases {
            assert_eq!(from(&variables), Err(expected.to_string()), "{variables:?}");
        }
    }

    #[test]
    fn missing_directories_are_made_private() {
        let temporary = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: temporary.path().join("a/run"),
            state: temporary.path().join("a/state"),
        };
        home.prepare().unwrap();
        home.prepare().unwrap();
        for directory in [&home.runtime, &home.state] {
            assert_eq!(fs::metadata(directory).unwrap().mode() & 0o7777, 0o700);
        }
    }

    #[test]
    fn directories_that_others_can_change_are_refused() {
        for (above, mode, refused) in [
            (0o700, 0o700, None),
            (0o755, 0o755, None),
            (0o1777, 0o700, None),
            (0o775, 0o700, None),
            (0o700, 0o770, Some("run")),
            (0o700, 0o702, Some("run")),
            (0o777, 0o700, Some("above")),
        ] {
            let temporary = tempfile::tempdir().unwrap();
            let parent = temporary.path().join("above");
            let home = Home {
                runtime: parent.join("run"),
                state: temporary.path().join("state"),
            };
            fs::create_dir_all(&home.runtime).unwrap();
            fs::set_permissions(&home.runtime, fs::Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&parent, fs::Permissions::from_mode(above)).unwrap();

            let named = match home.prepare() {
                Ok(()) => None,
                Err(HomeError::WritableByOthers { path, .. }) => Some(path),
                Err(other) => panic!("{other}"),
            };
            let named = named
                .as_deref()
                .and_then(Path::file_name)
                .and_then(|name| name.to_str());
            assert_eq!(named, refused, "{above:o} {mode:o}");
        }
    }

    #[test]
    fn something_else_in_the_place_of_a_directory_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, "").unwrap();
        symlink(&file, temporary.path().join("link")).unwrap();

        let below_a_file = Home {
            runtime: file.join("run"),
            state: temporary.path().join("state"),
        };
        assert!(matches!(below_a_file.prepare(), Err(HomeError::Create { .. })));
        let link = temporary.path().join("link");
        assert!(matches!(check_directory(&link), Err(HomeError::NotADirectory { path }) if path == link));
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        // The root directory belongs to root, so other users see it refused. As root, the test can change an
        // owner instead.
        let temporary = tempfile::tempdir().unwrap();
        let foreign = if rustix::process::geteuid().is_root() {
            let given_away = temporary.path().join("given-away");
            fs::create_dir(&given_away).unwrap();
            std::os::unix::fs::chown(&given_away, Some(65534), None).unwrap();
            given_away
        } else {
            PathBuf::from("/")
        };
        assert!(matches!(
            check_directory(&foreign),
            Err(HomeError::ForeignOwner { .. })
        ));
    }

    #[test]
    fn the_socket_path_may_be_as_long_as_the_system_allows_and_no_longer() {
        let room = SOCKET_PATH_LIMIT - "/".len() - "/tidelock.sock".len();
        for (directory_length, fits) in [(room, true), (room + 1, false)] {
            let home = Home {
                runtime: PathBuf::from(format!("/{}", "d".repeat(directory_length))),
                state: PathBuf::from("/state"),
            };
            assert_eq!(home.check_socket_path().is_ok(), fits, "{directory_length}");
        }
    }
}
