//! The directories of a root that are worth watching.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

/// How many directories of a root are watched. Each takes a kernel watch, which are limited.
pub const MAX_DIRECTORIES: usize = 20_000;

/// Directories that tools fill and people don't edit.
const TOOL_DIRECTORIES: &[&str] = &[
    ".cache",
    ".git",
    ".hg",
    ".mypy_cache",
    ".next",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "target",
    "venv",
];

/// The content of a directory.
#[derive(Debug, Default)]
pub struct Walked {
    /// The directory itself and those below it that are watched. Empty if the directory itself isn't.
    pub directories: Vec<PathBuf>,
    /// All other entries.
    pub files: Vec<PathBuf>,
    /// Whether there were more directories than the limit.
    pub cut: bool,
}

/// Walks a directory of the root. It blocks, and follows no links.
pub type Walk = Arc<dyn Fn(&Path) -> Walked + Send + Sync>;

/// Whether a directory is worth watching. The root itself always is.
pub(super) fn is_watched(root: &Path, directory: &Path) -> bool {
    directory.strip_prefix(root).is_ok_and(|below| {
        below
            .components()
            .all(|part| !TOOL_DIRECTORIES.iter().any(|name| part.as_os_str() == *name))
    })
}

/// Walks a directory of a root. Links aren't followed, and what can't be read is left out.
pub(super) fn walk(root: &Path, start: &Path) -> Walked {
    let mut walked = Walked::default();
    let mut rest = vec![start.to_owned()];
    while let Some(directory) = rest.pop() {
        if !is_watched(root, &directory) {
            continue;
        }
        if walked.directories.len() >= MAX_DIRECTORIES {
            walked.cut = true;
            break;
        }
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => rest.push(entry.path()),
                Ok(_) => walked.files.push(entry.path()),
                Err(_) => {}
            }
        }
        walked.directories.push(directory);
    }
    walked
}

/// Up to `most` files below a directory that people edit.
pub fn files_below(directory: &Path, most: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut rest = VecDeque::from([directory.to_owned()]);
    while let Some(next) = rest.pop_front() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_watched(directory, &entry.path()) => {
                    rest.push_back(entry.path())
                }
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
            if files.len() >= most {
                return files;
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_fill_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for path in ["src/deep", "target/debug", "web/node_modules/x", ".git/objects"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::fs::write(root.join("src/deep/a.rs"), "").unwrap();
        std::fs::write(root.join("target/debug/b"), "").unwrap();
        std::os::unix::fs::symlink(root.join("src"), root.join("link")).unwrap();
        let mut walked = walk(root, root);
        walked.directories.sort();
        walked.files.sort();
        assert_eq!(
            walked.directories,
            ["", "src", "src/deep", "web"]
                .map(|path| root.join(path))
                .map(trimmed)
        );
        assert_eq!(
            walked.files,
            ["link", "src/deep/a.rs"].map(|path| root.join(path))
        );
        assert!(!walked.cut);
    }

    fn trimmed(path: PathBuf) -> PathBuf {
        path.components().collect()
    }
}
