//! A tree without files that must not be shown.

use std::io;
use std::sync::Arc;

use context::{FileText, NotText, Since, TreePath, View};
use kernel::Scope;
use sessions::permissions::Readable;

pub(super) trait Allows: Send + Sync + std::fmt::Debug {
    fn allows(&self, path: &str) -> bool;
}

impl Allows for Readable {
    fn allows(&self, path: &str) -> bool {
        Readable::allows(self, path)
    }
}

/// A tree without the files that the reader may not read.
#[derive(Debug)]
pub(super) struct Shown<A> {
    pub(super) view: Arc<dyn View>,
    pub(super) readable: A,
}

impl<A: Allows> View for Shown<A> {
    fn read(&self, path: &TreePath) -> Result<FileText, NotText> {
        match self.readable.allows(path.as_str()) {
            true => self.view.read(path),
            false => Err(NotText::Missing),
        }
    }

    fn read_into(&self, path: &TreePath, buffer: &mut Vec<u8>) -> Result<(), NotText> {
        match self.readable.allows(path.as_str()) {
            true => self.view.read_into(path, buffer),
            false => Err(NotText::Missing),
        }
    }

    fn walk(&self, scope: &Scope, visit: &(dyn Fn(TreePath) -> bool + Sync)) -> io::Result<()> {
        // A file that is left out is no reason to stop.
        let is_left_out = |path: &TreePath| !self.readable.allows(path.as_str());
        self.view.walk(scope, &|path| is_left_out(&path) || visit(path))
    }

    fn since(&self) -> Since {
        let mut since = self.view.since();
        since.changed.retain(|path| self.readable.allows(path.as_str()));
        since
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use context::DiskView;
    use kernel::CancellationToken;

    use super::*;

    #[derive(Debug)]
    struct Without(&'static str);

    impl Allows for Without {
        fn allows(&self, path: &str) -> bool {
            !path.contains(self.0)
        }
    }

    #[test]
    fn what_must_not_be_shown_is_as_if_it_were_not_there() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.rs", "secret.rs", "z.rs"] {
            std::fs::write(directory.path().join(name), name).unwrap();
        }
        let shown = Shown {
            view: Arc::new(DiskView::new(directory.path().to_owned())),
            readable: Without("secret"),
        };
        let read = |path: &str| shown.read(&TreePath::new(path).unwrap());
        assert_eq!(&*read("a.rs").unwrap(), "a.rs");
        assert!(matches!(read("secret.rs"), Err(NotText::Missing)));
        let read_into = |path: &str| {
            let mut bytes = Vec::new();
            let read = shown.read_into(&TreePath::new(path).unwrap(), &mut bytes);
            read.map(|()| bytes)
        };
        assert_eq!(read_into("a.rs").unwrap(), b"a.rs");
        assert!(matches!(read_into("secret.rs"), Err(NotText::Missing)));
        // Guards the paths that the walk finds, possibly from several threads.
        let seen = Mutex::new(Vec::new());
        let visit = |path: TreePath| {
            seen.lock().unwrap().push(path.to_string());
            true
        };
        shown.walk(&CancellationToken::new().scope(), &visit).unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        assert_eq!(seen, ["a.rs", "z.rs"]);
    }
}
