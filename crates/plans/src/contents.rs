//! Where the contents of files come from and go to.

use std::io;

use bytes::Bytes;
use eventlog::BlobId;

use crate::ContentSink;

/// The largest content that is compared by line. A larger file is carried as a whole: it is never merged line by line
/// and never shown as a diff.
pub const TEXT_LIMIT_BYTES: u64 = 100 * 1024 * 1024;

/// Contents by their address. Every method blocks; call them where blocking is allowed.
pub trait Contents: Send + Sync {
    /// Returns a whole content. Only for contents of at most [`TEXT_LIMIT_BYTES`].
    ///
    /// # Errors
    /// It doesn't exist ([`io::ErrorKind::NotFound`]), is too large ([`io::ErrorKind::FileTooLarge`]), or can't be
    /// read.
    fn get(&self, id: BlobId) -> io::Result<Bytes>;

    /// Returns several whole contents, in this order. They are all in memory at once, so keep them small.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    fn get_all(&self, ids: &[BlobId]) -> io::Result<Vec<Bytes>> {
        ids.iter().map(|id| self.get(*id)).collect()
    }

    /// Writes a content of any size to a sink.
    ///
    /// # Errors
    /// As for [`get`](Self::get), or it can't be written.
    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()>;
}

/// Contents in memory, for tests and for merge results.
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
