//! The pieces that output is made of.

use std::sync::Arc;

use eventlog::Sequence;
use protocol::{JobChannel, JobProgress};
use serde::{Deserialize, Serialize};

use crate::job::Job;

/// What is known of the output of a job without reading it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct OutputSummary {
    /// How much the job has written, over all attempts; lines that speak of progress are not counted.
    pub bytes: u64,
    /// How much of that was not kept.
    pub cut_bytes: u64,
    /// How far the job has said that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// The place of the last piece.
    #[serde(skip)]
    pub last_sequence: Sequence,
}

/// What somebody gets who follows the output of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OutputItem {
    /// A piece of output.
    Piece(Piece),
    /// How far the job is now.
    Progress {
        /// The place of this item.
        sequence: Sequence,
        /// How far.
        progress: JobProgress,
    },
    /// The pieces up to here were dropped before they could be read, or the log has lost pieces after it that were read.
    Resync {
        /// It goes on after this place.
        after: Sequence,
    },
    /// The job has ended, and there is no more. This is what is known of its output.
    End(Box<Job>, OutputSummary),
}

/// A piece of output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// Its place; to go on after it, name it.
    pub sequence: Sequence,
    /// When it came, in milliseconds since 1970.
    pub at_ms: i64,
    /// Which way it came. A note, such as a new attempt or output that was cut, is one line without its end.
    pub channel: JobChannel,
    /// What it is. Characters are not cut in two, unless they are none.
    pub bytes: Arc<[u8]>,
}
