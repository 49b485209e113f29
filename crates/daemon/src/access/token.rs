//! The bearer token: created at the first start, and kept in a file that only its owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use protocol::BootId;
use thiserror::Error;

use super::secret::Secret;

/// The largest token file. Our own tokens have 64 characters.
const TOKEN_LIMIT_BYTES: u64 = 4096;
const TOKEN_MIN_BYTES: usize = 32;
/// The most permissive mode that a token file may have: read and write for its owner.
const ALLOWED_MODE: u32 = 0o600;

/// Reads the token, or creates one.
pub(crate) fn load_or_create(path: &Path, boot_id: BootId) -> Result<Secret, TokenError> {
    match File::open(path) {
        Ok(file) => read(path, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path, boot_id)?;
            // Read back what is there: another daemon with a different home may share this file and may have
            // been faster.
            read(path, File::open(path).map_err(|source| file_error(path, source))?)
        }
        Err(source) => Err(file_error(path, source)),
    }
}

fn read(path: &Path, file: File) -> Result<Secret, TokenError> {
    // Check the opened file, so that it can't be replaced between the check and the read.
    let metadata = file.metadata().map_err(|source| file_error(path, source))?;
    let ours = rustix::process::geteuid().as_raw();
    if metadata.uid() != ours {
        return Err(TokenError::ForeignOwner {
            path: path.to_owned(),
            owner: metadata.uid(),
        });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & !ALLOWED_MODE != 0 {
        return Err(TokenError::TooOpen {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    file.take(TOKEN_LIMIT_BYTES)
        .read_to_string(&mut text)
        .map_err(|source| file_error(path, source))?;
    let token = text.trim();
    if token.len() < TOKEN_MIN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::Unusable {
            path: path.to_owned(),
        });
    }
    Ok(Secret::from_text(token))
}

/// Writes a new token under a temporary name and links it into place, so that readers never see a partial token. Unlike
/// a rename, a link doesn't replace an existing file.
fn create(path: &Path, boot_id: BootId) -> Result<(), TokenError> {
    let token = Secret::generate().map_err(TokenError::Random)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{boot_id}"));
    let unfinished = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(ALLOWED_MODE)
        .open(&unfinished)
        .and_then(|mut file| {
            file.write_all(format!("{}\n", token.reveal()).as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::hard_link(&unfinished, path));
    // The temporary name is no longer needed, whether or not the link succeeded.
    drop(fs::remove_file(&unfinished));
    match written {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(file_error(path, error)),
        _ => Ok(()),
    }
}

fn file_error(path: &Path, source: io::Error) -> TokenError {
    TokenError::File {
        path: path.to_owned(),
        source,
    }
}

/// Why there is no usable token.
#[derive(Debug, Error)]
pub enum TokenError {
    #[error("the token file `{path}` cannot be used", path = .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the token file `{path}` belongs to user {owner}, not to you", path = .path.display())]
    ForeignOwner { path: PathBuf, owner: u32 },
    #[error("the token file `{path}` has mode {mode:04o}; 0600 is the most permissive mode that is safe", path = .path.display())]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("the token file `{path}` does not hold a token of at least {TOKEN_MIN_BYTES} characters", path = .path.display())]
    Unusable { path: PathBuf },
    #[error("the system gave no random bytes for a token")]
    Random(#[source] getrandom::Error),
}

impl TokenError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::File { .. } => "make sure that you can read and write there".to_owned(),
            Self::ForeignOwner { .. } => "use a token file of your own".to_owned(),
            Self::TooOpen { path, .. } => format!(
                "others may know this token: remove `{}` and start again to get a new one",
                path.display()
            ),
            Self::Unusable { path } => format!(
                "remove `{}` and start again to get a new one, or write a long random text into it",
                path.display()
            ),
            Self::Random(_) => "try again when the system has finished starting".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_kept_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let made = load_or_create(&path, BootId::generate()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let again = load_or_create(&path, BootId::generate()).unwrap();
        assert!(made.matches(again.reveal()));
        let names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["token"]);
    }

    #[test]
    fn a_token_file_that_cannot_be_trusted_is_refused() {
        let good = "x".repeat(TOKEN_MIN_BYTES);
        let short = "x".repeat(TOKEN_MIN_BYTES - 1);
        let spaced = format!("{good} {good}");
        for (content, mode, expected) in [
            (good.as_str(), 0o600, None),
            (good.as_str(), 0o400, None),
            (good.as_str(), 0o640, Some("has mode 0640")),
            (good.as_str(), 0o604, Some("has mode 0604")),
            (good.as_str(), 0o700, Some("has mode 0700")),
            (short.as_str(), 0o600, Some("does not hold a token")),
            (spaced.as_str(), 0o600, Some("does not hold a token")),
            ("", 0o600, Some("does not hold a token")),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("token");
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let message = load_or_create(&path, BootId::generate())
                .err()
                .map(|error| error.to_string());
            match expected {
                None => assert_eq!(message, None, "{content} {mode:o}"),
                Some(part) => assert!(
                    message.clone().is_some_and(|text| text.contains(part)),
                    "{message:?}"
                ),
            }
        }
    }
}
