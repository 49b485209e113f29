//! The path of a file in a tree.

use std::fmt;
use std::sync::Arc;

/// The longest path that is accepted. The system allows no longer one.
const LONGEST_BYTES: usize = 4096;

/// A file below the root of a tree: names separated by `/`. Names that aren't UTF-8 are not part of context.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TreePath(Arc<str>);

#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a path below the root of a tree")]
pub struct BadPath(pub String);

impl TreePath {
    /// Fails if the text is empty or too long, begins or ends with `/`, or contains an empty name, `.`, `..` or a NUL.
    pub fn new(text: &str) -> Result<Self, BadPath> {
        let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
        if text.len() <= LONGEST_BYTES && text.split('/').all(is_name) {
            Ok(Self(text.into()))
        } else {
            Err(BadPath(text.chars().take(200).collect()))
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The part of the name after its last dot, unless the name begins with that dot.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        let (stem, extension) = self.name().rsplit_once('.')?;
        (!stem.is_empty()).then_some(extension)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", &self.0)
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::TreePath;

    #[test]
    fn only_paths_below_the_root_are_taken() {
        for good in ["a", "a/b.rs", ".gitignore", "a/..b/c", "ä ö"] {
            assert_eq!(TreePath::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\0b"] {
            assert!(TreePath::new(bad).is_err(), "{bad:?}");
        }
        assert!(TreePath::new(&"a".repeat(4097)).is_err());
    }

    #[test]
    fn a_name_has_an_extension_if_something_is_before_it() {
        for (path, name, extension) in [
            ("a/b.rs", "b.rs", Some("rs")),
            ("a.b/c", "c", None),
            (".gitignore", ".gitignore", None),
            ("a/b.tar.gz", "b.tar.gz", Some("gz")),
        ] {
            let path = TreePath::new(path).unwrap();
            assert_eq!((path.name(), path.extension()), (name, extension));
        }
    }
}
