//! The files that a question is about, as the user wrote them.

use std::path::{Component, Path, PathBuf};

use context::{BadPath, TreePath};

use super::service::QuestionError;

/// Locates a path in the tree: an absolute path below the root, any other path below the given directory. It may read
/// from disk, so it blocks.
pub(super) fn locate(written: &str, directory: &Path, root: &Path) -> Result<TreePath, QuestionError> {
    let bad = || QuestionError::Focus(BadPath(written.chars().take(200).collect()));
    if written.is_empty() || written.contains('\0') {
        return Err(bad());
    }
    let path = plain(&directory.join(written)).ok_or_else(bad)?;
    let inside = match path.strip_prefix(root) {
        Ok(inside) => inside.to_owned(),
        // The path may go through a symlink on the way to the root.
        Err(_) => resolved(&path)
            .and_then(|path| path.strip_prefix(root).map(Path::to_owned).ok())
            .ok_or_else(bad)?,
    };
    let text = inside.to_str().ok_or_else(bad)?;
    TreePath::new(text).map_err(|_| bad())
}

/// Removes `.` and `..` from a path lexically.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// A path with a canonical directory; the file itself may exist only in a plan.
fn resolved(path: &Path) -> Option<PathBuf> {
    let directory = path.parent()?.canonicalize().ok()?;
    Some(directory.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_below_the_root_however_it_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let real = scratch.path().canonicalize().unwrap();
        let root = real.join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::os::unix::fs::symlink(&root, real.join("link")).unwrap();
        let directory = root.join("src");
        let through_link = real.join("link/src/a.rs").display().to_string();
        let absolute = root.join("b.rs").display().to_string();
        let outside = real.join("b.rs").display().to_string();
        for (written, expected) in [
            ("a.rs", Some("src/a.rs")),
            ("./x/../a.rs", Some("src/a.rs")),
            ("../b.rs", Some("b.rs")),
            (absolute.as_str(), Some("b.rs")),
            (through_link.as_str(), Some("src/a.rs")),
            ("../../b.rs", None),
            (outside.as_str(), None),
            ("/etc/passwd", None),
            ("..", None),
            ("", None),
            ("a\0b", None),
        ] {
            let found = locate(written, &directory, &root).ok();
            assert_eq!(found.as_ref().map(TreePath::as_str), expected, "{written:?}");
        }
    }
}
