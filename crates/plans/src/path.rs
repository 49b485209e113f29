//! The path of a file inside a workspace or a sandbox.
//!
//! The value has been validated: relative, without `.` and `..`, without empty names, and nowhere below a `.git`. You
//! don't have to check it again. It says nothing about symlinks on the way; those are handled by [`Tree`](crate::Tree),
//! which never follows them.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest path, in bytes. Linux doesn't support longer ones.
pub(crate) const PATH_LIMIT_BYTES: usize = 4095;
/// The longest name of one file, in bytes.
const NAME_LIMIT_BYTES: usize = 255;

/// The path of a file inside a workspace or a sandbox. It doesn't have to be UTF-8.
///
/// As text, invalid UTF-8 and control characters are written as `\xNN`, and a backslash as two; so nothing is lost, and
/// people see the exact path.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RelPath(Arc<[u8]>);

/// A text or a path that can't be the path of a file in a workspace.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{path}` cannot be used: {why}")]
pub struct BadPath {
    pub path: String,
    pub why: &'static str,
}

impl RelPath {
    /// Validates these bytes as a path.
    ///
    /// # Errors
    /// It is empty, absolute, too long, contains a NUL, an empty name, `.` or `..`, or leads into a `.git`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadPath> {
        let bad = |why| BadPath {
            path: escaped(bytes),
            why,
        };
        if bytes.is_empty() {
            return Err(bad("it is empty"));
        }
        if bytes.len() > PATH_LIMIT_BYTES {
            return Err(bad("it is too long"));
        }
        if bytes[0] == b'/' {
            return Err(bad("it is absolute; name it from the root of the workspace"));
        }
        for name in bytes.split(|byte| *byte == b'/') {
            match name {
                b"" => return Err(bad("it has an empty name in it")),
                b"." | b".." => return Err(bad("it has `.` or `..` in it")),
                name if name.len() > NAME_LIMIT_BYTES => return Err(bad("a name in it is too long")),
                name if name.contains(&0) => return Err(bad("it has a NUL in it")),
                name if is_git(name) => {
                    return Err(bad("what git keeps for itself is not part of a workspace"));
                }
                _ => {}
            }
        }
        Ok(Self(Arc::from(bytes)))
    }

    /// Validates a system path.
    ///
    /// # Errors
    /// As for [`from_bytes`](Self::from_bytes).
    pub fn from_path(path: &Path) -> Result<Self, BadPath> {
        Self::from_bytes(path.as_os_str().as_bytes())
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    #[must_use]
    pub fn name(&self) -> &OsStr {
        let start = self.last_slash().map_or(0, |slash| slash + 1);
        OsStr::from_bytes(&self.0[start..])
    }

    /// Its parent directory; `None` if that is the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.last_slash().map(|slash| Self(Arc::from(&self.0[..slash])))
    }

    /// Its parent directories, outermost first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        let slashes = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| Self(Arc::from(&self.0[..at])))
    }

    #[must_use]
    pub fn is_below(&self, directory: &Self) -> bool {
        let (path, directory) = (self.as_bytes(), directory.as_bytes());
        path.len() > directory.len() && path.starts_with(directory) && path[directory.len()] == b'/'
    }

    /// A path below it.
    ///
    /// # Errors
    /// As for [`from_bytes`](Self::from_bytes).
    pub fn join(&self, name: &OsStr) -> Result<Self, BadPath> {
        Self::from_bytes(&[self.as_bytes(), b"/", name.as_bytes()].concat())
    }

    fn last_slash(&self) -> Option<usize> {
        self.0.iter().rposition(|byte| *byte == b'/')
    }
}

/// Whether git, perhaps on a case-insensitive file system, would treat it as its own directory.
fn is_git(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

/// A name as written in the text of a path.
pub(crate) fn name_as_text(name: &OsStr) -> String {
    escaped(name.as_bytes())
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                control if control.is_control() => {
                    let mut buffer = [0; 4];
                    escape_bytes(control.encode_utf8(&mut buffer).as_bytes(), &mut text);
                }
                plain => text.push(plain),
            }
        }
        escape_bytes(chunk.invalid(), &mut text);
    }
    text
}

fn escape_bytes(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        for part in [b"\\x".as_slice(), &hex(byte >> 4), &hex(byte & 15)] {
            text.extend(part.iter().map(|byte| char::from(*byte)));
        }
    }
}

fn hex(digit: u8) -> [u8; 1] {
    [b"0123456789abcdef"[usize::from(digit & 15)]]
}

impl fmt::Display for RelPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escaped(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for RelPath {
    type Err = BadPath;

    /// Parses what `Display` writes.
    fn from_str(text: &str) -> Result<Self, BadPath> {
        let bad = || BadPath {
            path: text.to_owned(),
            why: "a backslash in it begins neither `\\\\` nor `\\xNN`",
        };
        let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
        while let Some((first, after)) = rest.split_first() {
            rest = match (first, after) {
                (b'\\', [b'\\', after @ ..]) => {
                    bytes.push(b'\\');
                    after
                }
                (b'\\', [b'x', high, low, after @ ..]) => {
                    let digit = |digit: u8| {
                        char::from(digit)
                            .to_digit(16)
                            .and_then(|digit| u8::try_from(digit).ok())
                    };
                    let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(bad)?;
                    bytes.push(high << 4 | low);
                    after
                }
                (b'\\', _) => return Err(bad()),
                (plain, after) => {
                    bytes.push(*plain);
                    after
                }
            };
        }
        Self::from_bytes(&bytes)
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_checked_once_and_for_all() {
        let cases: &[(&[u8], Option<&str>)] = &[
            (b"a", None),
            (b"a/b.c", None),
            (b".gitignore", None),
            (b"a/.github/x", None),
            (b"...", None),
            (b"", Some("it is empty")),
            (
                b"/etc/passwd",
                Some("it is absolute; name it from the root of the workspace"),
            ),
            (b"a//b", Some("it has an empty name in it")),
            (b"a/", Some("it has an empty name in it")),
            (b"./a", Some("it has `.` or `..` in it")),
            (b"a/../../b", Some("it has `.` or `..` in it")),
            (b"a\0b", Some("it has a NUL in it")),
            (
                b".git/hooks/x",
                Some("what git keeps for itself is not part of a workspace"),
            ),
            (
                b"a/.GIT",
                Some("what git keeps for itself is not part of a workspace"),
            ),
            (
                b"a/git~1/x",
                Some("what git keeps for itself is not part of a workspace"),
            ),
        ];
        for (bytes, expected) in cases {
            let found = RelPath::from_bytes(bytes).err().map(|bad| bad.why);
            assert_eq!(found, *expected, "{bytes:?}");
        }
    }

    #[test]
    fn text_and_path_are_the_same_thing() {
        for (bytes, text) in [
            (b"a/b".as_slice(), "a/b"),
            ("\u{e4}/\u{6c34}".as_bytes(), "\u{e4}/\u{6c34}"),
            (b"a\\b", "a\\\\b"),
            (b"a\nb", "a\\x0ab"),
            (b"\xff\xfe.txt", "\\xff\\xfe.txt"),
            (b"a\\xff", "a\\\\xff"),
        ] {
            let path = RelPath::from_bytes(bytes).unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(text.parse::<RelPath>().unwrap(), path);
        }
        for text in ["a\\", "a\\q", "a\\x1", "a\\xzz", "\\x2e\\x2e/a"] {
            text.parse::<RelPath>().unwrap_err();
        }
    }

    #[test]
    fn a_path_knows_where_it_lies() {
        let path = |text: &str| text.parse::<RelPath>().unwrap();
        let deep = path("a/b/c");
        assert_eq!(deep.name(), "c");
        assert_eq!(deep.parent(), Some(path("a/b")));
        assert_eq!(path("a").parent(), None);
        assert_eq!(deep.ancestors().collect::<Vec<_>>(), [path("a"), path("a/b")]);
        assert!(deep.is_below(&path("a")) && !deep.is_below(&deep) && !path("ab").is_below(&path("a")));
    }
}
