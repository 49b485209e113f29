//! What can be set for a client.

use std::time::Duration;

use crate::wire::FrameLimits;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientSettings {
    pub limits: FrameLimits,
    /// How long a message may take from its first byte to its last.
    pub message_time: Duration,
    /// How long the server may take to read the next byte of what is written to it.
    pub stall_time: Duration,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            limits: FrameLimits::default(),
            message_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(30),
        }
    }
}
