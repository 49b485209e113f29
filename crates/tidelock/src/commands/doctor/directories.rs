//! The files and directories of a daemon.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use daemon::{HomeError, SOCKET_PATH_LIMIT, check_directory};

use super::Check;
use crate::context::Context;
use crate::error::chain;

pub(super) fn check(context: &Context) -> Vec<Check> {
    let home = &context.home;
    vec![
        directory("runtime_directory", &home.runtime),
        directory("state_directory", &home.state),
        socket_path(context),
        token_file(&context.token_file),
    ]
}

fn directory(id: &'static str, path: &Path) -> Check {
    match check_directory(path) {
        Ok(()) => Check::ok(id, format!("{} is private", path.display())),
        Err(HomeError::Inspect { source, .. }) if source.kind() == ErrorKind::NotFound => Check::ok(
            id,
            format!("{} doesn't exist yet; the first start creates it", path.display()),
        ),
        Err(error) => Check::failed(id, chain(&error), error.advice()),
    }
}

fn socket_path(context: &Context) -> Check {
    let id = "socket_path";
    match context.home.check_socket_path() {
        Ok(()) => {
            let length = context.home.socket().as_os_str().as_bytes().len();
            Check::ok(id, format!("{length} of {SOCKET_PATH_LIMIT} bytes"))
        }
        Err(error) => Check::failed(id, chain(&error), error.advice()),
    }
}

fn token_file(path: &Path) -> Check {
    let id = "token_file";
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Check::ok(
                id,
                format!("{shown} doesn't exist yet; the first start creates it"),
            );
        }
        Err(error) => {
            return Check::failed(
                id,
                format!("{shown} cannot be inspected: {error}"),
                "make its directory readable",
            );
        }
    };
    let ours = rustix::process::geteuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    if metadata.uid() != ours {
        let detail = format!(
            "{shown} belongs to user {}, not to you (user {ours})",
            metadata.uid()
        );
        Check::failed(id, detail, "remove it; the next start creates a new one")
    } else if mode & !0o600 != 0 {
        let detail = format!("{shown} has mode {mode:04o}; others may have read the token");
        let advice = format!(
            "stop the daemon, remove the file, and start again to get a new token. \
                              If nobody else uses this machine, `chmod 600 '{shown}'` is enough"
        );
        Check::failed(id, detail, advice)
    } else {
        Check::ok(id, format!("{shown} has mode {mode:04o}"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::State;
    use super::*;

    #[test]
    fn a_token_that_others_can_read_is_a_failure() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("token");
        assert_eq!(token_file(&path).state, State::Ok);
        for (mode, expected) in [
            (0o600, State::Ok),
            (0o400, State::Ok),
            (0o640, State::Failed),
            (0o604, State::Failed),
        ] {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(token_file(&path).state, expected, "{mode:o}");
            fs::remove_file(&path).unwrap();
        }
    }
}
