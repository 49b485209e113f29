//! How a landing ends.

use std::io;

use crate::landing::leftover::Leftover;
use crate::{Conflict, Effect, TreeError};

#[derive(Debug)]
pub enum LandingEnd {
    /// Every effect is in the tree and on disk.
    Landed {
        /// The effects that were carried out, in path order. If someone saved in the meantime and it was merged,
        /// `before` is what they saved. Effects that turned out to be done already are not listed.
        effects: Vec<Effect>,
        /// What others wrote that is neither in the tree nor merged into it.
        kept: Vec<Leftover>,
    },
    TakenBack {
        why: WhyRolledBack,
        /// What couldn't be put back because someone else had written to the path.
        kept: Vec<Leftover>,
    },
}

#[derive(Debug)]
pub enum WhyRolledBack {
    Conflicts(Vec<Conflict>),
    Failed(TreeError),
    /// It wasn't staged yet when the process ended; nothing had been touched.
    NeverStaged,
    /// It was being rolled back when the process ended, so the reason is lost.
    Unknown,
}

/// A landing couldn't be staged, or couldn't be finished.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error("cancelled")]
    Cancelled,
    #[error("cannot stage at {place}")]
    Staging {
        place: String,
        #[source]
        source: TreeError,
    },
    #[error("the new content of `{path}` cannot be had")]
    Content {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("two effects have the path `{path}`")]
    Twice { path: String },
    #[error("a landing of that name is staged already")]
    StagedAlready,
    #[error("the landing is stuck half-way; recover it when the cause is gone")]
    Stuck {
        #[source]
        source: TreeError,
    },
    #[error("what is to be kept of `{path}` cannot be copied")]
    Keeping {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("the note {name} in the staging directory cannot be read")]
    Note {
        name: String,
        #[source]
        source: serde_json::Error,
    },
}
