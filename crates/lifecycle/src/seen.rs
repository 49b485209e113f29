//! What somebody saw who asks for a change.

use crate::{
    ServerGeneration, StoppedBy,
    state::{Event, Phase, Then},
};

/// Which process somebody saw who asks for a start, a stop or a restart.
///
/// The generation is that of the newest process that was launched, as a status tells it. So it stays the same while a
/// restart takes the old process down, and whoever asks for a restart then joins the one that is under way. From the
/// launch of the next process on it is another one, and whoever saw the old one is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// None in particular: whatever there is by now is meant.
    Any,
    /// This one. If there is another one by now, nothing happens, and the caller gets the current status.
    Exactly(ServerGeneration),
}

impl Seen {
    /// What was seen, if it is another one than the newest.
    pub(crate) fn other_than(self, newest: ServerGeneration) -> Option<ServerGeneration> {
        match self {
            Self::Exactly(seen) if seen != newest => Some(seen),
            Self::Exactly(_) | Self::Any => None,
        }
    }
}

impl<S> Event<S> {
    /// What somebody saw who wants something.
    pub(crate) fn seen(&self) -> Seen {
        match self {
            Self::Start { seen } | Self::Restart { seen } | Self::Stop { seen } => *seen,
            _ => Seen::Any,
        }
    }
}

impl<S> Phase<S> {
    /// Whether somebody has asked for a stop, and nobody for a start since.
    pub(crate) fn is_stopped_by_request(&self) -> bool {
        matches!(
            self,
            Self::Stopped {
                by: StoppedBy::Request
            } | Self::Ending {
                then: Then::Rest {
                    by: StoppedBy::Request
                },
                ..
            }
        )
    }
}
