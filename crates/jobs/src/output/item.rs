//! The pieces that output is made of.

use std::sync::Arc;

use eventlog::Sequence;
use serde::{Deserialize, Serialize};

use crate::job::Job;

/// Which way a piece of output came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Channel {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A remark of the daemon, such as a new attempt, or output that was cut: one line without its end.
    Note,
}

/// How far a job is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// How much is done.
    pub done: u64,
    /// Of how much; nothing if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What it is doing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What is known of the output of a job without reading it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct OutputSummary {
    /// How much the job has written, over all attempts; lines that speak of progress are not counted.
    pub bytes: u64,
    /// How much of that was not kept.
    pub cut_bytes: u64,
    /// How far the job has said that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
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
        progress: Progress,
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
    /// Which way it came.
    pub channel: Channel,
    /// What it is. Characters are not cut in two, unless they are none.
    pub bytes: Arc<[u8]>,
}
