//! The directories of a root that are worth following.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

/// How many directories of a root are followed. The kernel gives each of them a watch, and it has a limit of its own.
pub const MOST_DIRECTORIES: usize = 20_000;

/// Directories that tools fill and people do not edit.
const FILLED_BY_TOOLS: &[&str] = &[
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

/// What is below a directory.
#[derive(Debug, Default)]
pub struct Walked {
    /// The directory itself and those below it that are to be followed. None if it is not to be followed itself.
    pub directories: Vec<PathBuf>,
    /// What else there is.
    pub files: Vec<PathBuf>,
    /// Whether there were more directories than are followed.
    pub cut: bool,
}

/// Says what is below a directory of the root. It blocks, and follows no links.
pub type Walk = Arc<dyn Fn(&Path) -> Walked + Send + Sync>;

/// Whether a directory is worth following. The root itself always is.
pub(super) fn is_followed(root: &Path, directory: &Path) -> bool {
    directory.strip_prefix(root).is_ok_and(|below| {
        below
            .components()
            .all(|part| !FILLED_BY_TOOLS.iter().any(|name| part.as_os_str() == *name))
    })
}

/// Walks a directory of a root. Links are not followed. What cannot be read is left out.
pub(super) fn walk(root: &Path, start: &Path) -> Walked {
    let mut walked = Walked::default();
    let mut rest = vec![start.to_owned()];
    while let Some(directory) = rest.pop() {
        if !is_followed(root, &directory) {
            continue;
        }
        if walked.directories.len() >= MOST_DIRECTORIES {
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

/// Files below a directory that people edit, up to a number.
pub fn files_below(directory: &Path, most: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut rest = VecDeque::from([directory.to_owned()]);
    while let Some(next) = rest.pop_front() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_followed(directory, &entry.path()) => {
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
