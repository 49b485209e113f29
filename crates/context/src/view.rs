//! A tree of files as a caller sees it: the workspace on disk, or the sandbox of a plan.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use kernel::Scope;

use crate::disk::{self, Root};
use crate::path::TreePath;

/// The largest file that is searched. Larger files are data, which no reader would want.
pub const FILE_LIMIT_BYTES: u64 = 1024 * 1024;

/// The text of a file. Invalid UTF-8 is replaced; the number of lines stays the same.
pub type FileText = Arc<str>;

/// Why a file has no text to show.
#[derive(Debug, thiserror::Error)]
pub enum NotText {
    #[error("there is no such file")]
    Missing,
    #[error("it is too large")]
    TooLarge,
    #[error("it is binary")]
    Binary,
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
}

/// A tree of files. All methods block, and may be called from several threads at once.
pub trait View: Send + Sync + fmt::Debug {
    /// The text of a file. Links aren't followed out of the tree.
    ///
    /// # Errors
    /// It has no text to show.
    fn read(&self, path: &TreePath) -> Result<FileText, NotText>;

    /// The raw bytes of a file, for searching many files for something that few of them contain. The content of the
    /// buffer is replaced.
    ///
    /// # Errors
    /// It has no text to show.
    fn read_into(&self, path: &TreePath, buffer: &mut Vec<u8>) -> Result<(), NotText> {
        buffer.clear();
        buffer.extend_from_slice(self.read(path)?.as_bytes());
        Ok(())
    }

    /// Visits all files that git wouldn't ignore, until the scope is cancelled or `visit` stops it. The order is
    /// arbitrary; `visit` may be called from several threads at once.
    ///
    /// # Errors
    /// The root can't be read.
    fn walk(&self, scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()>;

    fn since(&self) -> Since;
}

/// How a view differs from the tree on disk.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Since {
    /// When the view was created: files that changed on disk after that may look different here. `None` for the disk
    /// itself.
    pub taken: Option<SystemTime>,
    /// The files that were changed in the view itself, in order.
    pub changed: Vec<TreePath>,
}

/// Bytes as a reader sees them. Nearly all files are valid UTF-8, which is fast to check.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// The tree on disk.
#[derive(Clone, Debug)]
pub struct DiskView {
    root: PathBuf,
    opened: Arc<OnceLock<Root>>,
}

impl DiskView {
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            opened: Arc::default(),
        }
    }

    fn opened(&self) -> Result<&Root, NotText> {
        if let Some(root) = self.opened.get() {
            return Ok(root);
        }
        let root = Root::open(&self.root).map_err(NotText::Unreadable)?;
        Ok(self.opened.get_or_init(|| root))
    }
}

impl View for DiskView {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        let mut bytes = Vec::new();
        self.opened()?.read(path, &mut bytes)?;
        Ok(text_of(&bytes).into())
    }

    fn read_into(&self, path: &TreePath, buffer: &mut Vec<u8>) -> Result<(), NotText> {
        self.opened()?.read(path, buffer).map(drop)
    }

    fn walk(&self, scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        disk::walk(
            &self.root,
            &self.root,
            scope,
            &|visited| visit(visited.path),
            &|_| {},
        )
    }

    fn since(&self) -> Since {
        Since::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::Mutex;

    use kernel::CancellationToken;

    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::new(text).unwrap()
    }

    fn walked(root: &Path) -> BTreeSet<String> {
        let found = Mutex::new(BTreeSet::new());
        let scope = CancellationToken::new().scope();
        let visit = |path: TreePath| found.lock().unwrap().insert(path.as_str().to_owned());
        DiskView::new(root.to_owned()).walk(&scope, &visit).unwrap();
        found.into_inner().unwrap()
    }

    #[test]
    fn a_file_is_read_only_if_it_is_text_below_the_root() {
        let (outside, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = directory.path();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/text"), "one\ntwo \u{e4}\n").unwrap();
        std::fs::write(root.join("lossy"), b"one\xff\n").unwrap();
        std::fs::write(root.join("empty"), "").unwrap();
        std::fs::write(root.join("binary"), b"one\0two").unwrap();
        let mut late = vec![b'x'; BINARY_AFTER];
        late.push(0);
        std::fs::write(root.join("late"), &late).unwrap();
        let limit = usize::try_from(FILE_LIMIT_BYTES).unwrap();
        std::fs::write(root.join("largest"), "x".repeat(limit)).unwrap();
        std::fs::write(root.join("large"), "x".repeat(limit + 1)).unwrap();
        symlink("a/b", root.join("inside")).unwrap();
        symlink("a/b/text", root.join("link")).unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink(
            format!("../{}", outside.path().file_name().unwrap().to_str().unwrap()),
            root.join("up"),
        )
        .unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();

        let view = DiskView::new(root.to_owned());
        let of = |name: &str| match view.read(&path(name)) {
            Ok(text) => format!("{} {}", text.len(), &text.chars().take(5).collect::<String>()),
            Err(error) => error.to_string(),
        };
        for (name, expected) in [
            ("a/b/text", "11 one\nt"),
            ("inside/text", "11 one\nt"),
            ("lossy", "7 one\u{fffd}\n"),
            ("empty", "0 "),
            ("late", "8193 xxxxx"),
            ("largest", "1048576 xxxxx"),
            ("large", "it is too large"),
            ("binary", "it is binary"),
            ("a/b", "there is no such file"),
            ("none", "there is no such file"),
            ("empty/none", "there is no such file"),
            ("link", "there is no such file"),
            ("out/secret", "there is no such file"),
            ("up/secret", "there is no such file"),
            ("circle", "there is no such file"),
            ("circle/x", "there is no such file"),
            ("pipe", "there is no such file"),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    /// The first offset at which a NUL is no longer searched for.
    const BINARY_AFTER: usize = 8 * 1024;

    #[test]
    fn a_walk_sees_what_git_would_see() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for file in [
            "a.rs",
            "b.log",
            "keep.log",
            ".hidden/x",
            "deep/c.rs",
            "deep/own/d.txt",
            "target/e",
            ".git/config",
            "sub/.git/config",
            "sub/f",
        ] {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "*.log\n!keep.log\n/target/\n").unwrap();
        std::fs::write(root.join("deep/.gitignore"), "own\n").unwrap();
        std::fs::write(root.join("deep/.ignore"), "c.rs\n").unwrap();
        symlink(root, root.join("circle")).unwrap();
        let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"not-\xff-text");
        std::fs::write(root.join(name), "x").unwrap();
        let expected = [
            ".gitignore",
            ".hidden/x",
            "a.rs",
            "deep/.gitignore",
            "deep/.ignore",
            "deep/c.rs",
            "keep.log",
            "sub/f",
        ];
        assert_eq!(walked(root), expected.map(str::to_owned).into());

        let enough = Mutex::new(0);
        let scope = CancellationToken::new();
        let view = DiskView::new(root.to_owned());
        view.walk(&scope.scope(), &|_| {
            *enough.lock().unwrap() += 1;
            false
        })
        .unwrap();
        // Each thread may have reached one.
        assert!((1..=8).contains(&*enough.lock().unwrap()));
        let cancelled = scope.scope();
        assert!(scope.cancel(kernel::Cause::new("a test", "it is enough")));
        view.walk(&cancelled, &|path| panic!("{path} was visited"))
            .unwrap();
        assert!(
            DiskView::new(root.join("none"))
                .walk(&cancelled, &|_| true)
                .is_err()
        );
    }
}
