//! How a landing ends.

use std::io;

use crate::landing::leftover::Leftover;
use crate::merge::{Conflict, Effect};
use crate::tree::TreeError;

/// How a landing ended: whole or not at all.
#[derive(Debug)]
pub enum LandingEnd {
    /// Every effect is in the tree, and on the disk.
    Landed {
        /// The effects as they were carried out, in the order of paths. Where somebody saved meanwhile and it was merged,
        /// `before` is what they saved. What turned out to be so already has none.
        effects: Vec<Effect>,
        /// What others wrote that is neither in the tree nor merged into it.
        kept: Vec<Leftover>,
    },
    /// No effect is in the tree.
    TakenBack {
        /// Why.
        why: WhyRolledBack,
        /// What could not be put back, because somebody else had written the path.
        kept: Vec<Leftover>,
    },
}

/// Why a landing was taken back.
#[derive(Debug)]
pub enum WhyRolledBack {
    /// Others had written, and it could not be merged.
    Conflicts(Vec<Conflict>),
    /// The tree could not be written.
    Failed(TreeError),
    /// It was not staged when the process ended; nothing had been touched.
    NeverStaged,
    /// It was being taken back when the process ended. The reason went with it.
    Unknown,
}

/// A landing could not be staged, or not be brought to an end.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// It was cancelled while it was being staged. Nothing was touched.
    #[error("cancelled")]
    Cancelled,
    /// There is no place to stage it.
    #[error("cannot stage at {place}")]
    Staging {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: TreeError,
    },
    /// A content that it needs cannot be had. Nothing was touched.
    #[error("the new content of `{path}` cannot be had")]
    Content {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Two effects have the same path. Nothing was touched.
    #[error("two effects have the path `{path}`")]
    Twice {
        /// The path.
        path: String,
    },
    /// A landing of that name is staged already and has to be recovered first.
    #[error("a landing of that name is staged already")]
    StagedAlready,
    /// It can be neither finished nor taken back now. Recover it when the cause is gone.
    #[error("the landing is stuck half-way; recover it when the cause is gone")]
    Stuck {
        /// The cause.
        #[source]
        source: TreeError,
    },
    /// What somebody else wrote could not be kept.
    #[error("what is to be kept of `{path}` cannot be copied")]
    Keeping {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A note in the staging directory cannot be read.
    #[error("the note {name} in the staging directory cannot be read")]
    Note {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}
