//! The parts of an output.

use std::sync::Arc;

use eventlog::Sequence;
use protocol::{JobChannel, JobProgress};
use serde::{Deserialize, Serialize};

use crate::job::Job;

/// The summary of a job's output, available without reading it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct OutputSummary {
    /// How much the job has written, in all attempts, without progress lines.
    pub bytes: u64,
    /// How much of that wasn't kept.
    pub cut_bytes: u64,
    /// The last progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// The position of the last piece.
    #[serde(skip)]
    pub last_sequence: Sequence,
}

/// What a follower of a job's output receives.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OutputItem {
    /// A piece of output.
    Piece(Piece),
    /// The current progress.
    Progress {
        /// The position of this item.
        sequence: Sequence,
        /// The progress.
        progress: JobProgress,
    },
    /// The pieces up to here were dropped before they could be read, or the log has lost later pieces that were
    /// already read.
    Resync {
        /// The output continues after this position.
        after: Sequence,
    },
    /// The job has ended, and there is no more output.
    End(Box<Job>, OutputSummary),
}

/// A piece of output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// Its position; name it to continue after it.
    pub sequence: Sequence,
    /// When it arrived, in milliseconds since 1970.
    pub at_ms: i64,
    /// Its source. A note, such as a new attempt or truncated output, is one line without its end.
    pub channel: JobChannel,
    /// The bytes. Characters aren't split, unless the bytes aren't text.
    pub bytes: Arc<[u8]>,
}
