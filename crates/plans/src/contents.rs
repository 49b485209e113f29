//! Where the contents of files come from and go to.

use std::io;

use bytes::Bytes;
use eventlog::BlobId;

use crate::ContentSink;

/// The largest content that is looked into. A larger file is carried whole: it is never merged line by line and never
/// shown as a diff.
pub const TEXT_LIMIT_BYTES: u64 = 100 * 1024 * 1024;

/// Contents by their address. All of it blocks; call it where blocking is allowed.
pub trait Contents: Send + Sync {
    /// A content, whole. Only for those of at most [`TEXT_LIMIT_BYTES`].
    ///
    /// # Errors
    /// It is not there ([`io::ErrorKind::NotFound`]), too large ([`io::ErrorKind::FileTooLarge`]), or cannot be read.
    fn get(&self, id: BlobId) -> io::Result<Bytes>;

    /// Several contents, whole, in this order. They are all in memory at once, so they had better be small.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    fn get_all(&self, ids: &[BlobId]) -> io::Result<Vec<Bytes>> {
        ids.iter().map(|id| self.get(*id)).collect()
    }

    /// Writes a content of any size somewhere.
    ///
    /// # Errors
    /// As for [`get`](Self::get), or it cannot be written.
    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()>;
}

/// Contents in memory, for tests and for what a merge has made.
impl Contents for std::collections::HashMap<BlobId, Bytes> {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        std::collections::HashMap::get(self, &id)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()> {
        to.write_all(&Contents::get(self, id)?)
    }
}
