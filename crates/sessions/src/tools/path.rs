//! A path in the sandbox, as a model writes it.

use std::fmt;
use std::path::{Path, PathBuf};

use plans::{PlanError, RelPath};

use super::error::ToolError;

/// A path in the sandbox, or its root.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SandboxPath {
    /// The root of the workspace.
    Root,
    /// A path below the root.
    Path(RelPath),
}

impl SandboxPath {
    /// Parses a relative path. `.` and doubled slashes are ignored; `..` is refused rather than guessed.
    ///
    /// # Errors
    /// It isn't a path in a sandbox.
    pub fn relative(text: &str) -> Result<Self, ToolError> {
        let names: Vec<&str> = text
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .collect();
        if names.is_empty() {
            return Ok(Self::Root);
        }
        let path: RelPath = names.join("/").parse().map_err(PlanError::BadPath)?;
        Ok(Self::Path(path))
    }

    /// Parses an absolute path, which must lie below one of the roots.
    ///
    /// # Errors
    /// It doesn't lie below any of them.
    pub fn absolute(text: &str, roots: &[PathBuf]) -> Result<Self, ToolError> {
        let below = roots
            .iter()
            .find_map(|root| Path::new(text).strip_prefix(root).ok());
        match below.map(|path| path.to_str()) {
            Some(Some(path)) => Self::relative(path),
            _ => Err(ToolError::Refused(format!(
                "`{}` lies outside of the workspace. Name files from its root, for example `src/main.rs`.",
                super::text::one_line(text)
            ))),
        }
    }

    /// The path, for a tool that can't be used on the root.
    pub(super) fn path(self) -> Result<RelPath, ToolError> {
        match self {
            Self::Path(path) => Ok(path),
            Self::Root => Err(ToolError::Refused(
                "this is the root of the workspace. Name a path below it, for example `src/main.rs`."
                    .to_owned(),
            )),
        }
    }

    /// The path, unless it is the root.
    #[must_use]
    pub fn as_path(&self) -> Option<&RelPath> {
        match self {
            Self::Root => None,
            Self::Path(path) => Some(path),
        }
    }

    /// Whether one of the two is the other, or lies below it.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Root, _) | (_, Self::Root) => true,
            (Self::Path(one), Self::Path(other)) => {
                one == other || one.is_below(other) || other.is_below(one)
            }
        }
    }
}

impl fmt::Display for SandboxPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => formatter.write_str("."),
            Self::Path(path) => path.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_models_write_it() {
        let cases = [
            ("", "."),
            (".", "."),
            ("./", "."),
            ("a", "a"),
            ("./a//b/", "a/b"),
            ("a/./b", "a/b"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                SandboxPath::relative(text).unwrap().to_string(),
                expected,
                "{text}"
            );
        }
        for text in ["..", "a/../b", "../../etc/passwd", ".git/config", "a\0b"] {
            assert!(SandboxPath::relative(text).is_err(), "{text}");
        }
        let roots = ["/home/x".into(), "/data/tree".into()];
        for (text, expected) in [
            ("/home/x", Some(".")),
            ("/home/x/", Some(".")),
            ("/home/x/a/b", Some("a/b")),
            ("/data/tree/a", Some("a")),
            ("/home/xa", None),
            ("/home/x/../y", None),
            ("/etc/passwd", None),
            ("/", None),
        ] {
            let found = SandboxPath::absolute(text, &roots)
                .ok()
                .map(|place| place.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn places_overlap_if_one_lies_in_the_other() {
        let cases = [
            (".", "a", true),
            ("a", "a", true),
            ("a", "a/b", true),
            ("a/b/c", "a", true),
            ("a", "ab", false),
            ("a/b", "a/c", false),
        ];
        for (one, other, expected) in cases {
            let place = |text| SandboxPath::relative(text).unwrap();
            assert_eq!(place(one).overlaps(&place(other)), expected, "{one} {other}");
            assert_eq!(place(other).overlaps(&place(one)), expected, "{other} {one}");
        }
    }
}
