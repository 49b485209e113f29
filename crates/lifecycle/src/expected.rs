//! The process that a caller saw when it asked for a change.

use crate::{
    ServerGeneration, StoppedBy,
    state::{AfterEnd, Event, Phase},
};

/// The process that a caller saw when it asks for a start, a stop or a restart.
///
/// The generation is that of the newest process that was launched, as reported by a status. It stays the same
/// while a restart stops the old process, so a caller that asks for a restart during that time joins the one in
/// progress. Once the next process is launched, callers that saw the old one are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExpectedProcess {
    /// Whichever process is the newest one.
    Any,
    /// This process. If there is a newer one, nothing changes and the caller gets the current status.
    Exactly(ServerGeneration),
}

impl ExpectedProcess {
    /// The expected generation, if it isn't the newest one.
    pub(crate) fn other_than(self, newest: ServerGeneration) -> Option<ServerGeneration> {
        match self {
            Self::Exactly(seen) if seen != newest => Some(seen),
            Self::Exactly(_) | Self::Any => None,
        }
    }
}

impl<S> Event<S> {
    /// The process that the caller of this event saw.
    pub(crate) fn seen(&self) -> ExpectedProcess {
        match self {
            Self::Start { seen } | Self::Restart { seen } | Self::Stop { seen } => *seen,
            _ => ExpectedProcess::Any,
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
                then: AfterEnd::Stopped {
                    by: StoppedBy::Request
                },
                ..
            }
        )
    }
}
