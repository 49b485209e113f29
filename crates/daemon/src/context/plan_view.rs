//! The sandbox of a plan, as a tree to search.

use std::collections::BTreeSet;
use std::io;

use context::{FILE_LIMIT_BYTES, FileText, NotText, Since, TreePath, View};
use kernel::Scope;
use plans::{RelPath, SandboxView, TreeError};

/// The sandbox of a plan as of the question.
#[derive(Debug)]
pub(super) struct PlanView(pub(super) SandboxView);

impl View for PlanView {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        let path = RelPath::from_bytes(path.as_str().as_bytes()).map_err(|_| NotText::Missing)?;
        let content = self.0.tree().read(&path, FILE_LIMIT_BYTES).map_err(not_text)?;
        text_of(&content)
    }

    fn read_into(&self, path: &TreePath, buffer: &mut Vec<u8>) -> Result<(), NotText> {
        let path = RelPath::from_bytes(path.as_str().as_bytes()).map_err(|_| NotText::Missing)?;
        *buffer = self.0.tree().read(&path, FILE_LIMIT_BYTES).map_err(not_text)?;
        match buffer.contains(&0) {
            true => Err(NotText::Binary),
            false => Ok(()),
        }
    }

    fn walk(&self, scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        for path in self.0.files() {
            let is_enough = tree_path(path).is_some_and(|path| !visit(path));
            if is_enough || scope.is_cancelled() {
                break;
            }
        }
        Ok(())
    }

    fn since(&self) -> Since {
        // An index that was built later has never seen the files that the workspace lost.
        let lost = self.0.lost_in_workspace();
        let changed = self.0.changed().chain(&lost).filter_map(tree_path);
        let changed: BTreeSet<TreePath> = changed.collect();
        Since {
            taken: Some(self.0.taken_at()),
            changed: changed.into_iter().collect(),
        }
    }
}

/// The path as context knows it. Names that aren't UTF-8 are left out.
pub(super) fn tree_path(path: &RelPath) -> Option<TreePath> {
    TreePath::new(std::str::from_utf8(path.as_bytes()).ok()?).ok()
}

fn text_of(content: &[u8]) -> Result<FileText, NotText> {
    match content.contains(&0) {
        true => Err(NotText::Binary),
        false => Ok(String::from_utf8_lossy(content).into()),
    }
}

fn not_text(error: TreeError) -> NotText {
    match error {
        TreeError::TooLarge { .. } => NotText::TooLarge,
        TreeError::NotAFile { .. } | TreeError::IsADirectory { .. } => NotText::Missing,
        error if error.is_absence() => NotText::Missing,
        error => NotText::Unreadable(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_shown() {
        assert_eq!(&*text_of(b"a\xffb\n").unwrap(), "a\u{fffd}b\n");
        assert!(matches!(text_of(b"a\0b"), Err(NotText::Binary)));
    }
}
