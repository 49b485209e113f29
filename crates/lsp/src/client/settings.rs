//! What can be set for a client.

use std::time::Duration;

use crate::wire::FrameLimits;

/// How patient a client is with its server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientSettings {
    pub limits: FrameLimits,
    /// How long a message may take from its first byte to its last.
    pub message_time: Duration,
    /// How long the server may go without reading a byte of what is being written to it.
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
