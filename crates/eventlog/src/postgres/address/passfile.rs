//! The password file: lines of `host:port:database:user:password`, of which the first match counts.

use std::{fs, io::ErrorKind, os::unix::fs::PermissionsExt as _, path::Path};

/// The permissions that others must not have on a password file.
const OTHERS: u32 = 0o077;

/// The lines of a password file. It has no `Debug`, because they contain passwords.
#[derive(Default)]
pub(super) struct PasswordFile {
    text: String,
    /// Why the file isn't used although it exists.
    pub(super) ignored: Option<String>,
}

/// Who needs a password, and for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

impl PasswordFile {
    /// Reads the file. A missing file has no lines. A file that others can read is ignored, as in libpq.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let cannot = |error| format!("the password file {} cannot be read: {error}", path.display());
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(cannot(error)),
            Ok(metadata) => metadata,
        };
        let ignored = |why: &str| {
            let ignored = format!("{} is not used, because {why}", path.display());
            tracing::warn!("the password file {ignored}");
            Self {
                text: String::new(),
                ignored: Some(ignored),
            }
        };
        if !metadata.is_file() {
            return Ok(ignored("it is not a plain file"));
        }
        if metadata.permissions().mode() & OTHERS != 0 {
            return Ok(ignored("others can read it; run chmod 600 on it"));
        }
        Ok(Self {
            text: fs::read_to_string(path).map_err(cannot)?,
            ignored: None,
        })
    }

    pub(super) fn password(&self, login: Login<'_>) -> Option<String> {
        let port = login.port.to_string();
        let wanted = [login.host, port.as_str(), login.database, login.user];
        self.text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| {
                let mut rest = line;
                for value in wanted {
                    let (field, after) = take_field(rest);
                    if field.is_exactly("*") || field.means(value) {
                        rest = after?;
                    } else {
                        return None;
                    }
                }
                // A password may contain colons.
                Some(Field(rest).text()).filter(|password| !password.is_empty())
            })
    }
}

/// A field as written, with `\` before a colon or a backslash.
struct Field<'a>(&'a str);

impl Field<'_> {
    fn is_exactly(&self, written: &str) -> bool {
        self.0 == written
    }

    fn means(&self, value: &str) -> bool {
        self.text() == value
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut characters = self.0.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => text.extend(characters.next()),
                other => text.push(other),
            }
        }
        text
    }
}

/// The first field, and what follows its colon.
fn take_field(line: &str) -> (Field<'_>, Option<&str>) {
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ':' => return (Field(&line[..at]), Some(&line[at + 1..])),
            _ => {}
        }
    }
    (Field(line), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "# a comment\nnonsense\n\ndb:5433:work:me:first\ndb:*:work:me:second:with\\:colons\\\\\n\
                         ::1:*:*:*:unescaped\n\\:\\:1:*:*:*:escaped\n*:*:\\*:me:star\n*:*:*:other:last\n";

    #[test]
    fn the_first_line_that_fits_counts() {
        let file = PasswordFile {
            text: LINES.to_owned(),
            ignored: None,
        };
        let cases = [
            (("db", 5433, "work", "me"), Some("first")),
            (("db", 5432, "work", "me"), Some("second:with:colons\\")),
            (("::1", 5432, "work", "me"), Some("escaped")),
            (("x", 1, "*", "me"), Some("star")),
            (("x", 1, "y", "me"), None),
            (("x", 1, "y", "other"), Some("last")),
        ];
        for ((host, port, database, user), expected) in cases {
            let login = Login {
                host,
                port,
                database,
                user,
            };
            assert_eq!(file.password(login).as_deref(), expected, "{login:?}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used_and_that_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pgpass");
        assert!(PasswordFile::read(&path).unwrap().text.is_empty());
        fs::write(&path, "*:*:*:*:secret").unwrap();
        for (mode, is_used) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let file = PasswordFile::read(&path).unwrap();
            assert_eq!(!file.text.is_empty(), is_used, "{mode:o}");
            let said = file.ignored.unwrap_or_default();
            assert_eq!(said.contains("chmod 600"), !is_used, "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
