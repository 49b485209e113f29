//! A handle to a view.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A view. It exists as long as somebody holds it or runs in it, and leaves nothing behind. Clones refer to the
/// same view.
#[derive(Clone, Debug)]
pub struct View {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    user: OwnedFd,
    mount: OwnedFd,
    root: OwnedFd,
}

impl View {
    pub(super) fn new([user, mount, root]: [OwnedFd; 3]) -> Self {
        Self {
            inner: Arc::new(Inner { user, mount, root }),
        }
    }

    /// The requested directory in the view. Files below it can be reached through it from outside.
    #[must_use]
    pub fn root(&self) -> BorrowedFd<'_> {
        self.inner.root.as_fd()
    }

    /// The user namespace and the mount namespace, for a command to run in.
    pub(crate) fn namespaces(&self) -> [BorrowedFd<'_>; 2] {
        [self.inner.user.as_fd(), self.inner.mount.as_fd()]
    }
}
