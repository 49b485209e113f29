//! The files that the rules read: what git tracks or would track, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::scrub::Source;

/// All text files of the project, by path relative to the root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// All files, text or not.
    paths: BTreeSet<PathBuf>,
    texts: BTreeMap<PathBuf, String>,
    sources: BTreeMap<PathBuf, Source>,
}

impl Tree {
    /// Reads the files below `root`. Files that are not UTF-8 are left out.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        for path in list(root)? {
            if root.join(&path).exists() {
                tree.paths.insert(path.clone());
            }
            // A tracked file that is gone, or a dangling link, is left to git.
            if let Ok(text) = fs::read_to_string(root.join(&path)) {
                tree.insert(path, text);
            }
        }
        Ok(tree)
    }

    fn insert(&mut self, path: PathBuf, text: String) {
        if path.extension().is_some_and(|extension| extension == "rs") {
            self.sources.insert(path.clone(), Source::new(&text));
        }
        self.texts.insert(path, text);
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.paths.insert(path.into());
            tree.insert(path.into(), (*text).to_owned());
        }
        tree
    }

    pub(super) fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.texts
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// Whether there is such a file, or a directory that contains files.
    pub(super) fn has(&self, path: &Path) -> bool {
        let mut from_there = self.paths.range(path.to_owned()..);
        from_there.next().is_some_and(|found| found.starts_with(path))
    }

    pub(super) fn text(&self, path: &Path) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = (&Path, &Source)> {
        self.sources.iter().map(|(path, source)| (path.as_path(), source))
    }

    pub(super) fn source(&self, path: &Path) -> Option<&Source> {
        self.sources.get(path)
    }
}

/// What git tracks and what it would track if asked; without git, everything outside build directories.
fn list(root: &Path) -> Result<Vec<PathBuf>> {
    let listing = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output();
    match listing {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8_lossy(&output.stdout);
            Ok(names
                .split('\0')
                .filter(|name| !name.is_empty())
                .map(PathBuf::from)
                .collect())
        }
        _ => {
            let mut found = Vec::new();
            walk(root, Path::new(""), &mut found)?;
            Ok(found)
        }
    }
}

fn walk(root: &Path, below: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let directory = root.join(below);
    let entries = fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if !matches!(entry.file_name().to_str(), Some("target" | ".git")) {
                walk(root, &path, found)?;
            }
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_git_everything_but_build_output_is_read() {
        let root = std::env::temp_dir().join(format!("tidelock-files-{}", std::process::id()));
        for (path, content) in [
            ("a.md", "a"),
            ("src/b.rs", "b"),
            ("target/c.rs", "c"),
            (".git/d", "d"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::write(root.join("image"), [0xff, 0xfe]).unwrap();
        let mut found = Vec::new();
        walk(&root, Path::new(""), &mut found).unwrap();
        found.sort();
        assert_eq!(found, ["a.md", "image", "src/b.rs"].map(PathBuf::from));
        fs::remove_dir_all(root).unwrap();
    }
}
