//! File contents in the log.

use std::fs::File;
use std::io;

use bytes::Bytes;
use eventlog::{BlobError, BlobId, Log, Piece};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::runtime::Handle;

use crate::inner::blocking;
use crate::{ContentSink, Contents, PlanError, RelPath, TEXT_LIMIT_BYTES, TreeError};

/// How many contents are stored at once. The log writes a batch in one go, so storing them one by one would wait for
/// the disk each time.
pub(crate) const PUT_TOGETHER: usize = 64;

/// The contents in a log, for blocking code.
#[derive(Clone, Debug)]
pub(crate) struct LogContents {
    log: Log,
    /// Runs the reads while the caller blocks.
    runtime: Handle,
}

impl LogContents {
    /// Must be called inside the log's runtime.
    pub(crate) fn new(log: Log) -> Self {
        Self {
            log,
            runtime: Handle::current(),
        }
    }

    /// Stores a content in the log. It blocks.
    pub(crate) fn keep(&self, content: &Bytes) -> io::Result<()> {
        let put = self.runtime.block_on(self.log.put_blob(&**content));
        put.map(drop).map_err(|error| to_io(&error))
    }

    fn read(&self, id: BlobId, to: &mut dyn ContentSink, limit: Option<u64>) -> io::Result<()> {
        let reader = self.runtime.block_on(self.log.read_blob(id));
        let mut reader = reader.map_err(|error| to_io(&error))?;
        if limit.is_some_and(|limit| reader.info().size_bytes > limit) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        while let Some(piece) = self
            .runtime
            .block_on(reader.next_piece())
            .map_err(|error| to_io(&error))?
        {
            match piece {
                Piece::Data(chunk) => to.write_all(&chunk)?,
                Piece::Hole(bytes) => to.hole(bytes)?,
            }
        }
        Ok(())
    }
}

impl Contents for LogContents {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        let mut content = Vec::new();
        self.read(id, &mut content, Some(TEXT_LIMIT_BYTES))?;
        Ok(content.into())
    }

    fn get_all(&self, ids: &[BlobId]) -> io::Result<Vec<Bytes>> {
        let contents = self.runtime.block_on(self.log.read_blobs(ids));
        let contents = contents.map_err(|error| to_io(&error))?;
        Ok(contents.into_iter().map(Bytes::from).collect())
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()> {
        self.read(id, to, None)
    }
}

fn to_io(error: &BlobError) -> io::Error {
    match error {
        BlobError::Missing(_) => io::Error::new(io::ErrorKind::NotFound, error.to_string()),
        _ => io::Error::other(error.to_string()),
    }
}

/// A content to store in the log.
pub(crate) enum Source {
    /// In a file, which is opened when its turn comes: there may be more of them than a process may have open.
    File(Opening),
    Bytes(Bytes),
}

/// Opens a file. It blocks.
pub(crate) type Opening = Box<dyn FnOnce() -> Result<File, PlanError> + Send>;

impl Source {
    /// A file of a tree, with a function that opens it.
    pub(crate) fn of_tree(
        path: RelPath,
        open: impl FnOnce(&RelPath) -> Result<Result<File, TreeError>, PlanError> + Send + 'static,
    ) -> Self {
        Self::File(Box::new(move || match open(&path)? {
            Ok(file) => Ok(file),
            Err(TreeError::Io { path, source, .. }) => Err(PlanError::Io {
                what: format!("reading `{path}`"),
                source,
            }),
            // It has just changed.
            Err(error) => Err(PlanError::FileRefused {
                path: path.to_string(),
                why: format!("somebody else changed it at the same moment: {error}"),
            }),
        }))
    }
}

/// Stores contents in the log, many at a time, and returns their addresses in order. Contents that are already there
/// aren't stored again.
pub(crate) async fn put_all(
    log: &Log,
    sources: Vec<(Option<BlobId>, Source)>,
) -> Result<Vec<(BlobId, u64)>, PlanError> {
    let puts = sources
        .into_iter()
        .map(|(expected, source)| put(log, expected, source));
    stream::iter(puts).buffered(PUT_TOGETHER).try_collect().await
}

async fn put(log: &Log, expected: Option<BlobId>, source: Source) -> Result<(BlobId, u64), PlanError> {
    if let Some(id) = expected
        && let Some(info) = log.blob_info(id).await?
    {
        return Ok((id, info.size_bytes));
    }
    let (id, info) = match source {
        Source::File(open) => {
            let file = blocking(open).await??;
            log.put_file(file).await?
        }
        Source::Bytes(bytes) => log.put_blob(&*bytes).await?,
    };
    Ok((id, info.size_bytes))
}
